// A step as views take it: what stands in its observation, by name.

import type { ShownStatus } from "../api/types";
import type { Asked, Decided, Found, Observation, Step } from "./types";

const OUTCOMES: Record<string, ShownStatus> = {
  agent_waits: "waiting",
  agent_failed: "failed",
  agent_paused: "paused",
};

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value.trim() ? value : undefined);

/** A call that has begun. */
export function begun(callId: string, action: string): Step {
  return {
    callId,
    index: null,
    thought: "",
    action,
    args: {},
    observation: null,
    status: "running",
    startedAt: null,
    finishedAt: null,
    elapsedMs: null,
    cut: false,
  };
}

/** The step with its arguments: those of a query are shown before it has rows. */
export function withArgs(step: Step, args: Record<string, unknown>): Step {
  const sql = step.action === "run_sql" ? textOf(args["sql"]) : undefined;
  return sql === undefined ? { ...step, args } : { ...step, args, sql };
}

/** The step with what came out of it. */
export function withObservation(step: Step, observation: Observation): Step {
  const data: Found = observation.data ?? {};
  const made: Step = { ...step, observation, status: observation.ok ? "ok" : "failed" };
  const query = textOf(data.query);
  if (query !== undefined && Array.isArray(data.rows) && Array.isArray(data.columns)) {
    made.query = query;
    made.columns = data.columns as string[];
    made.rows = data.rows as unknown[][];
    made.total = totalOf(data);
  }
  const sql = textOf(data.sql);
  if (sql !== undefined) made.sql = sql;
  const chart = step.action === "chart" ? chartOf(data.spec) : undefined;
  if (chart !== undefined) made.chart = chart;
  const asked = step.asked ?? askedOf(step.action, observation);
  if (asked !== undefined) made.asked = asked;
  return made;
}

/** The label of the query whose rows a step's chart shows. */
export function chartedQuery(step: Step): string | null {
  const data = step.chart?.["data"] as { name?: unknown } | undefined;
  return typeof data?.name === "string" ? data.name : null;
}

/** Whether a person has rejected the call. */
export const isRejected = (step: Step, decided: readonly Decided[]): boolean =>
  decided.some((each) => each.id === step.callId && each.decision === "reject");

/** Whether the call asked an agent that waits for a person now. */
export const isOfWaiting = (step: Step): boolean => step.observation?.error?.type === "agent_waits";

/** Whether a call asks an agent, as far as its name says so: in which conversation, the server knows. */
export const mayAsk = (step: Step): boolean => step.action.startsWith("ask_");

function totalOf(data: Found): number | null {
  if (typeof data.total === "number") return data.total;
  return typeof data.row_count === "number" && data.truncated !== true ? data.row_count : null;
}

function chartOf(spec: unknown): Record<string, unknown> | undefined {
  const data = (spec as { data?: { name?: unknown } } | undefined)?.data;
  return typeof data?.name === "string" ? (spec as Record<string, unknown>) : undefined;
}

function askedOf(action: string, { data, error }: Observation): Asked | undefined {
  if (!action.startsWith("ask_")) return undefined;
  if (typeof data?.thread_id === "string" && typeof data.agent === "string") {
    return { threadId: data.thread_id, agent: data.agent, status: "finished" };
  }
  const status = OUTCOMES[error?.type ?? ""];
  if (status === undefined || typeof error?.thread_id !== "string") return undefined;
  return { threadId: error.thread_id, agent: action.slice(4), status };
}
