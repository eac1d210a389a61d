import { type KeyboardEvent, type ReactNode, type Ref, useEffect, useImperativeHandle, useRef, useState } from "react";
import { Problem } from "../api/problem";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { live } from "../stream/live";
import { newKey } from "../stream/requests";
import { Button, IconButton } from "../ui";
import { Attach } from "../upload/Attach";
import { takeTable } from "../upload/paste";
import styles from "./Composer.module.css";
import { draftOf, keepDraft } from "./drafts";
import { composes, sends } from "./keys";
import { useModelChoices } from "./model";

export interface ComposerHandle {
  focus: () => void;
  /** Puts a question into the field and sends it. */
  send: (question: string) => void;
}

interface ComposerProps {
  threadId: string | null;
  /** Sends a question. Sent again under its key, it is not asked again. */
  onAsk: (question: string, key: string) => Promise<unknown>;
  /** Stops what is under way; undefined: nothing is. */
  onStop?: (() => void) | undefined;
  /** ↑ in an empty field. */
  onUp?: () => void;
  /** What a question goes with, such as its source. With another, what was refused may be asked. */
  goesWith: string;
  /** Whether files can be attached, to be asked. */
  attaches: boolean;
  /** What stands beside the button, such as the source of a new conversation. */
  children?: ReactNode;
  ref?: Ref<ComposerHandle>;
}

/** Where a question is typed. It stays until the server has it. */
export function Composer({ threadId, onAsk, onStop, onUp, goesWith, attaches, children, ref }: ComposerProps) {
  const t = useT();
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, change, send, sending, error } = useQuestion(threadId, onAsk, goesWith);
  useImperativeHandle(ref, () => ({ focus: () => field.current?.focus(), send: (question) => void send(question) }));
  const onKeyDown = (event: KeyboardEvent) => {
    if (sends(event)) {
      event.preventDefault();
      void send(text);
    } else if (composes(event)) return;
    else if (event.key === "ArrowUp" && text === "" && onUp) {
      event.preventDefault();
      onUp();
    } else if (event.key === "Escape" && onStop) onStop();
  };
  return (
    <form className={styles["composer"]} onSubmit={(event) => (event.preventDefault(), void send(text))}>
      {error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {sentence(error)}
        </p>
      )}
      <div className={styles["box"]}>
        <textarea
          ref={field}
          id="question"
          className={styles["field"]}
          rows={1}
          dir="auto"
          autoFocus={matchMedia("(hover: hover)").matches}
          aria-label={t("chat.question")}
          placeholder={t(onStop ? "chat.placeholderQueue" : "chat.placeholder")}
          value={text}
          readOnly={sending}
          onChange={(event) => change(event.target.value)}
          onPaste={attaches ? (event) => takeTable(event, change) : undefined}
          onKeyDown={onKeyDown}
        />
        <div className={styles["bar"]}>
          {attaches && <Attach />}
          {children}
          <span className={styles["send"]}>
            {onStop && <IconButton icon="stop" label={t("chat.stop")} keys="Esc" onClick={onStop} />}
            <Button type="submit" kind="primary" disabled={sending || text.trim() === ""}>
              {t(onStop ? "chat.queue" : "chat.send")}
            </Button>
          </span>
        </div>
      </div>
    </form>
  );
}

/** Whether it is the question itself that was refused: it is too long. */
const isOfText = (error: unknown) => error instanceof Problem && /_too_(?:long|large)$/.test(error.code);

function useQuestion(threadId: string | null, onAsk: ComposerProps["onAsk"], goesWith: string) {
  const [text, setText] = useState(() => draftOf(threadId));
  const [sending, setSending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  /** The key of a question whose answer did not arrive: sent again, it is asked once. */
  const tried = useRef({ question: "", key: "" });
  const change = (next: string) => {
    setText(next);
    setError((now: unknown) => (isOfText(now) ? null : now));
    keepDraft(threadId, next);
  };
  const send = async (question: string) => {
    if (sending || question.trim() === "") return;
    if (tried.current.question !== question) tried.current = { question, key: newKey() };
    change(question);
    setSending(true);
    setError(null);
    try {
      await onAsk(question.trim(), tried.current.key);
      tried.current = { question: "", key: "" };
      change("");
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  };
  // What it refused stays to be read, until something that it may have been refused for is another one.
  const present = `${goesWith} ${useModelChoices()}`;
  const [before, setBefore] = useState(present);
  if (before !== present) {
    setBefore(present);
    if (error instanceof Problem) setError(null);
  }
  // That the server did not answer is over when it is heard again.
  useEffect(
    () => live().onState(() => live().online() && setError((now: unknown) => (now instanceof Problem ? now : null))),
    [],
  );
  return { text, change, send, sending, error };
}
