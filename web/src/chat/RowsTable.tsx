import { type ColumnFormat, isNumeric } from "../formats/columnFormat";
import { TEXT, formatsOf } from "../formats/guess";
import { written } from "../formats/written";
import { locale, useT } from "../i18n";
import type { Cell, Row } from "../results/result";
import styles from "./Observed.module.css";

interface RowsTableProps {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  /** How columns are written, by name; the others are guessed. */
  formats?: Readonly<Record<string, ColumnFormat>>;
}

const NONE = {};

/** Rows that came with a step. The card of the result pages and sorts them. */
const SHOWN = 20;

export function RowsTable({ columns, rows, formats = NONE }: RowsTableProps) {
  const t = useT();
  const known = formatsOf(columns, rows as readonly Row[], formats);
  return (
    <div className={styles["tableBox"]} tabIndex={0} role="group" aria-label={t("chat.result")}>
      <table>
        <thead>
          <tr>
            {columns.map((column, place) => (
              <th key={place}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map((row, index) => (
            <tr key={index}>
              {columns.map((_, place) => (
                <Value key={place} cell={row[place] as Cell | undefined} format={known[place] ?? TEXT} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ cell, format }: { cell: Cell | undefined; format: ColumnFormat }) {
  const t = useT();
  if (cell === null || cell === undefined) return <td className={styles["null"]}>{t("chat.null")}</td>;
  return (
    <td className={isNumeric(format) && format.kind !== "plain" ? styles["number"] : undefined}>
      {written(cell, format, locale())}
    </td>
  );
}
