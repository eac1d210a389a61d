import { type RefObject, useEffect, useEffectEvent, useId, useState } from "react";
import { Problem } from "../api/problem";
import { type OnConflict, discard, upload } from "../api/sources";
import type { SourceView, UploadView } from "../api/types";
import { useT } from "../i18n";
import { dayAndTime, number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { refreshSources } from "../settings/refresh";
import { Button, IconButton } from "../ui";
import { Preview } from "./Preview";
import styles from "./Upload.module.css";
import { ENCODINGS, isKnown, isText } from "./kinds";
import type { Offer } from "./offered";

type State = { step: "sends"; part: number } | { step: "failed"; error: unknown } | { step: "shown"; view: UploadView };

interface FilePartProps {
  offer: Offer;
  /** Rows that are shown of each table. */
  rows: number;
  /** Uploads that have become a source's: they are not discarded when this goes. */
  added: RefObject<Set<string>>;
  /** What was uploaded; null: nothing is yet. */
  onView: (view: UploadView | null) => void;
  /** It took the place of a file of a source. */
  onReplaced: (source: SourceView) => void;
  onGone: () => void;
}

const BEGUN: State = { step: "sends", part: 0 };

/**
 * One of the files that are to be added: sent, and looked at. It leaves nothing behind when it goes. One with the name
 * of a source's file takes its place, or stands beside it, as the person chooses.
 */
export function FilePart(props: FilePartProps) {
  const t = useT();
  const { offer, onGone } = props;
  const { file, asText } = offer;
  const [tries, setTries] = useState(0);
  const [encoding, setEncoding] = useState<string | null>(null);
  const [onConflict, setOnConflict] = useState<OnConflict>(asText ? "keep_both" : "");
  return (
    <section className={styles["part"]} aria-label={file.name}>
      <div className={styles["row"]}>
        <h3 className={styles["file"]}>{file.name}</h3>
        {asText && (
          <Button
            onClick={() => {
              asText();
              onGone();
            }}
          >
            {t("files.asText")}
          </Button>
        )}
        <IconButton icon="close" label={t("files.leaveFile", { file: file.name })} onClick={onGone} />
      </div>
      {encoding !== null && <Encoding value={encoding} onChoose={setEncoding} />}
      {isKnown(file.name) ? (
        <Attempt
          key={`${tries} ${encoding ?? ""} ${onConflict}`}
          {...props}
          encoding={encoding ?? ""}
          onConflict={onConflict}
          onAgain={() => setTries(tries + 1)}
          onChoose={setOnConflict}
          onChange={isText(file.name) && encoding === null ? () => setEncoding("") : undefined}
        />
      ) : (
        <p role="alert" className={styles["wrong"]}>
          {t("files.unknown", { file: file.name })}
        </p>
      )}
    </section>
  );
}

function Encoding({ value, onChoose }: { value: string; onChoose: (encoding: string) => void }) {
  const t = useT();
  const id = useId();
  return (
    <div className={styles["row"]}>
      <label htmlFor={id}>{t("files.encoding")}</label>
      <select
        id={id}
        autoFocus
        className={styles["name"]}
        value={value}
        onChange={(event) => onChoose(event.target.value)}
      >
        <option value="">{t("files.encodingFound")}</option>
        {ENCODINGS.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

interface AttemptProps extends FilePartProps {
  encoding: string;
  onConflict: OnConflict;
  onAgain: () => void;
  onChoose: (onConflict: OnConflict) => void;
  /** Opens the choice of the encoding, where there is one. */
  onChange: (() => void) | undefined;
}

function Attempt({
  offer: { file },
  rows,
  added,
  encoding,
  onConflict,
  onView,
  onReplaced,
  onAgain,
  onChoose,
  onChange,
}: AttemptProps) {
  const t = useT();
  const [state, setState] = useState<State>(BEGUN);
  const told = useEffectEvent(onView);
  const replaced = useEffectEvent(onReplaced);
  useEffect(() => {
    let gone = false;
    let sent: UploadView | null = null;
    // What nobody adds is deleted after a day anyway.
    const drop = (view: UploadView) => {
      if (view.source === null && !added.current.has(view.upload)) void discard(view.upload).catch(() => undefined);
    };
    told(null);
    const { answer, cancel } = upload(
      file,
      { encoding, onConflict },
      (part) => gone || setState({ step: "sends", part }),
    );
    answer.then(
      async (view) => {
        sent = view;
        if (view.source) await refreshSources();
        if (gone) drop(view);
        else if (view.source) replaced(view.source);
        else {
          setState({ step: "shown", view });
          told(view);
        }
      },
      (error: unknown) => gone || setState({ step: "failed", error }),
    );
    return () => {
      gone = true;
      cancel();
      if (sent !== null) drop(sent);
    };
  }, [file, encoding, onConflict, added]);
  if (state.step === "shown") return <Preview view={state.view} rows={rows} onChange={onChange} />;
  if (state.step === "sends")
    return (
      <div className={styles["row"]}>
        <progress className={styles["progress"]} value={state.part} aria-label={file.name} />
        <span>{number(state.part, { style: "percent" })}</span>
      </div>
    );
  if (state.error instanceof Problem && state.error.code === "upload_exists")
    return <Exists problem={state.error} onChoose={onChoose} />;
  return (
    <div className={styles["row"]}>
      <p role="alert" className={styles["wrong"]}>
        {sentence(state.error)}
      </p>
      <Button onClick={onAgain}>{t("shell.retry")}</Button>
    </div>
  );
}

/** There is a file of this name: which one, and what may become of the new one. */
function Exists({ problem, onChoose }: { problem: Problem; onChoose: AttemptProps["onChoose"] }) {
  const t = useT();
  const said = (name: string) => String(problem.params[name]);
  return (
    <>
      <p role="alert">
        {t("files.exists", {
          file: said("name"),
          source: said("source"),
          at: dayAndTime(said("uploaded_at")),
          other: said("other"),
        })}
      </p>
      <div className={styles["row"]}>
        <Button kind="danger" onClick={() => onChoose("replace")}>
          {t("files.replace")}
        </Button>
        <Button onClick={() => onChoose("keep_both")}>{t("files.keepBoth")}</Button>
      </div>
    </>
  );
}
