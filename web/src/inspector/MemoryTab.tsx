import { useQuery } from "@tanstack/react-query";
import { state } from "../api/calls";
import { memoryOf } from "../api/memories";
import type { ConversationMemory } from "../api/types";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { useConversation } from "../stream/useConversation";
import { Disclosure } from "../ui";
import { EntryLink } from "./EntryLink";
import styles from "./Inspector.module.css";
import { MemoryCard } from "./MemoryCard";
import { Empty, Waiting } from "./Parts";
import { Text } from "./Text";

/** What a conversation keeps of what is too old to be seen, what is remembered from it, and the tables that it knows. */
export function MemoryTab({ threadId }: { threadId: string }) {
  const { run } = useConversation(threadId);
  const now = run ? `${run.id} ${run.status}` : "";
  const asked = useQuery({ queryKey: ["memory", threadId, now], queryFn: ({ signal }) => memoryOf(threadId, signal) });
  if (!asked.data) return <Waiting asked={asked} />;
  return (
    <div className={styles["stack"]}>
      <Summary threadId={threadId} summary={asked.data.summary} />
      <Topics threadId={threadId} topics={asked.data.topics} />
      <Memories memory={asked.data} />
      <Known threadId={threadId} now={now} />
    </div>
  );
}

function Summary({ threadId, summary }: { threadId: string; summary: ConversationMemory["summary"] }) {
  const t = useT();
  return (
    <section>
      <h3 className={styles["title"]}>{t("inspector.summary")}</h3>
      {summary ? (
        <>
          <p className={styles["note"]}>
            {t("inspector.summaryOf", { n: summary.messages })}{" "}
            {summary.first && <EntryLink threadId={threadId} id={summary.first} />}
          </p>
          <Text label={t("inspector.summary")}>{summary.text}</Text>
        </>
      ) : (
        <Empty>{t("inspector.noSummary")}</Empty>
      )}
    </section>
  );
}

function Topics({ threadId, topics }: { threadId: string; topics: ConversationMemory["topics"] }) {
  const t = useT();
  if (!topics.length) return null;
  return (
    <section>
      <h3 className={styles["title"]}>{t("inspector.topics")}</h3>
      <ul className={styles["topics"]}>
        {topics.map(({ topic, mentions, spans }) => {
          const first = spans.find((span) => span.first !== null)?.first ?? null;
          return (
            <li key={topic}>
              {first === null ? topic : <EntryLink threadId={threadId} id={first} text={topic} />} {number(mentions)}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Memories({ memory }: { memory: ConversationMemory }) {
  const t = useT();
  return (
    <section>
      <h3 className={styles["title"]}>{t("inspector.memories")}</h3>
      {memory.memories.length ? (
        <ul>
          {memory.memories.map((each) => (
            <MemoryCard key={each.id} memory={each} />
          ))}
        </ul>
      ) : (
        <Empty>{t("inspector.noMemories")}</Empty>
      )}
    </section>
  );
}

function Known({ threadId, now }: { threadId: string; now: string }) {
  const t = useT();
  const asked = useQuery({ queryKey: ["state", threadId, now], queryFn: ({ signal }) => state(threadId, signal) });
  const { known_tables: tables = [], known_schemas: schemas = {} } = asked.data ?? {};
  if (!tables.length) return null;
  return (
    <section>
      <h3 className={styles["title"]}>{t("inspector.known")}</h3>
      <ul>
        {tables.map(String).map((table) => (
          <li key={table}>
            {schemas[table] ? (
              <Disclosure summary={table}>
                <Text label={table}>{JSON.stringify(schemas[table], null, 2)}</Text>
              </Disclosure>
            ) : (
              <span className={styles["plain"]}>
                {table} <small>{t("inspector.notDescribed")}</small>
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
