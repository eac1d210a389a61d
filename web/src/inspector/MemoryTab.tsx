import { useQuery } from "@tanstack/react-query";
import * as api from "../api/calls";
import { useT } from "../i18n";
import { Disclosure } from "../ui";
import styles from "./Inspector.module.css";
import { Empty, Waiting } from "./Parts";
import { Text } from "./Text";

/** What a conversation keeps of what is too old to be seen, and what it knows of its source. */
export function MemoryTab({ threadId }: { threadId: string }) {
  const t = useT();
  const asked = useQuery({ queryKey: ["state", threadId], queryFn: ({ signal }) => api.state(threadId, signal) });
  if (!asked.data) return <Waiting asked={asked} />;
  const { compressed_summary: summary, compressed_message_count: count, known_tables: tables, known_schemas: schemas } = asked.data;
  return (
    <div className={styles["stack"]}>
      <section>
        <h3 className={styles["title"]}>{t("inspector.summary")}</h3>
        {summary ? (
          <>
            <p className={styles["note"]}>{t("inspector.summaryOf", { n: count })}</p>
            <Text label={t("inspector.summary")}>{summary}</Text>
          </>
        ) : (
          <Empty>{t("inspector.noSummary")}</Empty>
        )}
      </section>
      <section>
        <h3 className={styles["title"]}>{t("inspector.known")}</h3>
        {tables.length ? <Tables tables={tables.map(String)} schemas={schemas} /> : <Empty>{t("inspector.noTables")}</Empty>}
      </section>
    </div>
  );
}

function Tables({ tables, schemas }: { tables: readonly string[]; schemas: Record<string, unknown> }) {
  const t = useT();
  return (
    <ul>
      {tables.map((table) => (
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
  );
}
