import { type ReactNode, useMemo } from "react";
import type { Components, Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";
import { useT } from "../i18n";
import { Tooltip } from "../ui";
import { Citation, Receipt } from "./Receipt";
import styles from "./Receipt.module.css";
import { CITATION, RECEIPT, numbersOf, receipts } from "./mark";
import { ReceiptScope, useResults } from "./receiptScope";
import { tracer } from "./receipts";
import type { QueryResult } from "./result";

/** Around an answer: the results that its numbers are traced to. `resultsOf` gives them. */
export function Receipts({ results, children }: { results: readonly QueryResult[]; children: ReactNode }) {
  return <ReceiptScope value={results}>{children}</ReceiptScope>;
}

/** For react-markdown: `<Markdown rehypePlugins={useReceiptPlugins()} components={{ …, ...receiptComponents }}>`. */
export function useReceiptPlugins(): NonNullable<Options["rehypePlugins"]> {
  const results = useResults();
  return useMemo(() => (results.length ? [[receipts, tracer(results)]] : []), [results]);
}

export const receiptComponents = { [RECEIPT]: Receipt, [CITATION]: Citation } as Components;

/** How many of the numbers of an answer are traced; nothing where it has none. */
export function TracedCount({ answer }: { answer: string }) {
  const t = useT();
  const results = useResults();
  const numbers = useMemo(() => numbersIn(answer, results), [answer, results]);
  if (!numbers.length) return null;
  const traced = numbers.filter(({ source }) => source !== null).length;
  return (
    <Tooltip text={t("results.tracedWhy")}>
      <span className={traced === numbers.length ? styles["all"] : styles["traced"]}>{t("results.traced", { n: numbers.length, traced })}</span>
    </Tooltip>
  );
}

const markdown = unified().use(remarkParse).use(remarkGfm).use(remarkRehype).freeze();

function numbersIn(answer: string, results: readonly QueryResult[]) {
  if (!results.length) return [];
  return numbersOf(markdown.runSync(markdown.parse(answer)), tracer(results));
}
