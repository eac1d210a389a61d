import type { Element } from "hast";
import type { ReactNode } from "react";
import type { ColumnFormat } from "../formats/columnFormat";
import { TEXT } from "../formats/guess";
import { headingOf } from "../formats/heading";
import { tidied, written } from "../formats/written";
import { locale, useT } from "../i18n";
import { openInspector } from "../inspector/selection";
import { HoverCard } from "../ui";
import styles from "./Receipt.module.css";
import { useScope } from "./receiptScope";
import type { Receipt as Traced, Source } from "./receipts";
import type { Cell, QueryResult } from "./result";
import { useWords } from "./words";

const NUMBER: ColumnFormat = { kind: "number" };

interface MarkedProps {
  node?: Element;
  children?: ReactNode;
}

/** A number of an answer that is a cell of a result. */
export function Receipt({ node, children }: MarkedProps) {
  const t = useT();
  const { results, formatsOf } = useScope();
  const { text, source } = (node?.data as { receipt?: Traced } | undefined)?.receipt ?? { text: "", source: null };
  const result = results.find(({ label, step }) => label === source?.label && step === source?.step);
  if (!source || !result) return children;
  const { step, label, cells } = source;
  const formats = formatsOf(result);
  const format = cells[0] ? (formats[cells[0].column] ?? TEXT) : NUMBER;
  const shown = typeof children === "string" ? tidied(children, format, locale()) : children;
  // Outside runs, and where others only read, there is no inspector to show the row in.
  const opens = step !== null && {
    "aria-label": t("results.receiptOpen", { text: typeof shown === "string" ? shown : text, label: label ?? "" }),
    onClick: () => openInspector({ tab: "query", step, rows: [...new Set(source.cells.map(({ row }) => row))] }),
  };
  return (
    <HoverCard told={<Told source={source} result={result} formats={formats} />}>
      <button type="button" className={styles["number"]} {...opens}>
        {shown}
      </button>
    </HoverCard>
  );
}

/** The value with its column and its row, and the query that found it. */
function Told({ source, result, formats }: { source: Source; result: QueryResult; formats: readonly ColumnFormat[] }) {
  const t = useT();
  const words = useWords();
  const heading = (at: number) => headingOf(result.columns[at] ?? "", words);
  const whole = (value: Cell | undefined, at: number) =>
    written(value, { ...(formats[at] ?? TEXT), places: undefined }, locale());
  const [cell] = source.cells;
  const row = cell ? (result.rows[cell.row] ?? []) : [];
  const beside = row.flatMap((value, at) =>
    at === cell?.column || value === null ? [] : [`${heading(at)} ${whole(value, at)}`],
  );
  const others = new Set(source.cells.map((each) => each.row)).size - 1;
  return (
    <>
      <div className={styles["value"]}>
        <b>{cell ? whole(row[cell.column], cell.column) : source.value}</b>{" "}
        {cell ? heading(cell.column) : t("results.receiptRows", { label: source.label ?? "" })}
        <code className={styles["label"]}>{source.label}</code>
      </div>
      {beside.length > 0 && <div className={styles["beside"]}>{beside.slice(0, 3).join(" · ")}</div>}
      {others > 0 && <div className={styles["beside"]}>{t("results.andOthers", { n: others })}</div>}
      <pre className={styles["query"]}>{result.sql}</pre>
    </>
  );
}

/** A label such as `[q1]` in an answer: it shows the query. One that no query has stays text. */
export function Citation({ node, children }: MarkedProps) {
  const { results } = useScope();
  const labels = (node?.data as { labels?: string[] } | undefined)?.labels ?? [];
  const found = labels.flatMap((label) => results.findLast((result) => result.label === label) ?? []);
  if (found.length < labels.length) return children;
  return (
    <span className={styles["citation"]}>
      {found.map((result) => (
        <Cited key={result.label} label={result.label ?? ""} result={result} />
      ))}
    </span>
  );
}

function Cited({ label, result: { step, sql } }: { label: string; result: QueryResult }) {
  const t = useT();
  const opens = step !== null && {
    "aria-label": t("results.citation", { label }),
    onClick: () => openInspector({ tab: "query", step }),
  };
  return (
    <HoverCard told={<pre className={styles["query"]}>{sql}</pre>}>
      <button type="button" className={styles["cited"]} aria-label={t("results.title", { label })} {...opens}>
        {label}
      </button>
    </HoverCard>
  );
}
