// The newest page of a history, put behind the pages that are loaded; and live runs, put into their turns. Pure.

import type { ConversationView, Siblings } from "../api/types";
import { isBehind } from "./reducer";
import type { ConversationData, Run, Step, Turn } from "./types";

/**
 * What is loaded, with a fresh page at its end. Turns are the same by the ids of their first entries, never by place, so
 * that a reader stays where they are. Null if the two do not meet: what lies between them must be loaded first.
 */
export function joined(loaded: ConversationData | null, fresh: ConversationData): ConversationData | null {
  if (loaded === null || loaded.turns.length === 0) return fresh;
  const first = fresh.turns.findIndex((turn) => loaded.turns.some((each) => each.id === turn.id));
  if (first === -1) return fresh.before === null ? fresh : null;
  const at = loaded.turns.findIndex((turn) => turn.id === fresh.turns[first]?.id);
  if (first > 0 || at === 0) return { ...fresh, turns: kept(loaded.turns, fresh.turns) };
  return { ...fresh, turns: [...loaded.turns.slice(0, at), ...kept(loaded.turns, fresh.turns)], before: loaded.before };
}

/** What is loaded, with the page before it. */
export function prepended(loaded: ConversationData, earlier: ConversationData): ConversationData {
  const known = new Set(loaded.turns.map((turn) => turn.id));
  return {
    ...loaded,
    turns: [...earlier.turns.filter((turn) => !known.has(turn.id)), ...loaded.turns],
    before: earlier.before,
  };
}

/** The same object for a turn that has not changed, so that it is not drawn again. */
function kept(before: readonly Turn[], turns: readonly Turn[]): Turn[] {
  const known = new Map(before.map((turn) => [turn.id, turn]));
  return turns.map((turn) => {
    const old = known.get(turn.id);
    return old !== undefined && JSON.stringify(old) === JSON.stringify(turn) ? old : turn;
  });
}

/** The run to show of what the history says and what was heard: what is further. No event says who asked. */
export function further(told: Run, heard: Run | undefined): Run {
  const run = farther(told, heard);
  return run.askedBy === told.askedBy ? run : { ...run, askedBy: told.askedBy };
}

function farther(told: Run, heard: Run | undefined): Run {
  if (heard === undefined || isBehind(heard.position, told.position)) return told;
  // Nobody works on it any more: that is in no event.
  if (told.status === "interrupted" && heard.status === "running" && !isBehind(told.position, heard.position))
    return told;
  const asked = new Map(told.steps.flatMap((step) => (step.asked ? [[step.callId, step.asked] as const] : [])));
  return asked.size ? { ...heard, steps: heard.steps.map((step) => withAsked(step, asked.get(step.callId))) } : heard;
}

const withAsked = (step: Step, asked: Step["asked"]): Step => (asked === undefined ? step : { ...step, asked });

/** The turns with the runs that are heard in their places. */
export function withHeard(turns: readonly Turn[], heard: ReadonlyMap<string, Run>): readonly Turn[] {
  if (!turns.some((turn) => turn.run !== null && heard.has(turn.run.id))) return turns;
  return turns.map((turn) => {
    if (turn.run === null) return turn;
    const run = further(turn.run, heard.get(turn.run.id));
    return run === turn.run ? turn : { ...turn, run };
  });
}

/** Whether the list knows the conversation as it is shown; one that is not in it may be any. */
export function isAsListed(
  { lastActiveAt, label, run, queue, waitingBelow }: ConversationData,
  listed: ConversationView | undefined,
): boolean {
  if (listed === undefined || listed.last_active_at !== lastActiveAt || listed.label !== label) return false;
  // The list counts questions that wait: as many may be others.
  const waits = listed.queued > 0 || queue.length > 0;
  return (
    !waits &&
    listed.status === (run?.status ?? null) &&
    listed.waiting_below.join() === waitingBelow.map(({ id }) => id).join()
  );
}

/** The turn that shows a message. */
export const turnOf = (turns: readonly Turn[], entryId: string): Turn | undefined =>
  turns.find(
    ({ id, said, answers }) => id === entryId || said.some((each) => each.id === entryId) || isShown(answers, entryId),
  );

const isShown = (answers: Siblings | null, entryId: string): boolean =>
  answers !== null && answers.shown !== null && answers.ids[answers.shown] === entryId;
