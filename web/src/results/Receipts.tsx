import { type ReactNode, useDeferredValue, useMemo } from "react";
import type { Components, Options } from "react-markdown";
import { readGfm } from "../chat/gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";
import { type Formats, useChosen } from "../formats/chosen";
import type { ColumnFormat } from "../formats/columnFormat";
import { formatsOf } from "../formats/guess";
import { useT } from "../i18n";
import { Icon, Tooltip } from "../ui";
import { Citation, Receipt } from "./Receipt";
import styles from "./Receipt.module.css";
import { CITATION, RECEIPT, numbersOf, receipts } from "./mark";
import { ReceiptScope, type Scope, useScope } from "./receiptScope";
import { type Receipt as Traced, tracer } from "./receipts";
import type { QueryResult } from "./result";
import { withoutShown } from "./shown";
import { type Card, resultOf } from "./step";

interface ReceiptsProps {
  threadId: string;
  results: readonly QueryResult[];
  cards?: readonly Card[];
  reads?: boolean;
  children: ReactNode;
}

const NONE: readonly Card[] = [];

/** Around an answer and what is below it: the results that it may speak of (`resultsOf`), and the cards (`cardsOf`). */
export function Receipts({ threadId, results, cards = NONE, reads = false, children }: ReceiptsProps) {
  const chosen = useChosen(threadId);
  const scope = useMemo(
    () => ({
      results,
      shown: cards.map(({ step }) => resultOf(step)).filter((result) => result !== null),
      formatsOf: formatsIn(chosen),
      reads,
    }),
    [results, cards, reads, chosen],
  );
  return <ReceiptScope value={scope}>{children}</ReceiptScope>;
}

/** The formats of results, reckoned once for each. */
function formatsIn(chosen: Formats) {
  const known = new Map<QueryResult, ColumnFormat[]>();
  return (result: QueryResult) => {
    const formats =
      known.get(result) ?? formatsOf(result.columns, result.rows.slice(0, 100), { ...result.formats, ...chosen });
    known.set(result, formats);
    return formats;
  };
}

/** For react-markdown: `<Markdown rehypePlugins={useReceiptPlugins()} components={{ …, ...receiptComponents }}>`. */
export function useReceiptPlugins(): NonNullable<Options["rehypePlugins"]> {
  const { results, shown } = useScope();
  return useMemo(
    () =>
      results.length
        ? [
            [withoutShown, shown],
            [receipts, tracer(results)],
          ]
        : [],
    [results, shown],
  );
}

export const receiptComponents = { [RECEIPT]: Receipt, [CITATION]: Citation } as Components;

/** A mark that says how many different values of an answer are traced; nothing where it has none. */
export function TracedCount({ answer }: { answer: string }) {
  const t = useT();
  const scope = useScope();
  // The answer is parsed for it once more: that can wait until the answer is drawn.
  const counted = useDeferredValue(answer, "");
  const numbers = useMemo(() => numbersIn(counted, scope), [counted, scope]);
  if (counted !== answer) return <span data-undrawn />;
  if (!numbers.length) return null;
  const values = new Map(numbers.map((number) => [keyOf(number), number.source]));
  const [n, traced] = [values.size, [...values.values()].filter((source) => source !== null).length];
  return (
    <Tooltip text={t("results.tracedWhy", { n, traced })}>
      <span className={styles["traced"]}>
        {n === traced && <Icon name="check" size={14} />}
        {t(n === traced ? "results.tracedAll" : "results.traced", { n, traced })}
      </span>
    </Tooltip>
  );
}

/** What is said twice of the same cells is one value. */
const keyOf = ({ text, source }: Traced) =>
  JSON.stringify(source ? [source.label, source.kind, source.cells[0], source.value] : text);

const markdown = unified().use(remarkParse).use(readGfm).use(remarkRehype).freeze();

function numbersIn(answer: string, { results, shown }: Scope) {
  if (!results.length) return [];
  const tree = markdown.runSync(markdown.parse(answer));
  withoutShown(shown)(tree);
  return numbersOf(tree, tracer(results));
}
