// A run, folded from its events. Pure: the same events give the same run, however the stream was cut.

import { parseExact } from "../api/exact";
import type { DecidedCall, DecisionView, RunOutcome } from "../api/types";
import type { StreamEvent } from "./events";
import { begun, withArgs, withObservation } from "./steps";
import type { Decided, Observation, Position, Run, Step } from "./types";

export const START: Position = { seq: 0, part: 0 };

/** Whether position `a` is behind `b`. */
export const isBehind = (a: Position, b: Position): boolean => a.seq < b.seq || (a.seq === b.seq && a.part < b.part);

/** Reads the `id:` of a run's event, such as `7` or `6.2`. */
export function positionOf(text: string): Position {
  const [seq = "0", part = "0"] = text.split(".");
  return { seq: Number(seq), part: Number(part) };
}

/** A run of which nothing is known yet. */
export function emptyRun(id: string): Run {
  return {
    id,
    status: "running",
    position: START,
    model: "",
    source: null,
    maxSteps: 0,
    continues: null,
    startedAt: null,
    endedAt: null,
    steps: [],
    thought: "",
    text: null,
    answer: "",
    unfinished: "",
    warnings: [],
    decided: [],
    waiting: [],
    reason: null,
    error: null,
    cites: [],
    usage: null,
    editedBy: null,
    askedBy: null,
  };
}

/**
 * The run after an event. `position` is that of the event: one that was read before changes nothing. An event without
 * a position is told by the stream, not by the run.
 */
export function reduce(run: Run, event: StreamEvent, position: Position | null): Run {
  if (position === null) return handled(run, event);
  if (!isBehind(run.position, position)) return run;
  const goesOn: Run = run.status === "interrupted" ? { ...run, status: "running" } : run;
  return { ...handled(goesOn, event), position };
}

type Of<Type extends StreamEvent["type"]> = Extract<StreamEvent, { type: Type }>;

function handled(run: Run, event: StreamEvent): Run {
  switch (event.type) {
    case "RUN_STARTED":
      return started(run, event);
    case "TEXT_MESSAGE_START":
      return { ...run, text: { id: event.messageId, text: "", withdrawn: false } };
    case "TEXT_MESSAGE_CONTENT":
      return added(run, event);
    case "REASONING_MESSAGE_CONTENT":
      return thought(run, event);
    case "STEP_STARTED":
      return stepStarted(run, event);
    case "TOOL_CALL_START":
      return changed(named(run), event.toolCallId, (step) => ({ ...step, action: event.toolCallName }));
    case "TOOL_CALL_ARGS":
      return argued(run, event);
    case "TOOL_CALL_RESULT":
      return resulted(run, event);
    case "CUSTOM":
      return custom(run, event);
    case "RUN_FINISHED":
      return ended(run, event, event.result?.status ?? "finished", event.result ?? {});
    case "RUN_ERROR":
      return failed(run, event);
    default:
      return run;
  }
}

function started(run: Run, event: Of<"RUN_STARTED">): Run {
  const note = event.metadata?.longthread;
  return {
    ...run,
    status: "running",
    waiting: [],
    reason: null,
    endedAt: null,
    model: note?.model ?? run.model,
    source: note?.source ?? null,
    maxSteps: note?.max_steps ?? run.maxSteps,
    continues: note?.continues ?? null,
    startedAt: run.startedAt ?? event.timestamp ?? null,
  };
}

function added(run: Run, { messageId: id, delta }: Of<"TEXT_MESSAGE_CONTENT">): Run {
  const before = run.text?.id === id ? run.text.text : "";
  return { ...run, text: { id, text: before + delta, withdrawn: false } };
}

function thought(run: Run, event: Of<"REASONING_MESSAGE_CONTENT">): Run {
  return { ...run, thought: run.thought + event.delta, text: run.text?.withdrawn ? null : run.text };
}

/** A call that a dead process had begun starts again: it is the same call, under a new number, and the last one. */
function stepStarted(run: Run, event: Of<"STEP_STARTED">): Run {
  const { step, call_id: callId } = event.metadata?.longthread ?? { step: null, call_id: "" };
  const known = run.steps.find((each) => each.callId === callId);
  const begins: Step = {
    ...(known ?? begun(callId, "")),
    index: step,
    status: "running",
    startedAt: event.timestamp ?? null,
  };
  if (run.thought) begins.thought = run.thought;
  return { ...run, thought: "", steps: [...run.steps.filter((each) => each !== known), begins] };
}

