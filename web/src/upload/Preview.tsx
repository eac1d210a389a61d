import type { SourcePreview, TableView } from "../api/sources";
import type { Json } from "../api/types";
import { useT } from "../i18n";
import styles from "./Upload.module.css";
import { kindName, kindOf } from "./types";

interface PreviewProps {
  view: SourcePreview;
  rows: number;
  /** Opens the choice of the encoding. */
  onChange: (() => void) | undefined;
}

/** A file's tables before it becomes a source, and what was guessed of it. */
export function Preview({ view, rows, onChange }: PreviewProps) {
  const t = useT();
  return (
    <>
      {view.tables.map((table) => (
        <Table key={table.name} table={table} rows={rows} />
      ))}
      {view.of > view.tables.length && <p className={styles["note"]}>{t("files.tablesOf", { shown: view.tables.length, n: view.of })}</p>}
      {view.notes.map((note) => (
        <p key={note} className={styles["note"]}>
          {note}
        </p>
      ))}
      {onChange && (
        <p className={styles["note"]}>
          {t("files.encoding")} ·{" "}
          <button type="button" className={styles["action"]} onClick={onChange}>
            {t("files.change")}
          </button>
        </p>
      )}
    </>
  );
}

function Table({ table: { name, columns, rows, problem }, rows: most }: { table: TableView; rows: number }) {
  const t = useT();
  if (problem) return <p className={styles["wrong"]}>{`${name}: ${problem}`}</p>;
  const typeName = (type: string) => {
    const kind = kindOf(type);
    return kind ? t(kindName(kind)) : type.toLowerCase();
  };
  return (
    // A region that scrolls is reached by the keyboard.
    <div className={styles["scroll"]} tabIndex={0} role="region" aria-label={t("files.tableOf", { name })}>
      <table className={styles["table"]}>
        <caption>{name}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" data-kind={kindOf(column.type)}>
                {column.name}
                <small title={column.type}>{typeName(column.type)}</small>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row, index) => (
            <tr key={index}>
              {row.map((cell, place) => (
                <td key={place} data-kind={kindOf(columns[place]?.type ?? "")}>
                  {cell === null ? <span className={styles["null"]}>NULL</span> : cellText(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A value as text: one of several parts as JSON. */
const cellText = (cell: Exclude<Json, null>): string => (typeof cell === "object" ? JSON.stringify(cell) : String(cell));
