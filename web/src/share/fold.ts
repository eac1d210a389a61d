// What a link shows, as the turns that a conversation is drawn from.

import type { MessageView, RunView, SharedConversation, SharedMessage, SharedRun } from "../api/types";
import { withRows } from "../results/spec";
import { resultOf } from "../results/step";
import { conversationOf } from "../stream/history";
import { chartedQuery } from "../stream/steps";
import type { Step, Turn } from "../stream/types";

/** A page of what a link shows. `before` is the cursor of the one before. */
export interface SharedPart {
  label: string;
  sharedAt: string;
  turns: readonly Turn[];
  before: string | null;
}

export function partOf(body: SharedConversation): SharedPart {
  const { turns } = conversationOf({
    ...EMPTY,
    label: body.label,
    created_at: body.created_at,
    messages: body.messages.map(messageOf),
    runs: body.runs.map((run) => runOf(run, body.steps[run.id]?.length ?? 0)),
    steps: body.steps,
    before: body.before,
  });
  const results = turns
    .flatMap(({ run, steps }) => run?.steps ?? steps)
    .map(resultOf)
    .filter((result) => result !== null);
  const read = (step: Step): Step => {
    // The server has no pages of a step here, and the conversations below are not shared.
    const made: Step = { ...step, index: null, ...(step.asked ? { asked: { ...step.asked, threadId: null } } : {}) };
    const charted = results.find(({ label }) => label !== null && label === chartedQuery(step));
    const isWhole = charted !== undefined && charted.total === charted.rows.length;
    return step.chart && isWhole ? { ...made, chart: withRows(step.chart, charted.columns, charted.rows) } : made;
  };
  return {
    label: body.label,
    sharedAt: body.shared_at,
    turns: turns.map((turn) => ({
      ...turn,
      steps: turn.steps.map(read),
      run: turn.run && { ...turn.run, steps: turn.run.steps.map(read) },
    })),
    before: body.before,
  };
}

const EMPTY = {
  thread_id: "",
  source: null,
  last_active_at: "",
  tags: [],
  metadata: {},
  expires_at: null,
  archived_at: null,
  pinned_at: null,
  agent: { id: "", name: null },
  parent: null,
  waiting_below: [],
  run: null,
  queue: [],
  at: null,
};

const messageOf = (message: SharedMessage): MessageView => ({
  ...message,
  metadata: {},
  siblings: { ids: [], shown: null },
  answers: null,
});

function runOf({ agent, outcome, ...run }: SharedRun, steps: number): RunView {
  return {
    ...run,
    // A summary is what a run says that is out of steps; the reason itself is not told.
    outcome: "summary" in outcome ? { ...outcome, reason: "max_steps" } : outcome,
    agent: agent === null ? null : { id: agent, name: agent, version: 0 },
    question: "",
    source: null,
    asked: [],
    protocol: "auto",
    max_steps: steps,
    continues: null,
    edited_by: null,
    asked_by: null,
    approvals: [],
    warnings: [],
    last_event_seq: 0,
    events: "",
  };
}
