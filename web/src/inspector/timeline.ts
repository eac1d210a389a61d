// What a run did, one after another: calls of the model, and calls of tools.

import type { CallInfo } from "../api/types";
import type { Run, Step } from "../stream/types";

export interface Moment {
  readonly key: string;
  readonly kind: "model" | "tool";
  /** The step's index; null outside runs. */
  readonly index: number | null;
  readonly name: string;
  readonly status: "running" | "ok" | "failed" | "abandoned";
  /** Milliseconds after the run's start. */
  readonly after: number | null;
  readonly took: number | null;
  readonly tokens: { readonly input: number; readonly output: number } | null;
  readonly call: CallInfo | null;
  readonly step: Step | null;
}

export function timelineOf(run: Run, calls: readonly CallInfo[]): Moment[] {
  const begin = run.startedAt;
  const after = (at: number | null) => (at === null || begin === null ? null : Math.max(0, at - begin));
  const models = calls.map((call): Moment => {
    const { input_tokens: input, output_tokens: output } = call.usage;
    const status = call.status === "done" ? "ok" : call.status;
    const tokens = input === undefined && output === undefined ? null : { input: input ?? 0, output: output ?? 0 };
    return {
      key: `call ${call.step}`,
      kind: "model",
      index: call.step,
      name: call.model,
      status,
      after: after(Date.parse(call.started_at)),
      took: null,
      tokens,
      call,
      step: null,
    };
  });
  const tools = run.steps.map((step, at): Moment => {
    const { index, action, status, startedAt, elapsedMs } = step;
    return {
      key: `step ${step.callId || at}`,
      kind: "tool",
      index,
      name: action,
      status,
      after: after(startedAt),
      took: elapsedMs,
      tokens: null,
      call: null,
      step,
    };
  });
  return withGaps(
    [...models, ...tools].toSorted((a, b) => (a.index ?? Infinity) - (b.index ?? Infinity)),
    after(run.endedAt),
  );
}

/** A call of the model lasts until what follows it begins. */
function withGaps(moments: readonly Moment[], end: number | null): Moment[] {
  return moments.map((moment, at) => {
    if (moment.kind !== "model" || moment.after === null || moment.status === "running") return moment;
    const until = moments[at + 1]?.after ?? end;
    return until === null ? moment : { ...moment, took: Math.max(0, until - moment.after) };
  });
}
