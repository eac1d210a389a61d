import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useState } from "react";
import { queryClient } from "../../api/cache";
import * as api from "../../api/feedback";
import type { Opinion } from "../../api/types";
import { useT } from "../../i18n";
import { sentence } from "../../i18n/sentence";
import { Button, Tooltip, say } from "../../ui";
import styles from "./Feedback.module.css";

const UP = "M7 9l3-6c1.5 0 2.2 1 1.9 2.3L11.3 8H16a1 1 0 011 1.2l-1.2 6a1 1 0 01-1 .8H7zM3 9h4v7H3z";
const MOST = 2_000;

interface FeedbackProps {
  threadId: string;
  /** The answer. */
  messageId: string;
}

/** What a person thinks of an answer: thumbs, and a sentence. */
export function Feedback({ threadId, messageId }: FeedbackProps) {
  const t = useT();
  const [writes, setWrites] = useState(false);
  const key = ["feedback", threadId];
  const { data } = useQuery({ queryKey: key, queryFn: ({ signal }) => api.feedback(threadId, signal) });
  const given = data?.feedback.find((each) => each.message_id === messageId);
  /** Whether it is kept. */
  const keep = async (change: Promise<void>): Promise<boolean> => {
    try {
      await change;
    } catch (error) {
      say({ text: sentence(error), kind: "bad" });
      return false;
    }
    await queryClient.invalidateQueries({ queryKey: key });
    return true;
  };
  const press = async (opinion: Opinion) => {
    const takesBack = given?.opinion === opinion;
    const change = takesBack
      ? api.takeBack(threadId, messageId)
      : api.judge(threadId, messageId, { opinion, text: given?.text ?? "" });
    if (await keep(change)) setWrites(!takesBack);
  };
  const write = async (text: string) => {
    if (given && (await keep(api.judge(threadId, messageId, { opinion: given.opinion, text })))) setWrites(false);
  };
  return (
    <>
      <span role="group" aria-label={t("feedback.title")} className={styles["thumbs"]}>
        {(["up", "down"] as const).map((each) => (
          <Tooltip key={each} text={t(`feedback.${each}`)}>
            <button
              type="button"
              className={styles["thumb"]}
              aria-label={t(`feedback.${each}`)}
              aria-pressed={given?.opinion === each}
              disabled={data === undefined}
              onClick={() => void press(each)}
            >
              <Thumb down={each === "down"} />
            </button>
          </Tooltip>
        ))}
      </span>
      {given && !writes && (
        <button
          type="button"
          className={styles["said"]}
          title={given.text || undefined}
          onClick={() => setWrites(true)}
        >
          <bdi>{given.text || t("feedback.add")}</bdi>
        </button>
      )}
      {given && writes && (
        <Sentence text={given.text} opinion={given.opinion} onKeep={write} onClose={() => setWrites(false)} />
      )}
    </>
  );
}

function Thumb({ down }: { down: boolean }) {
  return (
    <svg
      width={16}
      height={16}
      viewBox="0 0 20 20"
      stroke="currentColor"
      strokeWidth={1.5}
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={UP} {...(down ? { transform: "rotate(180 10 10)" } : {})} />
    </svg>
  );
}

interface SentenceProps {
  text: string;
  opinion: Opinion;
  onKeep: (text: string) => Promise<void>;
  onClose: () => void;
}

function Sentence({ text, opinion, onKeep, onClose }: SentenceProps) {
  const t = useT();
  const [now, setNow] = useState(text);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    await onKeep(now);
    setBusy(false);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.nativeEvent.isComposing) onClose();
  };
  const label = t(`feedback.why.${opinion}`);
  return (
    <form className={styles["form"]} onSubmit={(event) => void submit(event)}>
      <input
        className={styles["input"]}
        aria-label={label}
        placeholder={label}
        maxLength={MOST}
        autoComplete="off"
        autoFocus
        value={now}
        onChange={(event) => setNow(event.target.value)}
        onKeyDown={press}
      />
      <Button type="submit" disabled={busy}>
        {t("feedback.save")}
      </Button>
      <Button kind="quiet" onClick={onClose}>
        {t("feedback.close")}
      </Button>
    </form>
  );
}
