import { useState } from "react";
import type { JsonObject } from "../api/types";
import { useT } from "../i18n";
import { told } from "../i18n/sentence";
import type { Conversation } from "../stream/conversation";
import type { Run } from "../stream/types";
import { Button } from "../ui";
import { Approval } from "./Approval";
import styles from "./Cards.module.css";
import * as actions from "./actions";

interface EndingProps {
  /** Null where it is only read. */
  conversation: Conversation | null;
  run: Run;
  /** Only the newest run can be gone on with. */
  isLast: boolean;
}

/** How a run stands that did not end in an answer, in one sentence, with what can be done about it. */
export function Ending({ conversation, run, isLast }: EndingProps) {
  const t = useT();
  const goesOn = isLast && conversation ? { conversation } : {};
  switch (run.status) {
    case "waiting":
      if (!isLast || !conversation) return <Card tone="calm" said={t("chat.superseded")} />;
      return run.waiting.map((call) => <Approval key={call.id} conversation={conversation} call={call} />);
    case "failed": {
      const error = run.error as { type: string; message: string; params?: JsonObject } | null;
      return <Card tone="bad" said={error ? told(error) : t("chat.didNotWork")} {...goesOn} />;
    }
    case "interrupted":
      return <Card tone="warn" said={t("chat.interrupted")} {...goesOn} />;
    case "paused":
      if (run.reason === "superseded") return <Card tone="calm" said={t("chat.superseded")} />;
      if (run.reason === "max_steps")
        return <Card tone="warn" said={t("chat.paused", { n: run.maxSteps })} {...goesOn} />;
      if (run.reason === "budget_spent") return <Card tone="warn" said={t("chat.budgetSpent")} {...goesOn} />;
      if (run.reason === "repeated") return <Card tone="warn" said={t("chat.repeated")} {...goesOn} />;
      return <Card tone="calm" said={t("chat.stopped")} {...goesOn} />;
    default:
      return null;
  }
}

interface CardProps {
  tone: "calm" | "warn" | "bad";
  said: string;
  /** With it, there is a button to go on. */
  conversation?: Conversation;
}

function Card({ tone, said, conversation }: CardProps) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const goOn = async (one: Conversation) => {
    setBusy(true);
    await actions.resume(one);
    setBusy(false);
  };
  return (
    <div className={styles["card"]} data-tone={tone}>
      <p className={styles["said"]}>{said}</p>
      {conversation && (
        <Button kind="primary" disabled={busy} onClick={() => void goOn(conversation)}>
          {t("chat.continue")}
        </Button>
      )}
    </div>
  );
}
