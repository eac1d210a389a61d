// A conversation, folded from the server's history.

import type { History, MessageView, RunView, StepView } from "../api/types";
import { decidedOf, left, outcomeOf } from "./reducer";
import { begun, withArgs, withObservation } from "./steps";
import type { ConversationData, Entry, Observation, Run, Step, Turn } from "./types";

const timeOf = (iso: string): number => Date.parse(iso);

/** The conversation that a history shows. */
export function conversationOf(body: History): ConversationData {
  const runs = new Map(body.runs.map((run) => [run.id, runOf(run, body.steps[run.id] ?? [])]));
  return {
    threadId: body.thread_id,
    label: body.label,
    lastActiveAt: body.last_active_at,
    source: body.source,
    agent: body.agent.name,
    parent: body.parent,
    waitingBelow: body.waiting_below,
    turns: turnsOf(body, runs),
    run: body.run === null ? null : (runs.get(body.run.id) ?? runOf(body.run, body.steps[body.run.id] ?? [])),
    queue: body.queue.map((each) => ({ id: each.queued_id, question: each.question, position: each.position })),
    before: body.before,
    tags: body.tags,
    archivedAt: body.archived_at,
    pinnedAt: body.pinned_at,
    aside: body.at?.chosen === false,
  };
}

/** A run as its events would give it, with the calls of it. */
export function runOf(body: RunView, steps: readonly StepView[]): Run {
  const made = steps.map((step) => asked(stepOf(step), body));
  const isOver = body.status !== "running" && body.status !== "waiting" && body.status !== "interrupted";
  return {
    id: body.id,
    status: body.status,
    position: { seq: body.last_event_seq, part: 0 },
    model: body.model,
    source: body.source,
    maxSteps: body.max_steps,
    continues: body.continues,
    startedAt: timeOf(body.started_at),
    endedAt: body.ended_at === null ? null : timeOf(body.ended_at),
    steps: isOver ? made.map(left) : made,
    thought: "",
    text: null,
    warnings: body.warnings,
    decided: decidedOf(body.approvals),
    editedBy: body.edited_by,
    askedBy: body.asked_by,
    ...outcomeOf(body.status, { ...body.outcome, unfinished: body.unfinished }),
  };
}

/** A call of the history. */
export function stepOf(body: StepView): Step {
  const step = withArgs(begun(body.call_id ?? "", body.action), body.args);
  const startedAt = timeOf(body.started_at);
  const made: Step = {
    ...(body.observation === null ? step : withObservation(step, body.observation as Observation)),
    index: body.step,
    thought: body.thought,
    startedAt,
    elapsedMs: body.elapsed_ms,
    finishedAt: body.elapsed_ms === null ? null : startedAt + body.elapsed_ms,
    cut: body.cut,
  };
  if (body.status === "abandoned") return { ...made, status: "abandoned" };
  // Why it failed may not be told.
  return body.ok === false ? { ...made, status: "failed" } : made;
}

function asked(step: Step, run: RunView): Step {
  const found = run.asked.find((each) => each.call_id === step.callId);
  if (found === undefined) return step;
  return { ...step, asked: { threadId: found.thread_id, agent: found.agent ?? "", status: found.status } };
}

function entryOf(message: MessageView): Entry {
  return { id: message.id, text: message.content, at: timeOf(message.created_at), siblings: message.siblings };
}

function turnsOf(body: History, runs: ReadonlyMap<string, Run>): Turn[] {
  const turns: Turn[] = [];
  for (const message of body.messages) {
    const entry = entryOf(message);
    const last = turns.at(-1);
    if (message.role !== "user" && last !== undefined)
      turns[turns.length - 1] = { ...last, said: [...last.said, entry] };
    else turns.push(turnOf(message, entry, body, runs));
  }
  return turns;
}

function turnOf(message: MessageView, entry: Entry, body: History, runs: ReadonlyMap<string, Run>): Turn {
  const isQuestion = message.role === "user";
  return {
    id: entry.id,
    question: isQuestion ? entry : null,
    answers: message.answers,
    run: runs.get(message.run_id ?? "") ?? null,
    said: isQuestion ? [] : [entry],
    steps: (body.steps[entry.id] ?? []).map(stepOf),
  };
}
