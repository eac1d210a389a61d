// The bodies of the server's answers, as src/longthread/server/answers.py describes them.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
export type Role = "system" | "user" | "assistant" | "tool";
/** `interrupted`: unfinished, and no process executes it. */
export type ShownStatus = "running" | "waiting" | "finished" | "paused" | "failed" | "interrupted";
export type StepStatus = "running" | "done" | "failed";
export type Protocol = "auto" | "native" | "json" | "sql";
export type Outcome = "approve" | "edit" | "reject" | "superseded";
export type How = "whole" | "condensed" | "cut" | "left out" | "summary" | "facts" | "terms" | "recalled";
export type Why = "budget" | "digest" | "stale" | "unpaired";

/** An active agent. With `asksSource` it, or an agent below it, asks a source; `source` is the name of its own. */
export interface AgentInfo {
  id: string;
  name: string;
  description: string;
  asksSource: boolean;
  source: string | null;
  /** Its own; null: that of the server. */
  model: string | null;
}

export interface AgentList {
  agents: AgentInfo[];
}

export interface AgentName {
  id: string;
  name: string | null;
}

/** The agent of a run, by its name at that time. */
export interface AgentVersion extends AgentName {
  version: number;
}

/** What people note about a conversation. */
export interface Attributes {
  tags: string[];
  metadata: JsonObject;
  expiresAt: string | null;
  archivedAt: string | null;
  pinnedAt: string | null;
}

/** What a search found: the words around the place, without signs of Markdown, and the message that has them, which is null where it is the title or a tag. */
export interface Match {
  text: string;
  message: string | null;
}

/** A conversation of the list. `agent` is null for the analyst, `status` that of the last run, `sessionStatus` that of document 002, which can be set. `waitingBelow` are the conversations below it with calls that wait, `queued` is how many questions wait in it, `match` is the place that a search found. */
export interface ConversationView extends Attributes {
  id: string;
  label: string;
  lastActiveAt: string;
  createdAt: string;
  source: string | null;
  agent: AgentName | null;
  parentId: string | null;
  messageCount: number;
  status: ShownStatus | null;
  sessionStatus: "active" | "paused" | "completed" | "failed";
  waitingBelow: string[];
  queued: number;
  match?: Match;
}

/** Conversations, the cursor of the next page, and the ids of damaged conversations that were skipped. */
export interface ConversationList {
  conversations: ConversationView[];
  next_cursor: string | null;
  damaged: string[];
}

export interface TagView {
  tag: string;
  conversations: number;
}

export interface TagList {
  tags: TagView[];
}

/** An answer that was judged. `call` is the step of the model call that gave it, `sql` the last query that it rests on; null where there is none. */
export interface FeedbackView {
  thread_id: string;
  message_id: string;
  run_id: string | null;
  call: number | null;
  question: string;
  answer: string;
  sql: string | null;
  source: string | null;
  model: string | null;
  opinion: "up" | "down";
  text: string;
  at: string;
}

export interface FeedbackList {
  feedback: FeedbackView[];
  next_cursor: string | null;
}

/** A run that has begun or goes on. `events` is the path of its stream. */
export interface Accepted {
  thread_id: string;
  run_id: string;
  events: string;
}

/** A question that waits for its turn; `position` counts from 1 in its conversation. `events` is the path of its stream, which goes on with the events of its run. */
export interface Queued {
  thread_id: string;
  queued_id: string;
  position: number;
  events: string;
}

export interface QueuedView extends Queued {
  question: string;
  queued_at: string;
}

/** What stands at one place of a conversation, one branch each, oldest first: the ids of the first messages. `shown` is the index of the branch that the history follows; null: none of these. */
export interface Siblings {
  ids: string[];
  shown: number | null;
}

