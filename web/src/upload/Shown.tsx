import { useId, useRef, useState } from "react";
import { type SourceView, type TableView, type UploadView, addSource } from "../api/sources";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { refreshSources } from "../settings/refresh";
import { Button } from "../ui";
import styles from "./Upload.module.css";

interface ShownProps {
  view: UploadView;
  /** Whether its file is one of several. */
  several: boolean;
  onAdded: (source: SourceView) => void;
  onGone: () => void;
}

/** A file's tables, before it becomes a source under a name. */
export function Shown({ view, several, onAdded, onGone }: ShownProps) {
  const t = useT();
  const id = useId();
  const name = useRef<HTMLInputElement>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const add = async () => {
    setBusy(true);
    try {
      const source = await addSource({ upload: view.upload, name: name.current?.value.trim() || view.name });
      await refreshSources();
      onAdded(source);
    } catch (error) {
      setError(error);
      setBusy(false);
    }
  };
  return (
    <div className={styles["parts"]}>
      {view.tables.map((table) => (
        <Preview key={table.name} table={table} />
      ))}
      {view.of > view.tables.length && <p className={styles["note"]}>{t("settings.tablesOf", { shown: view.tables.length, n: view.of })}</p>}
      {view.notes.map((note) => (
        <p key={note} className={styles["note"]}>
          {note}
        </p>
      ))}
      <div className={styles["row"]}>
        <label htmlFor={id}>{t("settings.sourceName")}</label>
        <input id={id} ref={name} className={styles["name"]} defaultValue={view.name} maxLength={100} />
        <Button kind="primary" disabled={busy} onClick={() => void add()}>
          {t("settings.addSource")}
        </Button>
        <Button onClick={onGone}>{t(several ? "upload.leave" : "settings.cancel")}</Button>
      </div>
      {error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(error)}
        </p>
      )}
    </div>
  );
}

function Preview({ table: { name, columns, rows, problem } }: { table: TableView }) {
  const t = useT();
  if (problem) return <p className={styles["wrong"]}>{`${name}: ${problem}`}</p>;
  return (
    // A region that scrolls is reached by the keyboard.
    <div className={styles["scroll"]} tabIndex={0} role="region" aria-label={t("settings.tableOf", { name })}>
      <table className={styles["table"]}>
        <caption>{name}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col">
                {column.name}
                <small>{column.type}</small>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, place) => (
                <td key={place}>{cell === null ? <span className={styles["null"]}>NULL</span> : String(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
