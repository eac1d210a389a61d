import { useQuery } from "@tanstack/react-query";
import * as api from "../api/results";
import type { StepView } from "../api/types";
import { formatsOfJson } from "../formats/chosen";
import { useT } from "../i18n";
import { type Told, told } from "../i18n/sentence";
import { ResultTable } from "../results/ResultTable";
import { SqlView } from "../results/SqlView";
import type { QueryResult, Row } from "../results/result";
import type { Turn } from "../stream/types";
import { useConversation } from "../stream/useConversation";
import styles from "./Inspector.module.css";
import { Empty, Stepper, Waiting } from "./Parts";
import { openInspector } from "./selection";

interface QueryTabProps {
  threadId: string;
  step: number | undefined;
  rows: readonly number[] | undefined;
}

/** A query with its rows; the last one where none was chosen. */
export function QueryTab({ threadId, step, rows }: QueryTabProps) {
  const t = useT();
  const { turns } = useConversation(threadId);
  const queries = queriesOf(turns);
  const shown = step ?? queries.at(-1);
  if (shown === undefined) return <Empty>{t("inspector.noQueries")}</Empty>;
  const place = queries.indexOf(shown);
  const to = (at: number) => {
    const next = queries[at];
    return next === undefined || place < 0 ? null : () => openInspector({ tab: "query", step: next });
  };
  return (
    <>
      {queries.length > 1 && place >= 0 && (
        <Stepper
          text={t("inspector.queryPlace", { at: place + 1, of: queries.length })}
          before={t("inspector.queryBefore")}
          next={t("inspector.queryNext")}
          onBefore={to(place - 1)}
          onNext={to(place + 1)}
        />
      )}
      <Query key={`${shown} ${rows?.join()}`} threadId={threadId} step={shown} rows={rows} />
    </>
  );
}

/** The steps that are queries, of what is loaded of the conversation. */
function queriesOf(turns: readonly Turn[]): number[] {
  const steps = turns.flatMap((turn) => turn.run?.steps ?? turn.steps);
  return steps.flatMap(({ sql, index }) => (sql !== undefined && index !== null ? [index] : []));
}

function Query({ threadId, step, rows }: { threadId: string; step: number; rows: readonly number[] | undefined }) {
  const t = useT();
  const asked = useQuery({
    queryKey: ["step", threadId, step],
    queryFn: ({ signal }) => api.step(threadId, step, signal),
  });
  if (!asked.data) return <Waiting asked={asked} />;
  const { observation, args } = asked.data;
  const result = resultIn(asked.data);
  const sql = result?.sql ?? (typeof args["sql"] === "string" ? args["sql"] : "");
  const error = observation?.["error"] as Told | undefined;
  return (
    <section className={styles["card"]} aria-label={t("results.title", { label: result?.label ?? "" })}>
      <header className={styles["cardHead"]}>
        <h3>{result?.label ?? t("inspector.failedQuery")}</h3>
        <span>{t("inspector.readOnly")}</span>
      </header>
      <SqlView threadId={threadId} step={step} sql={sql} label={result?.label ?? null} />
      {error && (
        <p role="alert" className={styles["wrong"]}>
          {told(error)}
        </p>
      )}
      {result && (
        <div className={styles["rows"]}>
          <ResultTable threadId={threadId} result={result} size={50} {...(rows ? { marked: rows } : {})} />
        </div>
      )}
    </section>
  );
}

function resultIn({ step, observation }: StepView): QueryResult | null {
  const data = observation?.["data"] as Record<string, unknown> | undefined;
  if (!data || !Array.isArray(data["columns"]) || !Array.isArray(data["rows"])) return null;
  return {
    step,
    label: typeof data["query"] === "string" ? data["query"] : null,
    sql: typeof data["sql"] === "string" ? data["sql"] : "",
    columns: data["columns"] as string[],
    rows: data["rows"] as Row[],
    total: typeof data["total"] === "number" ? data["total"] : null,
    formats: formatsOfJson(data["formats"]),
  };
}