/** Withdrawn text goes when something is put in its place. */
const named = (run: Run): Run => (run.text?.withdrawn ? { ...run, text: null } : run);

function argued(run: Run, event: Of<"TOOL_CALL_ARGS">): Run {
  const args = parseExact(event.delta || "{}") as Record<string, unknown>;
  return changed(run, event.toolCallId, (step) => withArgs(step, args));
}

function resulted(run: Run, event: Of<"TOOL_CALL_RESULT">): Run {
  const elapsedMs = event.metadata?.longthread?.elapsed_ms ?? null;
  const observation = parseExact(event.content || "null") as Observation | null;
  return changed(run, event.toolCallId, (step) => {
    const times = { finishedAt: event.timestamp ?? null, elapsedMs };
    return observation === null
      ? { ...step, ...times, status: "failed" }
      : { ...withObservation(step, observation), ...times };
  });
}

function changed(run: Run, callId: string, change: (step: Step) => Step): Run {
  return { ...run, steps: run.steps.map((step) => (step.callId === callId ? change(step) : step)) };
}

function custom(run: Run, event: Of<"CUSTOM">): Run {
  switch (event.name) {
    case "longthread.warning":
      return { ...run, warnings: [...run.warnings, event.value.message] };
    case "longthread.text_withdrawn":
      return run.text !== null && run.text.id === event.value.message_id
        ? { ...run, text: { ...run.text, withdrawn: true } }
        : run;
    case "longthread.decided":
      return { ...run, decided: [...run.decided, ...decidedOf(event.value.calls)] };
    case "longthread.interrupted":
      return run.status === "running" ? { ...run, status: "interrupted" } : run;
    default:
      return run;
  }
}

function failed(run: Run, event: Of<"RUN_ERROR">): Run {
  const { error = { type: event.code ?? "error", message: event.message }, unfinished = "" } =
    event.metadata?.longthread ?? {};
  return ended(run, event, "failed", { error, unfinished });
}

function ended(run: Run, event: StreamEvent, status: Run["status"], outcome: RunOutcome): Run {
  const steps = status === "waiting" ? run.steps : run.steps.map(left);
  return {
    ...run,
    ...outcomeOf(status, outcome),
    status,
    steps,
    thought: "",
    text: null,
    endedAt: event.timestamp ?? null,
  };
}

/** A call that has no result when its run ends. */
export const left = (step: Step): Step => (step.status === "running" ? { ...step, status: "abandoned" } : step);

/** What the end of a run says, from its last event or from the history. */
export function outcomeOf(
  status: Run["status"],
  outcome: RunOutcome,
): Pick<Run, "answer" | "unfinished" | "waiting" | "reason" | "error" | "cites" | "usage"> {
  const usage = outcome.usage;
  const isOut = status === "paused" && ["max_steps", "repeated", "budget_spent"].includes(outcome.reason ?? "");
  return {
    answer: status === "finished" ? (outcome.answer ?? "") : isOut ? (outcome.summary ?? "") : "",
    unfinished: outcome.unfinished ?? "",
    waiting: status === "waiting" ? (outcome.calls ?? []) : [],
    reason: status === "paused" ? (outcome.reason ?? "stopped") : null,
    error: status === "failed" ? (outcome.error ?? null) : null,
    cites: (outcome.queries ?? []).map(({ query, sql, columns }) => ({ query, sql, columns })),
    usage:
      usage?.input_tokens || usage?.output_tokens
        ? { input: usage.input_tokens ?? 0, output: usage.output_tokens ?? 0 }
        : null,
  };
}

/** Decisions, without calls that still wait. */
export function decidedOf(calls: readonly (DecisionView | DecidedCall)[]): Decided[] {
  const made: Decided[] = [];
  for (const { id, tool, decision, by, message } of calls) {
    if (decision) made.push({ id, tool, decision, by: by ?? null, ...(message ? { message } : {}) });
  }
  return made;
}
