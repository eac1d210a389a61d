import { useT } from "../i18n";
import styles from "./Observed.module.css";

interface RowsTableProps {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
}

/** Rows that came with a step. The card of the result pages and sorts them. */
const SHOWN = 20;

export function RowsTable({ columns, rows }: RowsTableProps) {
  const t = useT();
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
                <Cell key={place} value={row[place]} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ value }: { value: unknown }) {
  const t = useT();
  if (value === null || value === undefined) return <td className={styles["null"]}>{t("chat.null")}</td>;
  const isNumber = typeof value === "number";
  return <td className={isNumber ? styles["number"] : undefined}>{typeof value === "object" ? JSON.stringify(value) : String(value)}</td>;
}
