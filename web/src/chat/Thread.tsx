import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { FilesChip } from "../layout/Chips";
import { Header } from "../layout/Header";
import { chooseSourceIn, keepSource, useAsksAny, useSourceIn } from "../layout/choice";
import { ModelChip } from "../layout/ModelChip";
import { navigate, toConversation, toNew } from "../route";
import { archive } from "../sidebar/actions";
import type { Conversation } from "../stream/conversation";
import * as requests from "../stream/requests";
import type { ConversationData, Turn } from "../stream/types";
import { useConversation } from "../stream/useConversation";
import { Button, Icon, Skeleton, say } from "../ui";
import { Announcer } from "./Announcer";
import { Column, type ColumnHandle } from "./Column";
import { Composer, type ComposerHandle } from "./Composer";
import { Link } from "./Link";
import { Queue } from "./Queue";
import styles from "./Thread.module.css";
import { TurnView } from "./Turn";
import * as actions from "./actions";
import { whenLaidOut } from "./inTurn";
import { withModel } from "./model";
import { useThreadKeys } from "./useThreadKeys";

interface ThreadProps {
  threadId: string;
  at: string | null;
}

/** A conversation: its turns, and where the next question is typed. */
export function Thread({ threadId, at }: ThreadProps) {
  const t = useT();
  const { load, error, data, turns, run, begun, conversation } = useConversation(threadId);
  const [editing, setEditing] = useState<string | null>(null);
  const column = useRef<ColumnHandle>(null);
  const composer = useRef<ComposerHandle>(null);
  useEntry(conversation, column, at, data !== null);
  useThreadKeys({ turns, column, composer });
  const askNow = useCallback((question: string) => composer.current?.send(question), []);
  const render = useCallback(
    (turn: Turn, isLast: boolean) => (
      <TurnView
        conversation={conversation}
        turn={turn}
        isLast={isLast}
        editing={editing === turn.id}
        onEdit={setEditing}
        onAsk={askNow}
      />
    ),
    [conversation, editing, askNow],
  );
  const older = useCallback(() => void conversation.older().catch(() => undefined), [conversation]);
  const running = run?.status === "running" ? run : null;
  const source = useSourceIn(threadId);
  const asksAny = useAsksAny(data?.agent);
  const ask = async (question: string, key: string) => {
    const fields = { question, ...(source === null ? {} : { source }) };
    const answer = await conversation.did(
      withModel(threadId, (model) => requests.ask({ ...fields, ...model }, threadId, key)),
    );
    if (source !== null) {
      keepSource(source);
      chooseSourceIn(threadId, null);
    }
    // One that waits is below; one that begins comes to the top.
    if (!("run_id" in answer)) column.current?.toEnd();
  };
  const lastQuestion = turns.findLast((turn) => turn.question !== null && turn.run !== null);
  return (
    <>
      <Header threadId={threadId} />
      {data === null ? (
        <Absent load={load} error={error} conversation={conversation} />
      ) : (
        <>
          <Column
            ref={column}
            turns={turns}
            begun={begun}
            render={render}
            older={data.before === null ? undefined : older}
            below={<Below data={data} conversation={conversation} />}
          />
          {data.archivedAt !== null && (
            <Notice text={t("chat.archived")}>
              <Button onClick={() => void archive({ id: threadId, label: data.label }, false)}>
                {t("chat.unarchive")}
              </Button>
            </Notice>
          )}
          {data.aside && at !== null ? (
            <Notice text={t("chat.aside")}>
              <Button onClick={() => navigate(toConversation(threadId))}>{t("chat.leaveAside")}</Button>
              <Button kind="primary" onClick={() => void goOnHere(conversation, at)}>
                {t("chat.goOnHere")}
              </Button>
            </Notice>
          ) : (
            <Composer
              ref={composer}
              threadId={threadId}
              onAsk={ask}
              onStop={running ? () => void actions.stop(conversation, running.id) : undefined}
              onUp={() => lastQuestion && setEditing(lastQuestion.id)}
              goesWith={`${source ?? ""} ${data.queue.length}`}
              attaches={asksAny}
            >
              {source === null ? (
                <FilesChip source={data.source} />
              ) : (
                <NextSource source={source} onLeave={() => chooseSourceIn(threadId, null)} />
              )}
              <ModelChip threadId={threadId} agent={data.agent} />
            </Composer>
          )}
        </>
      )}
      <Announcer conversation={conversation} run={run} />
    </>
  );
}

/** The conversation follows the branch of an entry from now on, and the address names the entry no more. */
async function goOnHere(conversation: Conversation, at: string) {
  if ((await actions.choose(conversation, at)) !== null)
    navigate(toConversation(conversation.threadId), { replace: true });
}

/** Goes to the entry that the address names, once, on whichever branch it is. */
function useEntry(
  conversation: Conversation,
  column: RefObject<ColumnHandle | null>,
  at: string | null,
  ready: boolean,
) {
  useEffect(() => {
    if (!ready) return;
    if (at === null) return conversation.follow();
    let gone = false;
    conversation.find(at).then(
      (turn) => turn !== null && !gone && whenLaidOut(() => column.current?.toTurn(turn)),
      (error: unknown) => void (gone || say({ text: sentence(error), kind: "bad" })),
    );
    return () => {
      gone = true;
    };
  }, [conversation, column, at, ready]);
}

/** What is particular about what is shown, and what can be done about it. */
function Notice({ text, children }: { text: string; children: ReactNode }) {
  return (
    <div role="status" className={styles["notice"]}>
      <p>{text}</p>
      <div>{children}</div>
    </div>
  );
}

/** The file that the next question asks, instead of the conversation's source. */
function NextSource({ source, onLeave }: { source: string; onLeave: () => void }) {
  const t = useT();
  return (
    <button
      type="button"
      className={styles["next"]}
      title={t("upload.leaveSource", { name: source })}
      onClick={onLeave}
    >
      <span>{t("upload.asks", { name: source })}</span>
      <span className="unseen">{t("upload.leaveSource", { name: source })}</span>
      <Icon name="close" size={14} />
    </button>
  );
}

interface AbsentProps {
  load: string;
  error: unknown;
  conversation: Conversation;
}

/** What stands where the turns would be. */
function Absent({ load, error, conversation }: AbsentProps) {
  const t = useT();
  return (
    <div className={styles["absent"]}>
      {load === "loading" && <Skeleton lines={6} label={t("chat.loading")} />}
      {load === "missing" && (
        <>
          <p>{t("chat.gone")}</p>
          <Link to={toNew}>{t("shell.new")}</Link>
        </>
      )}
      {load === "failed" && (
        <div role="alert">
          <p>{sentence(error)}</p>
          <Button kind="primary" onClick={() => void conversation.refresh()}>
            {t("shell.retry")}
          </Button>
        </div>
      )}
    </div>
  );
}

function Below({ data, conversation }: { data: ConversationData; conversation: Conversation }) {
  const t = useT();
  if (data.turns.length + data.queue.length + data.waitingBelow.length === 0)
    return <p className={styles["note"]}>{t("chat.empty")}</p>;
  if (data.queue.length + data.waitingBelow.length === 0) return null;
  return (
    <>
      {data.waitingBelow.map((each) => (
        <div key={each.id} className={styles["waiting"]}>
          <p dir="auto">{t("chat.agentWaits", { agent: each.agent ?? "", label: each.label })}</p>
          <Link to={toConversation(each.id)}>{t("chat.decideThere")}</Link>
        </div>
      ))}
      <Queue conversation={conversation} queue={data.queue} />
    </>
  );
}
