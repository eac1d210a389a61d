import { type DragEvent, useRef, useState } from "react";
import { type TableView, type UploadView, addSource, discard, upload } from "../api/sources";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { Button, classes } from "../ui";
import styles from "./Upload.module.css";
import { Part } from "./parts";
import { refreshSources } from "./refresh";

type State =
  | { step: "none"; error: unknown }
  | { step: "sends"; file: string; part: number; cancel: () => void }
  | { step: "shown"; view: UploadView; error: unknown };

const NONE: State = { step: "none", error: null };
const KINDS = ".csv,.tsv,.parquet,.xlsx,.json,.jsonl,.ndjson,.sqlite,.sqlite3,.db";

/** A file that becomes a source: sent, looked at, then added or thrown away. */
export function Upload() {
  const t = useT();
  const [state, setState] = useState<State>(NONE);
  const send = async (file: File | undefined) => {
    if (!file) return;
    const { answer, cancel } = upload(file, (part) => setState((now) => (now.step === "sends" ? { ...now, part } : now)));
    setState({ step: "sends", file: file.name, part: 0, cancel: () => (cancel(), setState(NONE)) });
    try {
      setState({ step: "shown", view: await answer, error: null });
    } catch (error) {
      setState({ step: "none", error });
    }
  };
  return (
    <Part title={t("settings.upload")} about={t("settings.uploadAbout")}>
      {state.step === "none" && <Drop onFile={(file) => void send(file)} />}
      {state.step === "sends" && (
        <div className={styles["row"]}>
          <progress className={styles["progress"]} value={state.part} aria-label={state.file} />
          <span>{number(state.part, { style: "percent" })}</span>
          <Button onClick={state.cancel}>{t("settings.cancel")}</Button>
        </div>
      )}
      {state.step === "shown" && <Shown view={state.view} onDone={() => setState(NONE)} onError={(error) => setState({ ...state, error })} />}
      {state.step !== "sends" && state.error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(state.error)}
        </p>
      )}
    </Part>
  );
}

function Drop({ onFile }: { onFile: (file: File | undefined) => void }) {
  const t = useT();
  const field = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFile(event.dataTransfer.files[0]);
  };
  return (
    <>
      <button
        type="button"
        className={classes(styles["drop"], over && styles["over"])}
        onClick={() => field.current?.click()}
        onDragOver={(event) => (event.preventDefault(), setOver(true))}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
      >
        {t("settings.drop")}
      </button>
      <input ref={field} type="file" hidden accept={KINDS} aria-label={t("settings.upload")} onChange={(event) => onFile(event.target.files?.[0])} />
    </>
  );
}

interface ShownProps {
  view: UploadView;
  onDone: () => void;
  onError: (error: unknown) => void;
}

function Shown({ view, onDone, onError }: ShownProps) {
  const t = useT();
  const name = useRef<HTMLInputElement>(null);
  const add = async () => {
    try {
      await addSource({ upload: view.upload, name: name.current?.value.trim() || view.name });
      onDone();
      await refreshSources();
    } catch (error) {
      onError(error);
    }
  };
  const drop = () => {
    onDone();
    // What nobody adds is deleted after a day anyway.
    void discard(view.upload).catch(() => undefined);
  };
  return (
    <>
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
        <input ref={name} className={styles["name"]} aria-label={t("settings.sourceName")} defaultValue={view.name} maxLength={100} />
        <Button kind="primary" onClick={() => void add()}>
          {t("settings.addSource")}
        </Button>
        <Button onClick={drop}>{t("settings.discard")}</Button>
      </div>
    </>
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
