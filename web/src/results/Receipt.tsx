import type { Element } from "hast";
import { type ReactNode, useMemo } from "react";
import { useGiven } from "../formats/chosen";
import { TEXT, formatsOf } from "../formats/guess";
import { tidied } from "../formats/written";
import { locale, useT } from "../i18n";
import { openInspector } from "../inspector/selection";
import { HoverCard } from "../ui";
import styles from "./Receipt.module.css";
import { useScope } from "./receiptScope";
import type { Receipt as Traced, Source } from "./receipts";
import { type QueryResult, cellText } from "./result";

interface MarkedProps {
  node?: Element;
  children?: ReactNode;
}

/** A number of an answer that is a cell of a result. */
export function Receipt({ node, children }: MarkedProps) {
  const t = useT();
  const { threadId, results } = useScope();
  const { text, source } = (node?.data as { receipt?: Traced } | undefined)?.receipt ?? { text: "", source: null };
  const result = results.find(({ label, step }) => label === source?.label && step === source?.step);
  const given = useGiven(threadId, result ?? null);
  const [cell] = source?.cells ?? [];
  const format = useMemo(() => (result && cell ? formatsOf([result.columns[cell.column] ?? ""], result.rows.map((row) => [row[cell.column] ?? null]), given)[0] : { kind: "number" as const }), [result, cell, given]);
  if (!source || !result) return children;
  const { step, label } = source;
  // Outside runs, and where others only read, there is no inspector to show the row in.
  const opens = step !== null && {
    "aria-label": t("results.receiptOpen", { text, label: label ?? "" }),
    onClick: () => openInspector({ tab: "query", step, rows: [...new Set(source.cells.map(({ row }) => row))] }),
  };
  return (
    <HoverCard told={<Told source={source} result={result} />}>
      <button type="button" className={styles["number"]} {...opens}>
        {typeof children === "string" ? tidied(children, format ?? TEXT, locale()) : children}
      </button>
    </HoverCard>
  );
}

/** The value with its column and its row, and the query that found it. */
function Told({ source, result }: { source: Source; result: QueryResult }) {
  const t = useT();
  const [cell] = source.cells;
  const row = cell ? (result.rows[cell.row] ?? []) : [];
  const beside = row.flatMap((value, at) => (at === cell?.column || value === null ? [] : [`${result.columns[at]} ${cellText(value)}`]));
  const others = new Set(source.cells.map((each) => each.row)).size - 1;
  return (
    <>
      <div className={styles["value"]}>
        <b>{source.value}</b> {cell ? result.columns[cell.column] : t("results.receiptRows", { label: source.label ?? "" })}
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
  const opens = step !== null && { "aria-label": t("results.citation", { label }), onClick: () => openInspector({ tab: "query", step }) };
  return (
    <HoverCard told={<pre className={styles["query"]}>{sql}</pre>}>
      <button type="button" className={styles["cited"]} aria-label={t("results.title", { label })} {...opens}>
        {label}
      </button>
    </HoverCard>
  );
}
