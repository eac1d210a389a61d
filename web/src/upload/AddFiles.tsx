import { type RefObject, useId, useRef, useState } from "react";
import { addFiles, addSource } from "../api/sources";
import type { SourceView, UploadView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { filesOf } from "../layout/files";
import { refreshSources } from "../settings/refresh";
import { Button } from "../ui";
import styles from "./Upload.module.css";
import { isDatabase } from "./kinds";

export interface ReadyFile {
  id: number;
  view: UploadView;
}

interface AddFilesProps {
  /** The button that adds them. */
  main: RefObject<HTMLButtonElement | null>;
  ready: readonly ReadyFile[];
  /** The source that is asked here, to which files can be added. */
  current: SourceView | null;
  /** Uploads that have become a source's. */
  added: RefObject<Set<string>>;
  onDone: (source: SourceView, ids: readonly number[], text: string) => void;
  onCancel: () => void;
}

/** How the files are added: as one source of a name, or to the one that is asked here. Always in sight. */
export function AddFiles({ main, ready, current, added, onDone, onCancel }: AddFilesProps) {
  const t = useT();
  const id = useId();
  const name = useRef<HTMLInputElement>(null);
  const [together, setTogether] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const waits = busy || ready.length === 0;
  const tables = ready.filter(({ view }) => !isDatabase(view.file));
  const databases = ready.filter(({ view }) => isDatabase(view.file));
  const to = together && tables.length > 0 ? current : null;
  const isNamed = tables.length > 0 ? to === null : databases.length === 1;
  const add = async (
    files: readonly ReadyFile[],
    request: (uploads: string[]) => Promise<SourceView>,
    text: (source: SourceView) => string,
  ) => {
    const uploads = files.map(({ view }) => view.upload);
    const source = await request(uploads);
    for (const each of uploads) added.current.add(each);
    await refreshSources();
    onDone(
      source,
      files.map((each) => each.id),
      text(source),
    );
  };
  const asked = (source: SourceView) => t("files.added", { name: source.name });
  const addAll = async () => {
    setBusy(true);
    setError(null);
    const given = name.current?.value.trim();
    const define = (uploads: string[]) => addSource({ uploads, ...(given && { name: given }) });
    try {
      // What is asked next is added last.
      for (const each of databases)
        await add(
          [each],
          (uploads) => (tables.length || databases.length > 1 ? addSource({ uploads }) : define(uploads)),
          asked,
        );
      if (to)
        await add(
          tables,
          (uploads) => addFiles(to.name, uploads),
          (source) => t("files.addedTo", { name: source.name, n: tables.length }),
        );
      else if (tables.length) await add(tables, define, asked);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <div className={styles["footer"]}>
      {tables.length > 0 &&
        databases.map(({ view }) => (
          <p key={view.upload} className={styles["note"]}>
            {t("files.apart", { file: view.file })}
          </p>
        ))}
      {current && tables.length > 0 && (
        <label className={styles["row"]}>
          <input
            type="checkbox"
            checked={together}
            onChange={(event) => (setTogether(event.target.checked), setError(null))}
          />
          {t("files.together", { files: filesOf(current) })}
        </label>
      )}
      {error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(error)}
        </p>
      )}
      <div className={styles["row"]}>
        {isNamed && (
          <>
            <label htmlFor={id}>{t("files.name")}</label>
            <input
              key={ready.map(({ view }) => view.upload).join()}
              id={id}
              ref={name}
              className={styles["name"]}
              defaultValue={(tables.length ? tables : databases)
                .map(({ view }) => view.name)
                .join("_")
                .slice(0, 60)}
              maxLength={100}
              onChange={() => setError(null)}
            />
          </>
        )}
        <span className={styles["space"]} />
        {/* It has the focus from the start, also where the sources came after the dialog: one that is disabled cannot. */}
        <Button ref={main} autoFocus kind="primary" aria-disabled={waits} onClick={() => waits || void addAll()}>
          {t("files.add", { n: Math.max(ready.length, 1) })}
        </Button>
        <Button onClick={onCancel}>{t("settings.cancel")}</Button>
      </div>
    </div>
  );
}
