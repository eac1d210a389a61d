// What a step did, in a few words.

import type { t as translate } from "../i18n";
import { duration, number } from "../i18n/format";
import { chartedQuery, isOfWaiting, isRejected } from "../stream/steps";
import type { Decided, Step } from "../stream/types";

type T = typeof translate;

export const tableOf = (step: Step): string => String(step.args["table"] ?? step.observation?.data?.table_name ?? "");

/** The tools whose results are those of queries. */
export const QUERIES = ["run_sql", "query_metric"];

/** `revenue, orders [q3]`: the metrics of a step, as their definitions are called. */
export function metricsOf(step: Step): string {
  const named = step.observation?.data?.["metrics"] ?? step.args["metrics"] ?? "";
  const names = Array.isArray(named) ? named.map(String).join(", ") : String(named);
  return step.query === undefined ? names : `${names} [${step.query}]`;
}

export function titleOf(step: Step, decided: readonly Decided[], t: T): string {
  if (isRejected(step, decided)) return t("chat.notMade", { action: step.action });
  const charted = chartedQuery(step);
  if (charted !== null) return t("chat.drew", { query: charted });
  if (step.asked) return t("chat.asked", { agent: step.asked.agent });
  switch (step.action) {
    case "list_tables":
      return t("chat.listTables");
    case "describe_table":
      return t("chat.describeTable", { table: tableOf(step) });
    case "sample_rows":
      return t("chat.sampleRows", { table: tableOf(step) });
    case "run_sql":
      return step.query === undefined ? t("chat.runSql") : t("chat.ranSql", { query: step.query });
    case "query_metric":
      return t("chat.askedMetrics", { names: metricsOf(step) });
    case "json_parse_error":
      return t("chat.unreadable");
    default:
      return t("chat.used", { action: step.action });
  }
}

/** What came out of it, such as `36 rows`; empty where that is not said in few words. */
export function foundOf(step: Step, decided: readonly Decided[], t: T): string {
  if (isRejected(step, decided)) return t("chat.wasRejected");
  if (step.status === "abandoned") return t("chat.notFinished");
  if (step.status === "failed") return isOfWaiting(step) ? "" : t("chat.failed");
  const data = step.observation?.data ?? {};
  if (step.action === "list_tables" && Array.isArray(data.tables))
    return t("chat.tables", { n: Number(data.total ?? data.tables.length) });
  if (step.action === "describe_table" && Array.isArray(data.columns))
    return t("chat.columns", { n: data.columns.length });
  if (step.rows === undefined) return "";
  return step.total === null || step.total === undefined
    ? t("chat.rowsOrMore", { n: step.rows.length })
    : t("chat.rows", { n: step.total });
}

/** `3 steps · looked at 2 tables · ran 1 query · 1.2 s` */
export function summaryOf(steps: readonly Step[], t: T): string {
  const count = (...actions: string[]) => steps.filter((step) => actions.includes(step.action)).length;
  const looked = new Set(steps.filter((step) => ["describe_table", "sample_rows"].includes(step.action)).map(tableOf))
    .size;
  const elapsed = steps.reduce((sum, step) => sum + (step.elapsedMs ?? 0), 0);
  const parts = [
    t("chat.steps", { n: steps.length }),
    looked ? t("chat.lookedAt", { n: looked }) : "",
    count(...QUERIES) ? t("chat.ranQueries", { n: count(...QUERIES) }) : "",
    count("chart") ? t("chat.drewCharts", { n: count("chart") }) : "",
    steps.some((step) => step.elapsedMs !== null) ? duration(elapsed) : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

export const rowsOf = (value: unknown): string => (typeof value === "number" ? number(value) : "");
