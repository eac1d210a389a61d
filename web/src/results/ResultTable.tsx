/* oxlint-disable react/no-array-index-key -- rows and columns are known by their places alone: columns may share a name */
import { useEffect, useRef } from "react";
import { printing } from "../chat/printing";
import { locale, useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { useStore } from "../store";
import { Button, classes } from "../ui";
import { Pager } from "./Pager";
import styles from "./ResultTable.module.css";
import { type Kind, kindsOf } from "./columns";
import { shownCell } from "./format";
import type { Cell, QueryResult } from "./result";
import { type Rows, useRows } from "./useRows";

interface ResultTableProps {
  threadId: string;
  result: QueryResult;
  /** Rows of a page. */
  size?: number;
  /** Rows to mark, as the query orders them; the first is brought into sight. */
  marked?: readonly number[];
}

const NONE: readonly number[] = [];
/** Rows on paper, of those that the page holds. */
const MOST_PRINTED = 100;

/** The rows of a result, page by page, in a box that scrolls by itself. */
export function ResultTable({ threadId, result, size = 20, marked = NONE }: ResultTableProps) {
  const t = useT();
  const rows = useRows(threadId, result, size, marked[0]);
  const prints = useStore(printing) && rows.sort.column === null;
  if (rows.total === 0) return <p className={styles["empty"]}>{t("results.noRows")}</p>;
  return (
    <>
      <Box result={result} rows={prints ? { ...rows, rows: result.rows.slice(0, MOST_PRINTED), offset: 0 } : rows} marked={rows.sort.column === null ? marked : []} />
      <Notes rows={rows} />
      {prints ? <Printed rows={Math.min(result.rows.length, MOST_PRINTED)} total={rows.total} /> : <Pager rows={rows} size={size} />}
    </>
  );
}

/** How many of the rows are on paper. */
function Printed({ rows, total }: { rows: number; total: number | null }) {
  const t = useT();
  if (total === rows) return null;
  return <p className={styles["note"]}>{total === null ? t("results.printedOfMany", { n: number(rows) }) : t("results.printed", { n: number(rows), total: number(total) })}</p>;
}

function Box({ result, rows, marked }: { result: QueryResult; rows: Rows; marked: readonly number[] }) {
  const t = useT();
  const kinds = kindsOf(result.columns, [...result.rows.slice(0, 100), ...rows.rows]);
  return (
    <div
      className={classes(styles["box"], rows.loading && styles["loading"])}
      // What scrolls is reached by the keyboard.
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      role="region"
      aria-label={t("results.rowsOf", { label: result.label ?? "" })}
      aria-busy={rows.loading}
    >
      <table className={styles["table"]}>
        <Head columns={result.columns} kinds={kinds} rows={rows} sorts={result.step !== null} />
        <tbody>
          {rows.rows.map((row, at) => (
            <Line key={rows.offset + at} cells={row} kinds={kinds} mark={marked.includes(rows.offset + at)} first={rows.offset + at === marked[0]} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head({ columns, kinds, rows, sorts }: { columns: readonly string[]; kinds: readonly Kind[]; rows: Rows; sorts: boolean }) {
  const { sort } = rows;
  return (
    <thead>
      <tr>
        {columns.map((name, at) => {
          const order = sort.column === name ? (sort.descending ? "descending" : "ascending") : "none";
          return (
            <th key={at} scope="col" className={side(kinds[at])} {...(sorts ? { "aria-sort": order } : {})}>
              {sorts ? (
                <button type="button" className={styles["sort"]} onClick={() => rows.sortBy(name)}>
                  {name}
                  <span aria-hidden="true" className={styles["order"]}>
                    {order === "none" ? "" : order === "ascending" ? "↑" : "↓"}
                  </span>
                </button>
              ) : (
                name
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Line({ cells, kinds, mark, first }: { cells: readonly Cell[]; kinds: readonly Kind[]; mark: boolean; first: boolean }) {
  const line = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (first) line.current?.scrollIntoView({ block: "nearest" });
  }, [first]);
  return (
    <tr ref={line} className={mark ? styles["mark"] : undefined} aria-current={mark || undefined}>
      {cells.map((cell, at) => (
        <td key={at} className={side(kinds[at])}>
          {cell === null ? <span className={styles["null"]}>NULL</span> : shownCell(cell, kinds[at] ?? "text", locale())}
        </td>
      ))}
    </tr>
  );
}

const side = (kind: Kind | undefined) => (kind === "number" ? styles["number"] : kind === "time" ? styles["time"] : undefined);

function Notes({ rows }: { rows: Rows }) {
  const t = useT();
  const notes = [rows.rerun && t("results.rerun"), !rows.whole && t("results.notWhole"), rows.cut > 0 && t("results.cut", { n: rows.cut })].filter(Boolean);
  if (rows.error) {
    return (
      <div role="alert" className={styles["wrong"]}>
        <span>{sentence(rows.error)}</span>
        <Button onClick={rows.retry}>{t("shell.retry")}</Button>
      </div>
    );
  }
  return notes.length ? <p className={styles["note"]}>{notes.join(" ")}</p> : null;
}
