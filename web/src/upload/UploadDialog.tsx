import { useRef, useState } from "react";
import { useSources } from "../api/server";
import type { SourceView, UploadView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { chooseSource, chooseSourceIn, chosenIn, useChoice } from "../layout/choice";
import { sourceOf } from "../layout/files";
import { currentRoute } from "../route";
import { useStore } from "../store";
import { conversation } from "../stream/opened";
import { Button, Dialog, say } from "../ui";
import { AddFiles } from "./AddFiles";
import { FilePart } from "./FilePart";
import styles from "./Upload.module.css";
import { isDatabase } from "./kinds";
import { leave, leaveAll, offered } from "./offered";

/** Rows that are shown of the tables of a file, and of those of several. */
const ROWS = 5;
const ROWS_OF_SEVERAL = 3;

/** What the next question asks, here: of uploaded files, more can be added to it. `first` is what new conversations ask. */
function currentSource(sources: readonly SourceView[], first: string | null): SourceView | null {
  const route = currentRoute();
  const spec =
    route.page === "conversation" ? (chosenIn(route.id) ?? conversation(route.id).get().data?.source) : first;
  const found = sourceOf(spec ?? null, sources);
  return found?.files.some((file) => !isDatabase(file)) ? found : null;
}

function choose(source: SourceView) {
  const route = currentRoute();
  if (route.page === "conversation") chooseSourceIn(route.id, source.name);
  else chooseSource(source.name);
}

/** Files that were dropped, attached or pasted. They become one source, or join the one that is asked here. */
export function UploadDialog() {
  const t = useT();
  const offers = useStore(offered);
  const answer = useSources();
  const { source: first } = useChoice();
  const [views, setViews] = useState<Readonly<Record<number, UploadView | null>>>({});
  const added = useRef(new Set<string>());
  const question = useRef<HTMLElement | null>(null);
  const main = useRef<HTMLButtonElement>(null);
  if (offers.length === 0) return null;
  const current = currentSource(answer.data?.sources ?? [], first);
  const done = (source: SourceView, ids: readonly number[], text: string) => {
    if (source.name !== current?.name) choose(source);
    question.current = document.getElementById("question");
    say({ text, about: "source" });
    leave(ids);
  };
  const ready = offers.flatMap(({ id }) => (views[id] ? [{ id, view: views[id] }] : []));
  const isSeveral = offers.length > 1;
  return (
    <Dialog open onClose={leaveAll} title={t("files.title")} focus={main} back={question}>
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
            {offers[0]?.asText && (
              <Button
                onClick={() => {
                  offers[0]?.asText?.();
                  leaveAll();
                }}
              >
                {t("files.asText")}
              </Button>
            )}
            <Button onClick={leaveAll}>{t("shell.close")}</Button>
          </div>
        </>
      )}
      {answer.data?.changeable && (
        <div className={styles["parts"]}>
          <p className={styles["about"]}>{t(isSeveral ? "files.aboutAll" : "files.about")}</p>
          {offers.map((each) => (
            <FilePart
              key={each.id}
              offer={each}
              rows={isSeveral ? ROWS_OF_SEVERAL : ROWS}
              added={added}
              onView={(view) => setViews((now) => ({ ...now, [each.id]: view }))}
              onReplaced={(source) => done(source, [each.id], t("files.added", { name: source.name }))}
              onGone={() => leave([each.id])}
            />
          ))}
          <AddFiles main={main} ready={ready} current={current} added={added} onDone={done} onCancel={leaveAll} />
        </div>
      )}
    </Dialog>
  );
}
