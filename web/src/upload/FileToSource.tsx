import { useEffect, useEffectEvent, useId, useRef, useState } from "react";
import { Problem } from "../api/problem";
import { type OnConflict, type SourceView, type UploadView, discard, upload } from "../api/sources";
import { useT } from "../i18n";
import { dayAndTime, number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { refreshSources } from "../settings/refresh";
import { Button } from "../ui";
import { Shown } from "./Shown";
import styles from "./Upload.module.css";
import { ENCODINGS, isKnown, isText } from "./kinds";

type State = { step: "sends"; part: number } | { step: "failed"; error: unknown } | { step: "shown"; view: UploadView };

interface FileToSourceProps {
  file: File;
  /** Whether it is one of several. */
  several?: boolean;
  onAdded: (source: SourceView) => void;
  /** It was cancelled, thrown away, or cannot be used. */
  onGone: () => void;
}

const BEGUN: State = { step: "sends", part: 0 };

/**
 * A file that becomes a source: sent, looked at, then added or thrown away. It leaves nothing behind when it goes. One
 * with the name of a source's file takes its place, or stands beside it, as the person chooses.
 */
export function FileToSource(props: FileToSourceProps) {
  const t = useT();
  const [tries, setTries] = useState(0);
  const [encoding, setEncoding] = useState("");
  const [onConflict, setOnConflict] = useState<OnConflict>("");
  const { file, onGone } = props;
  if (!isKnown(file.name)) return <Failed said={t("upload.unknown", { file: file.name })} onGone={onGone} />;
  return (
    <div className={styles["parts"]}>
      {isText(file.name) && <Encoding value={encoding} onChoose={setEncoding} />}
      <Attempt
        key={`${tries} ${encoding} ${onConflict}`}
        {...props}
        encoding={encoding}
        onConflict={onConflict}
        onAgain={() => setTries(tries + 1)}
        onChoose={setOnConflict}
      />
    </div>
  );
}

function Encoding({ value, onChoose }: { value: string; onChoose: (encoding: string) => void }) {
  const t = useT();
  const id = useId();
  return (
    <div className={styles["row"]}>
      <label htmlFor={id}>{t("upload.encoding")}</label>
      <select id={id} className={styles["name"]} value={value} onChange={(event) => onChoose(event.target.value)}>
        <option value="">{t("upload.encodingFound")}</option>
        {ENCODINGS.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

interface AttemptProps extends FileToSourceProps {
  encoding: string;
  onConflict: OnConflict;
  onAgain: () => void;
  onChoose: (onConflict: OnConflict) => void;
}

function Attempt({ file, encoding, onConflict, several = false, onAdded, onGone, onAgain, onChoose }: AttemptProps) {
  const t = useT();
  const [state, setState] = useState<State>(BEGUN);
  const added = useRef(false);
  const replaced = useEffectEvent(onAdded);
  useEffect(() => {
    let gone = false;
    let sent: UploadView | null = null;
    // What nobody adds is deleted after a day anyway.
    const drop = (view: UploadView) => {
      if (view.source === null) void discard(view.upload).catch(() => undefined);
    };
    const { answer, cancel } = upload(file, { encoding, onConflict }, (part) => gone || setState({ step: "sends", part }));
    answer.then(
      async (view) => {
        sent = view;
        if (view.source) await refreshSources();
        if (gone) drop(view);
        else if (view.source) replaced(view.source);
        else setState({ step: "shown", view });
      },
      (error: unknown) => gone || setState({ step: "failed", error }),
    );
    return () => {
      gone = true;
      cancel();
      if (sent !== null && !added.current) drop(sent);
    };
  }, [file, encoding, onConflict]);
  const leave = several ? "upload.leave" : "settings.cancel";
  if (state.step === "failed" && state.error instanceof Problem && state.error.code === "upload_exists")
    return <Exists problem={state.error} leave={t(leave)} onChoose={onChoose} onGone={onGone} />;
  if (state.step === "failed") return <Failed said={sentence(state.error)} onGone={onGone} onAgain={onAgain} />;
  if (state.step === "shown") return <Shown view={state.view} several={several} onAdded={(source) => ((added.current = true), onAdded(source))} onGone={onGone} />;
  return (
    <div className={styles["row"]}>
      <span className={styles["file"]}>{file.name}</span>
      <progress className={styles["progress"]} value={state.part} aria-label={file.name} />
      <span>{number(state.part, { style: "percent" })}</span>
      <Button onClick={onGone}>{t("settings.cancel")}</Button>
    </div>
  );
}

/** There is a file of this name: which one, and what may become of the new one. */
function Exists({ problem, leave, onChoose, onGone }: { problem: Problem; leave: string; onChoose: AttemptProps["onChoose"]; onGone: () => void }) {
  const t = useT();
  const said = (name: string) => String(problem.params[name]);
  return (
    <div className={styles["parts"]}>
      <p role="alert">{t("upload.exists", { file: said("name"), source: said("source"), at: dayAndTime(said("uploaded_at")), other: said("other") })}</p>
      <div className={styles["row"]}>
        <Button kind="danger" onClick={() => onChoose("replace")}>
          {t("upload.replace")}
        </Button>
        <Button onClick={() => onChoose("keep_both")}>{t("upload.keepBoth")}</Button>
        <Button onClick={onGone}>{leave}</Button>
      </div>
    </div>
  );
}

function Failed({ said, onGone, onAgain }: { said: string; onGone: () => void; onAgain?: () => void }) {
  const t = useT();
  return (
    <div className={styles["row"]}>
      <p role="alert" className={styles["wrong"]}>
        {said}
      </p>
      {onAgain && <Button onClick={onAgain}>{t("shell.retry")}</Button>}
      <Button onClick={onGone}>{t("upload.leave")}</Button>
    </div>
  );
}
