// What a run does now, in a few words, as far as its events tell.

import type { t as translate } from "../i18n";
import { chartedQuery } from "../stream/steps";
import type { Run, Step } from "../stream/types";
import { QUERIES, metricsOf, tableOf } from "./stepText";

type T = typeof translate;

/** Tools that look at what there is to ask. */
const LOOKS = new Set(["list_tables", "describe_table", "sample_rows"]);

const presentStep = ({ steps }: Run): Step | undefined =>
  steps.findLast(({ status }) => status === "running") ?? steps.at(-1);

export function activityOf(run: Run, t: T): string {
  const step = presentStep(run);
  if (step?.status === "running") return doing(step, t);
  if (run.text && !run.text.withdrawn) return t("now.writing");
  return step ? afterStep(step, t) : t(run.startedAt === null ? "now.begins" : "now.thinks");
}

/** When that began, in milliseconds since 1970; null: nobody says. */
export function activeSince(run: Run): number | null {
  const step = presentStep(run);
  return (step?.status === "running" ? step.startedAt : step?.finishedAt) ?? run.startedAt;
}

/** What a step does that is under way. */
export function doing(step: Step, t: T): string {
  if (step.asked) return t("now.asks", { agent: step.asked.agent });
  switch (step.action) {
    case "list_tables":
      return t("now.listTables");
    case "describe_table":
      return t("now.describeTable", { table: tableOf(step) });
    case "sample_rows":
      return t("now.sampleRows", { table: tableOf(step) });
    case "run_sql":
      return t("now.runSql");
    case "query_metric":
      return t("now.metrics", { names: metricsOf(step) });
    case "chart":
      return t("now.draws");
    default:
      return t("now.uses", { action: step.action });
  }
}

/** What the model does with what a step found. */
function afterStep(step: Step, t: T): string {
  const isQuery = QUERIES.includes(step.action);
  if (step.status !== "ok") return t(isQuery ? "now.corrects" : "now.decides");
  if (step.asked) return t("now.readsAnswer", { agent: step.asked.agent });
  if (isQuery && step.rows) return t("now.readsRows", { n: step.rows.length });
  if (LOOKS.has(step.action)) return t("now.writesQuery");
  return chartedQuery(step) === null ? t("now.readsResult", { action: step.action }) : t("now.decides");
}
