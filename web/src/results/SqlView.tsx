import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import * as api from "../api/results";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { stepOf } from "../stream/history";
import { Button, Icon, Kbd } from "../ui";
import styles from "./SqlView.module.css";
import { useScope } from "./receiptScope";
import { triedOf } from "./tried";
import { useSqlEditor } from "./useSqlEditor";

interface SqlViewProps {
  threadId: string;
  /** Null outside runs, where nothing can be run. */
  step: number | null;
  sql: string;
  label: string | null;
}

/** A query that is edited in its place, and run: what it gives then stands below this card, and in no conversation. */
export function SqlView({ threadId, step, sql, label }: SqlViewProps) {
  const t = useT();
  const { reads } = useScope();
  const box = useRef<HTMLDivElement>(null);
  const [text, setText] = useState(sql);
  const edited = useMutation({
    mutationFn: (query: string) => api.tryEdited(threadId, step ?? 0, query),
    onSuccess: ({ step: tried }) => triedOf(threadId, step).set(stepOf(tried)),
  });
  const changed = step !== null && text.trim() !== sql.trim() && text.trim() !== "";
  const run = () => {
    if (changed && !edited.isPending) edited.mutate(text);
  };
  const editor = useSqlEditor(box, {
    sql,
    label: t("sql.sqlOf", { label: label ?? "" }),
    editable: step !== null,
    onChange: setText,
    onRun: run,
  });
  const reset = () => {
    editor.reset();
    edited.reset();
  };
  return (
    <div className={styles["sql"]}>
      <div ref={box} />
      {!editor.ready && <pre className={styles["text"]}>{sql}</pre>}
      {step === null && <p className={styles["outside"]}>{t(reads ? "sql.readOnly" : "sql.outside")}</p>}
      {edited.error && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(edited.error)}
        </p>
      )}
      {step !== null && editor.ready && !changed && (
        <div className={styles["bar"]}>
          <span className={styles["note"]}>{t("sql.editAbout")}</span>
          <Button onClick={editor.focus}>
            <Icon name="edit" size={16} /> {t("sql.edit")}
          </Button>
        </div>
      )}
      {changed && (
        <div className={styles["bar"]}>
          <span className={styles["note"]}>{t("sql.editNote")}</span>
          <Button kind="quiet" onClick={reset}>
            {t("sql.reset")}
          </Button>
          <Button kind="primary" onClick={run} disabled={edited.isPending}>
            {t(edited.isPending ? "sql.running" : "sql.run")} <Kbd keys="Mod+↵" />
          </Button>
        </div>
      )}
    </div>
  );
}
