import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useUser } from "../api/server";
import { useT } from "../i18n";
import type { Conversation } from "../stream/conversation";
import type { Entry } from "../stream/types";
import { Button } from "../ui";
import { BranchPager } from "./BranchPager";
import styles from "./Question.module.css";
import { classes } from "../ui/classes";
import * as actions from "./actions";
import { composes, sends } from "./keys";

interface QuestionProps {
  /** Null where it is only read. */
  conversation: Conversation | null;
  question: Entry;
  /** The name of the member who asked, in a project. */
  askedBy: string | null;
  editing: boolean;
  onEdit: (editing: boolean) => void;
}

/** Longer ones are shown in part. */
const LONG = 1200;

export function Question({ conversation, question, askedBy, editing, onEdit }: QuestionProps) {
  const t = useT();
  const isLong = question.text.length > LONG || question.text.split("\n").length > 12;
  const [whole, setWhole] = useState(false);
  if (editing && conversation)
    return <Editor conversation={conversation} question={question} onDone={() => onEdit(false)} />;
  return (
    <div className={styles["row"]}>
      {askedBy !== null && <Asker name={askedBy} />}
      <div className={styles["bubble"]}>
        <h2 dir="auto" className={classes(styles["text"], isLong && !whole && styles["cut"])}>
          {askedBy === null && <span className="unseen">{t("chat.you")}: </span>}
          {question.text}
        </h2>
        {isLong && (
          <button type="button" className={styles["more"]} aria-expanded={whole} onClick={() => setWhole(!whole)}>
            {t(whole ? "chat.less" : "chat.whole")}
          </button>
        )}
      </div>
      {conversation && (
        <BranchPager
          siblings={question.siblings}
          label={t("chat.versions")}
          onChoose={(id) => void actions.choose(conversation, id)}
        />
      )}
    </div>
  );
}

/** Who asked: a name is shown where it is not the reader's. */
function Asker({ name }: { name: string }) {
  const t = useT();
  const user = useUser();
  const isMe = user === null || (user.display || user.name) === name;
  return (
    <p className={isMe ? "unseen" : styles["asker"]} dir="auto">
      {isMe ? t("chat.you") : name}
    </p>
  );
}

interface EditorProps {
  conversation: Conversation;
  question: Entry;
  onDone: () => void;
}

/** The question that takes the place of one: that one stays, as a branch. */
function Editor({ conversation, question, onDone }: EditorProps) {
  const t = useT();
  const [text, setText] = useState(question.text);
  const [sending, setSending] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const end = field.current?.value.length ?? 0;
    field.current?.focus();
    field.current?.setSelectionRange(end, end);
  }, []);
  const close = () => {
    onDone();
    document.getElementById("question")?.focus();
  };
  const send = async () => {
    if (sending || text.trim() === "") return;
    setSending(true);
    const begun = await actions.edit(conversation, question.id, text.trim());
    if (begun === null) setSending(false);
    else close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (sends(event)) {
      event.preventDefault();
      void send();
    } else if (event.key === "Escape" && !composes(event)) close();
  };
  return (
    <form className={styles["editor"]} onSubmit={(event) => (event.preventDefault(), void send())}>
      <h2 className="unseen">{t("chat.editQuestion")}</h2>
      <textarea
        ref={field}
        className={styles["field"]}
        dir="auto"
        aria-label={t("chat.editQuestion")}
        value={text}
        readOnly={sending}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className={styles["bar"]}>
        <Button kind="quiet" onClick={close}>
          {t("chat.cancel")}
        </Button>
        <Button kind="primary" type="submit" disabled={sending || text.trim() === ""}>
          {t("chat.send")}
        </Button>
      </div>
    </form>
  );
}
