import { type FormEvent, useState } from "react";
import type { MemoryView } from "../api/types";
import { useT } from "../i18n";
import { whole } from "../i18n/format";
import { Button } from "../ui";
import { EntryLink } from "./EntryLink";
import styles from "./MemoryCard.module.css";
import { useMemoryActions } from "./useMemoryActions";

/** A memory with where it comes from: it is pinned, edited and forgotten here. */
export function MemoryCard({ memory }: { memory: MemoryView }) {
  const [mode, setMode] = useState<"shown" | "edited" | "forgotten">("shown");
  return (
    <li className={styles["memory"]} data-memory={memory.id}>
      {mode === "edited" ? <Edit memory={memory} onDone={() => setMode("shown")} /> : <Shown memory={memory} />}
      {mode === "shown" && (
        <Actions memory={memory} onEdit={() => setMode("edited")} onForget={() => setMode("forgotten")} />
      )}
      {mode === "forgotten" && <Forget memory={memory} onKeep={() => setMode("shown")} />}
    </li>
  );
}

function Shown({ memory }: { memory: MemoryView }) {
  const t = useT();
  const { content, type, read, expires_at: expires, sources, source_deleted_at: gone, said_at: said } = memory;
  const facts = [
    t(`memory.type.${type}`),
    whole(said),
    read,
    gone && t("memory.sourceGone", { at: whole(gone) }),
    expires && t("memory.expires", { at: whole(expires) }),
  ].filter(Boolean);
  return (
    <>
      <p dir="auto" className={styles["content"]}>
        {content}
      </p>
      <p className={styles["facts"]}>
        {facts.join(" · ")}
        {sources.flatMap(({ thread_id, entries }) =>
          entries.slice(0, 1).map((id) => <EntryLink key={id} threadId={thread_id} id={id} />),
        )}
      </p>
    </>
  );
}

function Actions({ memory, onEdit, onForget }: { memory: MemoryView; onEdit: () => void; onForget: () => void }) {
  const t = useT();
  const { change } = useMemoryActions();
  const { id, pinned } = memory;
  return (
    <div className={styles["actions"]}>
      <button
        type="button"
        aria-pressed={pinned}
        disabled={change.isPending}
        onClick={() => change.mutate({ id, pinned: !pinned })}
      >
        {t(pinned ? "memory.pinned" : "memory.pin")}
      </button>
      <button type="button" onClick={onEdit}>
        {t("memory.edit")}
      </button>
      <button type="button" onClick={onForget}>
        {t("memory.forget")}
      </button>
    </div>
  );
}

function Edit({ memory, onDone }: { memory: MemoryView; onDone: () => void }) {
  const t = useT();
  const [text, setText] = useState(memory.content);
  const { change } = useMemoryActions();
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() === memory.content) onDone();
    else change.mutate({ id: memory.id, content: text.trim() }, { onSuccess: onDone });
  };
  return (
    <form className={styles["form"]} onSubmit={save}>
      <textarea
        autoFocus
        rows={3}
        maxLength={2000}
        aria-label={t("memory.text")}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <div className={styles["buttons"]}>
        <Button kind="quiet" onClick={onDone}>
          {t("memory.cancel")}
        </Button>
        <Button kind="primary" type="submit" disabled={!text.trim() || change.isPending}>
          {t("memory.save")}
        </Button>
      </div>
    </form>
  );
}

/** Forgetting cannot be undone: it is asked about. */
function Forget({ memory, onKeep }: { memory: MemoryView; onKeep: () => void }) {
  const t = useT();
  const { forget } = useMemoryActions();
  return (
    <div className={styles["buttons"]} role="group" aria-label={t("memory.forgetWhat")}>
      <span>{t("memory.forgetWhat")}</span>
      <Button kind="quiet" autoFocus onClick={onKeep}>
        {t("memory.keep")}
      </Button>
      <Button kind="danger" disabled={forget.isPending} onClick={() => forget.mutate(memory.id)}>
        {t("memory.forget")}
      </Button>
    </div>
  );
}
