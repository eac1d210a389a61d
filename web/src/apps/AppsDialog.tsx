import { Tabs } from "@base-ui/react/tabs";
import { useState } from "react";
import { useInfo } from "../api/server";
import type { Info } from "../api/types";
import { copyText } from "../chat/clipboard";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import type { ConversationData } from "../stream/types";
import { useConversation } from "../stream/useConversation";
import { Button, Skeleton } from "../ui";
import styles from "./AppsDialog.module.css";
import { type Place, type Snippet, WAYS, type Way, snippetsOf } from "./snippets";

/** How a program goes on in a conversation. */
export function AppsDialog({ thread }: { thread: string }) {
  const t = useT();
  const { data, error } = useConversation(thread);
  const info = useInfo();
  const wrong = error ?? info.error;
  if (data && info.data) return <Ways place={placeOf(data, info.data, t("apps.question"))} />;
  return wrong ? <p role="alert">{sentence(wrong)}</p> : <Skeleton label={t("list.loading")} lines={6} />;
}

function placeOf(data: ConversationData, { model, user, database }: Info, question: string): Place {
  const isOwn = data.turns.length === 0 || data.turns.some(({ run }) => run !== null);
  return {
    server: location.origin,
    thread: data.threadId,
    agent: data.agent ?? "analyst",
    model,
    user,
    database,
    isOwn,
    question,
  };
}

function Ways({ place }: { place: Place }) {
  const t = useT();
  return (
    <Tabs.Root defaultValue={WAYS[0]}>
      <Tabs.List className={styles["tabs"]} aria-label={t("apps.ways")}>
        {WAYS.map((way) => (
          <Tabs.Tab key={way} value={way} className={styles["tab"]}>
            {t(`apps.${way}`)}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {WAYS.map((way) => (
        <Tabs.Panel key={way} value={way} className={styles["panel"]} tabIndex={-1} data-way={way}>
          <p>{t(aboutOf(way, place.isOwn))}</p>
          <p className={styles["note"]}>{t(`apps.${way}.needs`)}</p>
          {snippetsOf[way](place).map((snippet) => (
            <Code key={snippet.code} snippet={snippet} />
          ))}
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}

/** An application has its own state, and a client of the gateway its own conversation: they cannot go on from an agent's answers. */
function aboutOf(way: Way, isOwn: boolean) {
  if (way === "langgraph" || way === "gateway")
    return isOwn ? (`apps.${way}.beside` as const) : (`apps.${way}.about` as const);
  return `apps.${way}.about` as const;
}

const NAMES = { sh: "Shell", js: "JavaScript", json: "JSON", python: "Python" } as const;

function Code({ snippet: { code, language } }: { snippet: Snippet }) {
  const t = useT();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(code);
    setCopied(true);
  };
  return (
    <div className={styles["block"]}>
      <div className={styles["head"]}>
        {NAMES[language]}
        <Button kind="quiet" onClick={() => void copy()}>
          {t(copied ? "chat.copied" : "chat.copy")}
        </Button>
      </div>
      <pre className={styles["code"]} tabIndex={0} aria-label={t("apps.code")}>
        {code}
      </pre>
    </div>
  );
}
