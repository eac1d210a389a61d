import { useState } from "react";
import { useT } from "../i18n";
import type { Conversation } from "../stream/conversation";
import type { Queued } from "../stream/types";
import { Button } from "../ui";
import styles from "./Cards.module.css";
import * as actions from "./actions";

/** Questions that wait for their turn. */
export function Queue({ conversation, queue }: { conversation: Conversation; queue: readonly Queued[] }) {
  const t = useT();
  if (queue.length === 0) return null;
  return (
    <ol className={styles["queue"]} aria-label={t("chat.queueLabel")}>
      {queue.map((each) => (
        <Waiting key={each.id} conversation={conversation} queued={each} />
      ))}
    </ol>
  );
}

function Waiting({ conversation, queued }: { conversation: Conversation; queued: Queued }) {
  const t = useT();
  const [busy, setBusy] = useState(false);
  const remove = async () => {
    setBusy(true);
    await actions.unqueue(conversation, queued.id);
    setBusy(false);
  };
  return (
    <li className={styles["queued"]}>
      <p dir="auto">{queued.question}</p>
      <div>
        {t("chat.queued")}
        <Button kind="quiet" disabled={busy} onClick={() => void remove()}>
          {t("chat.remove")}
        </Button>
      </div>
    </li>
  );
}
