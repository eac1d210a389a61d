import { type FormEvent, useId, useRef, useState } from "react";
import { NumberTooLarge, asArguments, parseToSend } from "../api/exact";
import type { CallDecision, JsonObject, PendingCall } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import type { Conversation } from "../stream/conversation";
import { Button } from "../ui";
import styles from "./Cards.module.css";
import * as actions from "./actions";
import { composes } from "./keys";
import { visible, whole } from "./visible";

interface ApprovalProps {
  conversation: Conversation;
  call: PendingCall;
}

/** A call that waits: it is made as it is or with other arguments, or it is not made. */
export function Approval({ conversation, call }: ApprovalProps) {
  const t = useT();
  const said = whole(asArguments(call.args as JsonObject, call.parameters as JsonObject));
  const [mode, setMode] = useState<"choose" | "edit" | "reject">("choose");
  const [text, setText] = useState(said);
  const [reason, setReason] = useState("");
  const { decide, sending, wrong, forget } = useDecision(conversation, call.id);
  const first = useRef<HTMLButtonElement>(null);
  const id = useId();
  const back = () => {
    setMode("choose");
    forget();
    requestAnimationFrame(() => first.current?.focus());
  };
  const made = (): CallDecision =>
    mode === "edit"
      ? { type: "edit", edited_action: { name: call.tool, args: objectOf(text) } }
      : mode === "reject"
        ? { type: "reject", ...(reason.trim() ? { message: reason.trim() } : {}) }
        : { type: "approve" };
  const submit = (event: FormEvent) => (event.preventDefault(), void decide(made));
  return (
    <form className={styles["card"]} data-tone="warn" data-call={call.id} onSubmit={submit}>
      <div role="group" aria-labelledby={id} className={styles["said"]}>
        <strong id={id}>{t("chat.waiting", { tool: call.tool })}</strong>
        {call.description && <p dir="auto">{visible(call.description)}</p>}
        {mode === "edit" ? (
          <textarea
            className={styles["field"]}
            rows={5}
            spellCheck={false}
            autoFocus
            aria-label={t("chat.arguments")}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        ) : (
          <pre tabIndex={0} aria-label={t("chat.arguments")}>
            {said}
          </pre>
        )}
        {mode === "reject" && (
          <input
            className={styles["field"]}
            maxLength={2000}
            autoFocus
            aria-label={t("chat.reason")}
            placeholder={t("chat.reason")}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && composes(event) && event.preventDefault()}
          />
        )}
        {wrong && (
          <p role="alert" className={styles["wrong"]}>
            {wrong}
          </p>
        )}
      </div>
      <div className={styles["choices"]}>
        {mode === "choose" ? (
          <>
            <Button type="submit" kind="primary" disabled={sending} ref={first}>
              {t("chat.approve")}
            </Button>
            <Button disabled={sending} onClick={() => setMode("edit")}>
              {t("chat.edit")}
            </Button>
            <Button disabled={sending} onClick={() => setMode("reject")}>
              {t("chat.reject")}
            </Button>
          </>
        ) : (
          <>
            <Button type="submit" kind={mode === "edit" ? "primary" : "danger"} disabled={sending}>
              {t(mode === "edit" ? "chat.approveEdited" : "chat.reject")}
            </Button>
            <Button kind="quiet" disabled={sending} onClick={back}>
              {t("chat.cancel")}
            </Button>
          </>
        )}
      </div>
    </form>
  );
}

class NoObject extends Error {}

/** What a person wrote that are no arguments. */
const KINDS = [
  [SyntaxError, "chat.noJson"],
  [NumberTooLarge, "chat.noNumber"],
  [NoObject, "chat.noObject"],
] as const;

function objectOf(text: string): JsonObject {
  const value = parseToSend(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new NoObject();
  return value;
}

function useDecision(conversation: Conversation, call: string) {
  const t = useT();
  const [sending, setSending] = useState(false);
  const [wrong, setWrong] = useState("");
  const decide = async (made: () => CallDecision) => {
    setWrong("");
    setSending(true);
    try {
      await actions.decide(conversation, call, made());
    } catch (error) {
      const kind = KINDS.find(([each]) => error instanceof each);
      setWrong(kind ? t(kind[1]) : sentence(error));
    } finally {
      setSending(false);
    }
  };
  return { decide, sending, wrong, forget: () => setWrong("") };
}
