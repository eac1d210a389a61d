import { Suspense, lazy, useState } from "react";
import { useT } from "../i18n";
import { duration } from "../i18n/format";
import { TracedCount } from "../results/Receipts";
import type { Conversation } from "../stream/conversation";
import type { Run, Turn } from "../stream/types";
import { BranchPager } from "./BranchPager";
import styles from "./Footer.module.css";
import * as actions from "./actions";
import { copyAnswer } from "./clipboard";
import { useIsDemo } from "./model";

const Feedback = lazy(async () => (await import("./feedback/load")).load());

interface FooterProps {
  /** Null where it is only read. */
  conversation: Conversation | null;
  turn: Turn;
  text: string;
  onEdit: () => void;
}

/** Below an answer: the other answers, what can be done with it, and who gave it. */
export function Footer({ conversation, turn, text, onEdit }: FooterProps) {
  const t = useT();
  const { run, question } = turn;
  const id = question?.id;
  const answer = turn.said.at(-1);
  // A LangGraph application goes on by its own checkpoints.
  const branches = conversation !== null && run !== null && id !== undefined;
  return (
    <div className={styles["footer"]}>
      <TracedCount answer={text} />
      {branches && (
        <BranchPager
          siblings={turn.answers}
          label={t("chat.answers")}
          onChoose={(entry) => void actions.choose(conversation, entry)}
        />
      )}
      {text !== "" && <Copy text={text} />}
      {branches && run.status !== "waiting" && <Again conversation={conversation} id={id} />}
      {branches && (
        <button type="button" className={styles["action"]} onClick={onEdit}>
          {t("chat.edit")}
        </button>
      )}
      {branches && text !== "" && answer && (
        <Suspense>
          <Feedback threadId={conversation.threadId} messageId={answer.id} />
        </Suspense>
      )}
      <span className={styles["space"]} />
      {run && <About run={run} threadId={conversation?.threadId ?? null} />}
    </div>
  );
}

function Copy({ text }: { text: string }) {
  const t = useT();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyAnswer(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <button type="button" className={styles["action"]} onClick={() => void copy()}>
      {t(copied ? "chat.copied" : "chat.copy")}
    </button>
  );
}

function Again({ conversation, id }: { conversation: Conversation; id: string }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const again = async () => {
    setBusy(true);
    await actions.again(conversation, id);
    setBusy(false);
  };
  return (
    <button type="button" className={styles["action"]} disabled={busy} onClick={() => void again()}>
      {t("chat.again")}
    </button>
  );
}

/** Who gave the answer, and how long it took. The demo model is not named again where the next question goes to it. */
function About({ run, threadId }: { run: Run; threadId: string | null }) {
  const t = useT();
  const isNamed = useIsDemo(threadId) && threadId !== null;
  if (run.editedBy !== null) {
    return (
      <span>{run.editedBy === "default" ? t("chat.editedByYou") : t("chat.editedBy", { user: run.editedBy })}</span>
    );
  }
  const hint = run.usage ? t("chat.tokens", { input: run.usage.input, output: run.usage.output }) : undefined;
  const elapsed =
    run.startedAt !== null && run.endedAt !== null ? duration(Math.max(0, run.endedAt - run.startedAt)) : "";
  return (
    <span className={styles["about"]} title={run.model === "demo" ? t("shell.demoHint") : hint}>
      {[run.model !== "demo" ? run.model : isNamed ? "" : t("shell.demo"), elapsed].filter(Boolean).join(" · ")}
    </span>
  );
}
