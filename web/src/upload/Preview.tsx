import type { Json, NoteView, SourcePreview, TableView } from "../api/types";
import { isComplete, isMessage, t, useT } from "../i18n";
import styles from "./Upload.module.css";
import { groupNotes } from "./notes";
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
      {view.of > view.tables.length && (
        <p className={styles["note"]}>{t("files.tablesOf", { shown: view.tables.length, n: view.of })}</p>
      )}
      {groupNotes(view.notes, view.of).map(({ note, on }) => (
        <p key={`${note.text} ${on.join()}`} className={styles["note"]} dir="auto">
          {on.length > 0 && `${on.join(", ")}: `}
          {noteText(note)}
          {onChange && note.code.startsWith("encoding_") && (
            <>
              {" · "}
              <button type="button" className={styles["action"]} onClick={onChange}>
                {t("files.change")}
              </button>
            </>
          )}
        </p>
      ))}
    </>
  );
}

/** A note in the page's language, if the page knows what it says. */
function noteText({ code, values, text }: NoteView): string {
  const id = `note.${code}`;
  return isMessage(id) && isComplete(id, values) ? t(id, values) : text;
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
const cellText = (cell: Exclude<Json, null>): string =>
  typeof cell === "object" ? JSON.stringify(cell) : String(cell);
