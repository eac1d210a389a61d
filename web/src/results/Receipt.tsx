import { Tooltip } from "@base-ui/react/tooltip";
import type { Element } from "hast";
import type { ReactNode } from "react";
import { useT } from "../i18n";
import { openInspector } from "../inspector/selection";
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
  const { results } = useScope();
  const { text, source } = (node?.data as { receipt?: Traced } | undefined)?.receipt ?? { text: "", source: null };
  const result = results.find(({ label, step }) => label === source?.label && step === source?.step);
  if (!source || !result) return children;
  const { step, label } = source;
  // Outside runs, and where others only read, there is no inspector to show the row in.
  const opens = step !== null && {
    "aria-label": t("results.receiptOpen", { text, label: label ?? "" }),
    onClick: () => openInspector({ tab: "query", step, rows: [...new Set(source.cells.map(({ row }) => row))] }),
  };
  return (
    <Tooltip.Root>
      <Tooltip.Trigger
        delay={200}
        render={<button type="button" className={styles["number"]} {...opens} />}
      >
        {children}
      </Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} className={styles["positioner"]}>
          <Tooltip.Popup className={styles["popup"]}>
            <Told source={source} result={result} />
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
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

/** A label such as `[q1]` in an answer: it leads to the query. */
export function Citation({ node, children }: MarkedProps) {
  const { results } = useScope();
  const labels = (node?.data as { labels?: string[] } | undefined)?.labels ?? [];
  const found = labels.map((label) => ({ label, step: results.findLast((result) => result.label === label)?.step ?? null }));
  if (!found.length || found.some(({ step }) => step === null)) return children;
  return (
    <span className={styles["citation"]}>
      {found.map(({ label, step }) => (
        <Cited key={label} label={label} step={step ?? 0} />
      ))}
    </span>
  );
}

function Cited({ label, step }: { label: string; step: number }) {
  const t = useT();
  return (
    <button type="button" className={styles["cited"]} aria-label={t("results.citation", { label })} onClick={() => openInspector({ tab: "query", step })}>
      {label}
    </button>
  );
}