/** A message; `kind` is `question`, `answer`, `summary` or null. `run_id` is the run that works on a question, or that gave an answer. `siblings` are the message and those in its place, `answers` those of a question. */
export interface MessageView {
  id: string;
  role: Role;
  content: string;
  kind: string | null;
  created_at: string;
  run_id: string | null;
  metadata: JsonObject;
  siblings: Siblings;
  answers: Siblings | null;
}

/** The branch that the conversation follows: `end` is the id of its last message or call. */
export interface ChosenBranch {
  thread_id: string;
  end: string;
}

/** A call. `observation` is null while it has none, and `cut` says that only a part is shown; `step` and `elapsed_ms` are null outside runs. */
export interface StepView {
  step: number | null;
  action: string;
  args: JsonObject;
  call_id: string | null;
  ok: boolean | null;
  observation: JsonObject | null;
  cut: boolean;
  thought: string;
  elapsed_ms: number | null;
  started_at: string;
  status: StepStatus | "abandoned";
}

/** A call of the model: the `number`th of the `of` calls of its run. `tokens` are those of the messages that it saw, by estimate; `budget` is what they might have. */
export interface CallInfo {
  step: number;
  run_id: string;
  number: number;
  of: number;
  model: string;
  started_at: string;
  status: StepStatus;
  tokens: number;
  budget: number | null;
  usage: Record<string, number>;
}

/** Calls of the model, oldest first; `before` is the cursor of the earlier ones. */
export interface CallList {
  thread_id: string;
  calls: CallInfo[];
  before: string | null;
}

/** The entries from `first` to `last` that went into a view alike. */
export interface ViewSegment {
  first: number;
  last: number;
  how: How;
  tokens: number;
  why: Why | null;
  limit: number | null;
  bare: boolean;
}

/** What a call saw of an entry, or of those from `first` to `seq`: `how`, in which `tier`, and `why` so. `id` is the entry's, null for several or where it was deleted; `call_id` is the call that it is the result of. */
export interface SeenEntry {
  id: string | null;
  seq: number;
  first: number | null;
  count: number;
  role: string;
  run_id: string | null;
  call_id: string | null;
  how: How;
  why: Why | "window" | "pruned" | null;
  tier: number | null;
  tokens: number;
  text: string;
}

export interface PlacedEntry {
  seq: number;
  id: string | null;
}

export interface ChangedEntry extends PlacedEntry {
  was: How;
  now: How;
}

/** How a view differs from that of the call at `step`. Both begin with the same `same_tokens`. */
export interface DifferenceView {
  step: number;
  same_tokens: number;
  entered: PlacedEntry[];
  left: PlacedEntry[];
  changed: ChangedEntry[];
}

/** What a call of the model saw. `why_planned` says why its view does not extend that of the call before; it is empty if it does. */
export interface CallView extends CallInfo {
  thread_id: string;
  why_planned: string;
  system: string;
  tools: string[];
  segments: ViewSegment[];
  entries: SeenEntry[];
  difference: DifferenceView | null;
}

/** A page of a result, in the order that was asked for. `query` is its label, such as `q3`. `total` is null where the rows were not counted to the end. `rerun`: the query was run again for this, so the rows may be others than the model saw. Not `whole`: the database has more rows, and is not asked for them. */
export interface ResultRows {
  thread_id: string;
  step: number;
  query: string | null;
  sql: string;
  columns: string[];
  rows: Json[][];
  offset: number;
  total: number | null;
  cut_cells: number;
  whole: boolean;
  rerun: boolean;
}

/** An edited query that was run, in no conversation: `step` has no number. */
export interface TriedQuery {
  thread_id: string;
  step: StepView;
}

/** The run that holds an edited query, and its step with the result. */
export interface EditedQuery {
  thread_id: string;
  run_id: string;
  step: StepView;
}

/** Calls of a model, and the tokens that its provider counted; of `uncounted` calls it said nothing. With `fallback` another model answered in its place; `cost` is null without a price. */
export interface UsageOfModel {
  model: string;
  fallback: boolean;
  calls: number;
  uncounted: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cost: number | null;
}

