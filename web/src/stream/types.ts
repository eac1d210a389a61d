// What the page knows of a conversation: the server's answers and events, folded and typed for views.

import type {
  Below,
  DecisionView,
  ErrorView,
  ObservationView,
  Parent,
  PendingCall,
  ShownStatus,
  Siblings,
} from "../api/types";

/** What a call found: what the page reads of it, by the tools of the analyst and of agents. */
export interface Found {
  query?: unknown;
  sql?: unknown;
  columns?: unknown;
  rows?: unknown;
  total?: unknown;
  row_count?: unknown;
  truncated?: unknown;
  tables?: unknown;
  table_name?: unknown;
  notes?: unknown;
  spec?: unknown;
  agent?: unknown;
  thread_id?: unknown;
  answer?: unknown;
  [more: string]: unknown;
}

/** What came out of a call. Whole numbers beyond 2^53 in it are strings. */
export interface Observation extends Omit<ObservationView, "data"> {
  data?: Found;
}

/** The conversation of the agent that a call asks; `threadId` is null where it is not to be seen. */
export interface Asked {
  threadId: string | null;
  agent: string;
  status: ShownStatus;
}

/** What a person has decided about a call. */
export interface Decided {
  id: string;
  tool: string;
  decision: DecisionView["decision"];
  by: string | null;
  message?: string;
}

/**
 * One call of a run. Times are milliseconds since 1970. `index` is its number for the API, null outside runs.
 *
 * Of a query: `query` is its label (`q3`), `rows` are those that came with the step (100 at most; the API pages the
 * others), `total` is how many there are, null if nobody counted. `chart` is a Vega-Lite specification without its rows.
 */
export interface Step {
  callId: string;
  index: number | null;
  thought: string;
  action: string;
  args: Record<string, unknown>;
  observation: Observation | null;
  status: "running" | "ok" | "failed" | "abandoned";
  startedAt: number | null;
  finishedAt: number | null;
  elapsedMs: number | null;
  /** Whether the page has only a part of the observation. */
  cut: boolean;
  query?: string;
  sql?: string;
  columns?: readonly string[];
  rows?: readonly (readonly unknown[])[];
  total?: number | null;
  chart?: Record<string, unknown>;
  asked?: Asked;
}

/** Text that streams. It is no answer yet: it may turn out to be a thought, and is `withdrawn` then. */
export interface StreamedText {
  id: string;
  text: string;
  withdrawn: boolean;
}

/** How far a run's events are read: `part` frames of the event after `seq`. */
export interface Position {
  seq: number;
  part: number;
}

/** One run: what its events say, or the history. Both give the same. */
export interface Run {
  id: string;
  status: ShownStatus;
  position: Position;
  model: string;
  source: string | null;
  maxSteps: number;
  /** The run that this one continues. */
  continues: string | null;
  startedAt: number | null;
  endedAt: number | null;
  steps: readonly Step[];
  /** What the model thought before its next call. */
  thought: string;
  text: StreamedText | null;
  /** The answer, or the summary of a run that is out of steps. */
  answer: string;
  /** What it was writing when it was stopped or failed: no entry of the log. */
  unfinished: string;
  warnings: readonly string[];
  decided: readonly Decided[];
  waiting: readonly PendingCall[];
  /** Of a paused run: `max_steps`, `repeated`, `budget_spent`, `stopped`, `superseded`. */
  reason: string | null;
  error: ErrorView | null;
  /** The queries that the answer may cite, once the run has ended: also those of runs that are not loaded. */
  cites: readonly { query: string; sql: string; columns: readonly string[] }[];
  usage: { input: number; output: number } | null;
  /** Whose edited query this is. No model was asked, and there is no answer. */
  editedBy: string | null;
  /** The name of the member who asked, in a project. */
  askedBy: string | null;
}

/** A message of the log. */
export interface Entry {
  id: string;
  text: string;
  at: number;
  siblings: Siblings;
}

/**
 * A question and what followed. `id` is the id of its first entry, which never changes. `question` is null where an
 * assistant began. `answers` are the branches behind the question. `run` is null in conversations of LangGraph
 * applications and of the gateway: then `said` holds what was answered, and `steps` the calls.
 */
export interface Turn {
  id: string;
  question: Entry | null;
  answers: Siblings | null;
  run: Run | null;
  said: readonly Entry[];
  steps: readonly Step[];
}

/** A question that waits. */
export interface Queued {
  id: string;
  question: string;
  position: number;
}

/** A conversation as far as it is loaded. `before` is the cursor of the earlier messages, null at the start. */
export interface ConversationData {
  threadId: string;
  label: string;
  lastActiveAt: string;
  source: string | null;
  agent: string | null;
  parent: Parent | null;
  waitingBelow: readonly Below[];
  turns: readonly Turn[];
  /** The run at the end of the branch. */
  run: Run | null;
  queue: readonly Queued[];
  before: string | null;
  tags: readonly string[];
  archivedAt: string | null;
  pinnedAt: string | null;
  /** Another branch than the one that the conversation follows. */
  aside: boolean;
}
