/* oxlint-disable react/no-array-index-key -- rows and columns are known by their places alone: columns may share a name */
import { useEffect, useRef } from "react";
import { printing } from "../chat/printing";
import { useGiven } from "../formats/chosen";
import { type ColumnFormat, isNumeric } from "../formats/columnFormat";
import { TEXT, formatsOf } from "../formats/guess";
import { headingOf } from "../formats/heading";
import { isMoment, written } from "../formats/written";
import { locale, useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { useStore } from "../store";
import { Button, classes } from "../ui";
import { ColumnMenu } from "./ColumnMenu";
import { Pager } from "./Pager";
import styles from "./ResultTable.module.css";
import type { Cell, QueryResult } from "./result";
import { type Rows, useRows } from "./useRows";
import { useWords } from "./words";

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
      <Box
        threadId={threadId}
        result={result}
        rows={prints ? { ...rows, rows: result.rows.slice(0, MOST_PRINTED), offset: 0 } : rows}
        marked={rows.sort.column === null ? marked : []}
      />
      <Notes rows={rows} />
      {prints ? (
        <Printed rows={Math.min(result.rows.length, MOST_PRINTED)} total={rows.total} />
      ) : (
        <Pager rows={rows} size={size} />
      )}
    </>
  );
}

/** How many of the rows are on paper. */
function Printed({ rows, total }: { rows: number; total: number | null }) {
  const t = useT();
  if (total === rows) return null;
  return (
    <p className={styles["note"]}>
      {total === null
        ? t("results.printedOfMany", { n: number(rows) })
        : t("results.printed", { n: number(rows), total: number(total) })}
    </p>
  );
}

function Box({
  threadId,
  result,
  rows,
  marked,
}: {
  threadId: string;
  result: QueryResult;
  rows: Rows;
  marked: readonly number[];
}) {
  const t = useT();
  const formats = formatsOf(result.columns, [...result.rows.slice(0, 100), ...rows.rows], useGiven(threadId, result));
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
        <Head threadId={threadId} columns={result.columns} formats={formats} rows={rows} sorts={result.step !== null} />
        <tbody>
          {rows.rows.map((row, at) => (
            <Line
              key={rows.offset + at}
              cells={row}
              formats={formats}
              mark={marked.includes(rows.offset + at)}
              first={rows.offset + at === marked[0]}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface HeadProps {
  threadId: string;
  columns: readonly string[];
  formats: readonly ColumnFormat[];
  rows: Rows;
  sorts: boolean;
}

function Head({ threadId, columns, formats, rows, sorts }: HeadProps) {
  const words = useWords();
  const { sort } = rows;
  return (
    <thead>
      <tr>
        {columns.map((name, at) => {
          const heading = headingOf(name, words);
          const format = formats[at] ?? TEXT;
          const cell = rows.rows.map((row) => row[at] ?? null).find((each) => each !== null) ?? null;
          const order = sort.column === name ? (sort.descending ? "descending" : "ascending") : "none";
          return (
            <th
              key={at}
              scope="col"
              className={side(format, cell)}
              title={heading === name ? undefined : name}
              {...(sorts ? { "aria-sort": order } : {})}
            >
              <div className={styles["heading"]}>
                {sorts ? (
                  <button type="button" className={styles["sort"]} onClick={() => rows.sortBy(name)}>
                    {heading}
                    <span aria-hidden="true" className={styles["order"]}>
                      {order === "none" ? "" : order === "ascending" ? "↑" : "↓"}
                    </span>
                  </button>
                ) : (
                  heading
                )}
                {(isNumeric(format) || typeof cell === "number" || isMoment(cell)) && (
                  <ColumnMenu threadId={threadId} column={name} heading={heading} format={format} cell={cell} />
                )}
              </div>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Line({
  cells,
  formats,
  mark,
  first,
}: {
  cells: readonly Cell[];
  formats: readonly ColumnFormat[];
  mark: boolean;
  first: boolean;
}) {
  const line = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (first) line.current?.scrollIntoView({ block: "nearest" });
  }, [first]);
  return (
    <tr ref={line} className={mark ? styles["mark"] : undefined} aria-current={mark || undefined}>
      {cells.map((cell, at) => (
        <Value key={at} cell={cell} format={formats[at] ?? TEXT} />
      ))}
    </tr>
  );
}

/** A cell by its column's format. All of its digits are told where somebody points at it. */
function Value({ cell, format }: { cell: Cell; format: ColumnFormat }) {
  if (cell === null)
    return (
      <td className={side(format, cell)}>
        <span className={styles["null"]}>NULL</span>
      </td>
    );
  const text = written(cell, format, locale());
  const whole = typeof cell === "number" && written(cell, { kind: "plain" }, locale());
  const isCut = whole && whole.length > text.replace(/[^\d.-]/g, "").length;
  return (
    <td className={side(format, cell)} title={isCut ? whole : undefined}>
      {text}
    </td>
  );
}

const side = (format: ColumnFormat, cell: Cell) =>
  isNumeric(format) && format.kind !== "plain" ? styles["number"] : isMoment(cell) ? styles["time"] : undefined;

function Notes({ rows }: { rows: Rows }) {
  const t = useT();
  const notes = [
    rows.rerun && t("results.rerun"),
    !rows.whole && t("results.notWhole"),
    rows.cut > 0 && t("results.cut", { n: rows.cut }),
  ].filter(Boolean);
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