/** What a conversation has used, with those below it. */
export interface UsageView {
  thread_id: string;
  runs: number;
  tool_calls: number;
  currency: string;
  models: UsageOfModel[];
}

/** A call that waits for a decision; `parameters` is the JSON Schema of its arguments. */
export interface PendingCall {
  id: string;
  tool: string;
  description: string;
  args: JsonObject;
  parameters: JsonObject;
}

/** A call with its decision, null while it waits; `edited` are the arguments of an edit. */
export interface DecidedCall {
  id: string;
  run: string;
  tool: string;
  args: JsonObject;
  asked_at: string;
  decision: Outcome | null;
  edited?: JsonObject;
  message?: string;
  by: string | null;
  decided_at: string | null;
}

export interface ApprovalList {
  thread_id: string;
  run_id: string | null;
  pending: PendingCall[];
  decided: DecidedCall[];
}

/** A run of another agent that answers a call. */
export interface DelegatedRun {
  thread_id: string;
  run_id: string;
  call_id: string | null;
  agent: string | null;
  status: ShownStatus;
}

/** A run. `outcome` holds what its status implies: the answer, the summary, the error, or the calls that wait. `edited_by` is the user whose edited query it ran, without a model; its answer is empty. */
export interface RunView {
  id: string;
  status: ShownStatus;
  question: string;
  source: string | null;
  model: string;
  agent: AgentVersion | null;
  asked: DelegatedRun[];
  protocol: Protocol;
  max_steps: number;
  continues: string | null;
  started_at: string;
  ended_at: string | null;
  outcome: JsonObject;
  /** What it was writing when it was stopped or failed. */
  unfinished: string;
  edited_by: string | null;
  approvals: DecidedCall[];
  warnings: string[];
  last_event_seq: number;
  events: string;
}

/** The conversation's last run, null where it never had one. */
export interface Stopped {
  thread_id: string;
  run: RunView | null;
}

export interface Parent {
  id: string;
  label: string;
}

export interface Below {
  id: string;
  label: string;
  agent: string | null;
}

/** A conversation's agent, its parent, and the conversations below it with calls that wait. */
export interface Lineage {
  agent: AgentName;
  parent: Parent | null;
  waitingBelow: Below[];
}

/** Where an entry is: the message that shows it (null: none does), and whether its branch is the chosen one. */
export interface PlaceView {
  message: string | null;
  chosen: boolean;
}

/** A conversation's last messages on the chosen branch, or on that of the entry that was asked for (`at`). `runs` are theirs, `steps` is by run, or by question outside runs; `run` is the branch's last run, `queue` has the questions that wait, and `before` is the cursor of the earlier messages. */
export interface History extends Attributes, Lineage {
  thread_id: string;
  label: string;
  source: string | null;
  createdAt: string;
  lastActiveAt: string;
  messages: MessageView[];
  runs: RunView[];
  steps: Record<string, StepView[]>;
  run: RunView | null;
  queue: QueuedView[];
  before: string | null;
  at: PlaceView | null;
}

/** A conversation's state, with document 000's fields. */
export interface StateView {
  question: string;
  messages: JsonObject[];
  steps: JsonObject[];
  known_tables: Json[];
  known_schemas: JsonObject;
  candidate_tables: string[];
  known_samples: JsonObject;
  error_history: JsonObject[];
  sql_history: JsonObject[];
  last_error: JsonObject | null;
  done: boolean;
  answer: JsonObject | null;
  max_steps: number | null;
  compressed_summary: string | null;
  compressed_message_count: number;
  compressed_config_hash: string | null;
}

/** What a server serves, and as which user. `sources` are those that callers may name: `any`, or a list. */
export interface Info {
  version: string;
  model: string;
  demo: boolean;
  source: string | null;
  sources: "any" | string[];
  max_steps: number;
  user: string;
  database: string | null;
}

