import { useRef, useState } from "react";
import { useSources } from "../api/server";
import type { SourceView } from "../api/sources";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { chooseSource, chooseSourceIn } from "../layout/choice";
import { currentRoute } from "../route";
import { useStore } from "../store";
import { Button, Dialog, say } from "../ui";
import { FileToSource } from "./FileToSource";
import styles from "./Upload.module.css";
import { leaveAll, next, offered } from "./offered";

/** Files that were dropped or attached, one after the other. Each becomes a source, and the last one is asked. */
export function UploadDialog() {
  const t = useT();
  const [file, ...rest] = useStore(offered);
  const answer = useSources();
  const [done, setDone] = useState(0);
  const question = useRef<HTMLElement | null>(null);
  const goOn = () => {
    setDone(done + 1);
    next();
  };
  const added = (source: SourceView) => {
    const route = currentRoute();
    if (route.page === "conversation") chooseSourceIn(route.id, source.name);
    else chooseSource(source.name);
    question.current = document.getElementById("question");
    say({ text: t("upload.added", { name: source.name }), about: "source" });
    goOn();
  };
  if (!file) return null;
  const count = done + 1 + rest.length;
  return (
    <Dialog open onClose={leaveAll} title={count > 1 ? t("upload.titleOf", { n: done + 1, count }) : t("upload.title")} back={question}>
      {answer.error !== null && (
        <div className={styles["row"]}>
          <p role="alert" className={styles["wrong"]}>
            {sentence(answer.error)}
          </p>
          <Button onClick={() => void answer.refetch()}>{t("shell.retry")}</Button>
        </div>
      )}
      {answer.data && !answer.data.changeable && (
        <>
          <p>{t("settings.sourcesListed")}</p>
          <div className={styles["row"]}>
            <Button onClick={leaveAll}>{t("shell.close")}</Button>
          </div>
        </>
      )}
      {answer.data?.changeable && <p className={styles["about"]}>{t(count > 1 ? "upload.aboutAll" : "upload.about")}</p>}
      {answer.data?.changeable && <FileToSource key={done} file={file} several={count > 1} onAdded={added} onGone={goOn} />}
    </Dialog>
  );
}
