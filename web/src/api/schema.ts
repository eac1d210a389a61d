// The answers, bodies and events of the server's API. `python web/schema.py` writes this from its OpenAPI description.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
/** A text of JSON: parsed, it is such a value. */
export type JsonText<Value> = string & { readonly json?: Value };

/** A run that has begun or goes on. `events` is the path of its stream. */
export interface Accepted {
  thread_id: string;
  run_id: string;
  events: string;
}

export interface AccountList {
  users: AccountView[];
}

/** A user, as an administrator sees it. */
export interface AccountView {
  id: string;
  name: string;
  display: string;
  email: string | null;
  role: "admin" | "builder" | "member";
  status: "active" | "disabled" | "pending";
  groups: string[];
  has_password: boolean;
  created_at: string;
  seen_at: string | null;
  budget: BudgetView | null;
}

/** Uploaded files, by their ids. */
export interface AddedFiles {
  uploads: string[];
}

/**
 * An active agent. With `asks_source` it, or an agent below it, asks a source; `source` is the name of its own, and
 * `model` its own model, which a question may name another one for.
 */
export interface AgentInfo {
  id: string;
  name: string;
  description: string;
  asks_source: boolean;
  source: string | null;
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
export interface AgentVersion {
  id: string;
  name: string | null;
  version: number;
}

/** A new API key: what it is for, and its limits. What is left out is not limited. */
export interface ApiKeyBody {
  name: string;
  scopes: ("chat" | "read" | "memories" | "sources" | "catalog" | "gateway" | "mcp" | "admin")[];
  agents?: string[] | null;
  models?: string[] | null;
  sources?: string[] | null;
  expires_at?: string | null;
  budget?: BudgetBody | null;
  requests_per_minute?: number | null;
  parallel?: number | null;
}

export interface ApiKeyList {
  keys: ApiKeyView[];
}

/**
 * An API key without its secret. Agents, models and sources of null: all that its user may use. `seen_at` is when it
 * was used last, to five minutes.
 */
export interface ApiKeyView {
  id: string;
  name: string;
  user: string;
  scopes: ("chat" | "read" | "memories" | "sources" | "catalog" | "gateway" | "mcp" | "admin")[];
  agents: string[] | null;
  models: string[] | null;
  sources: string[] | null;
  budget: BudgetView | null;
  requests_per_minute: number | null;
  parallel: number | null;
  expires_at: string | null;
  made_at: string;
  seen_at: string | null;
}

export interface ApprovalList {
  thread_id: string;
  run_id: string | null;
  pending: PendingCall[];
  decided: DecidedCall[];
}

/** The call is made. */
export interface ApproveDecision {
  type: "approve";
}

/** Rows, the newest first. `before` is the cursor of the next page. */
export interface AuditPage {
  rows: AuditRowView[];
  before: string | null;
}

/**
 * What somebody did. `actor` is a user's id, a pseudonym once the user is forgotten, or empty for a caller who had not
 * logged in. `on_behalf` is the user whose data it was. `object` is the id of what was acted on.
 */
export interface AuditRowView {
  id: string;
  at: string;
  actor: string;
  actor_name: string | null;
  on_behalf: string | null;
  via: string;
  address: string;
  action: "login" | "logout" | "password.change" | "link.make" | "link.use" | "session.end" | "key.make" | "key.revoke" | "user.add" | "user.change" | "user.forget" | "group.add" | "group.delete" | "member.add" | "member.remove" | "grant.add" | "grant.remove" | "catalog.change" | "catalog.delete" | "upload.add" | "upload.delete" | "share.make" | "share.revoke" | "project.change" | "conversation.export" | "conversation.delete" | "approval.decide" | "person.export" | "audit.export" | "admin.read";
  object: string;
  outcome: string;
  request_id: string;
  detail: JsonObject;
}

/**
 * How callers are recognized, and who this one is; null: no user is logged in. `setup`: there is no user yet, and the
 * server's log has the link that makes the first one.
 */
export interface AuthView {
  mode: "local" | "login" | "proxy";
  user: MeView | null;
  setup: boolean;
  issuers: IssuerView[];
  share: "users" | "public" | "off";
}

export interface Below {
  id: string;
  label: string;
  agent: string | null;
}

/** A new board. */
export interface BoardBody {
  title: string;
}

export interface BoardList {
  boards: BoardSummary[];
}

/**
 * What changes of a board. `refresh_every` null: by hand. `given` are values of parameters, `order` the ids of its
 * cards.
 */
export interface BoardPatch {
  title?: string | null;
  refresh_every?: "hour" | "day" | "week" | null;
  given?: Record<string, string | number>;
  order?: string[] | null;
}

/** A board in a list. `cards` is their number. */
export interface BoardSummary {
  id: string;
  title: string;
  cards: number;
  refresh_every: "hour" | "day" | "week" | null;
  created_at: string;
  updated_at: string;
}

/** A board with its cards in their order. */
export interface BoardView {
  id: string;
  title: string;
  refresh_every: "hour" | "day" | "week" | null;
  created_at: string;
  updated_at: string;
  cards: CardView[];
}

/** The branch with this message, by its id. */
export interface BranchChoice {
  message: string;
}

/** What may be spent in each period. */
export interface BudgetBody {
  amount: number;
  unit?: "tokens" | "money";
  period?: "day" | "week" | "month";
}

/** What may be spent in each period, in tokens or in the server's currency. */
export interface BudgetView {
  amount: number;
  unit: "tokens" | "money";
  period: "day" | "week" | "month";
}

/**
 * A call of the model: the `number`th of the `of` calls of its run. `tokens` are those of the messages that it saw, by
 * estimate; `budget` is what they might have.
 */
export interface CallInfo {
  step: number;
  run_id: string;
  number: number;
  of: number;
  model: string;
  started_at: string;
  status: "running" | "done" | "failed";
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

export interface CallMetadata {
  longthread?: CallNote;
}

export interface CallNote {
  step: number;
  call_id: string;
}

/**
 * What a call of the model saw. `why_planned` says why its view does not extend that of the call before; it is empty if
 * it does.
 */
export interface CallView {
  step: number;
  run_id: string;
  number: number;
  of: number;
  model: string;
  started_at: string;
  status: "running" | "done" | "failed";
  tokens: number;
  budget: number | null;
  usage: Record<string, number>;
  thread_id: string;
  why_planned: string;
  system: string;
  tools: string[];
  segments: ViewSegment[];
  entries: SeenEntry[];
  difference: DifferenceView | null;
}

/** A result to save: that of a step. By default its card is called as the question. */
export interface CardBody {
  thread_id: string;
  step: number;
  title?: string | null;
  look?: JsonObject;
}

/** What changes of a card. Another `sql`, or other `parameters`, are run at once. */
export interface CardPatch {
  title?: string | null;
  look?: JsonObject | null;
  sql?: string | null;
  parameters?: ParameterBody[] | null;
}

/**
 * The rows that a card keeps. `total` counts all, null where they were not counted to the end. `formats` are those that
 * the source told.
 */
export interface CardResult {
  columns: string[];
  rows: Json[][];
  total: number | null;
  formats: JsonObject;
}

/**
 * A saved result. `parameters` have the values that hold now, `values_read` are those that its rows were read with, by
 * name: they differ until a refresh succeeds. `thread_id` and `message` lead to its conversation; null if that is
 * deleted. `error` says why the last refresh failed: `{type, message, params}`.
 */
export interface CardView {
  id: string;
  title: string;
  question: string;
  sql: string;
  parameters: ParameterView[];
  look: JsonObject;
  result: CardResult;
  read_at: string;
  values_read: Record<string, string | number>;
  thread_id: string | null;
  message: string | null;
  source: string | null;
  error: ErrorView | null;
}

/** What a change came to: an equal definition makes no version. */
export interface CatalogChange {
  action: "created" | "changed" | "unchanged";
  item: CatalogItem;
}

/**
 * A definition. `definition` is what a person writes, as `longthread apply` takes it; null in a version that deleted
 * it. A built-in one cannot be changed. `by` is the user who made this version. `used_by` are those that refer to it.
 * `power` is what a tool can do that only the command line may define: its implementation stays as it is.
 */
export interface CatalogItem {
  id: string;
  name: string;
  version: number;
  is_active: boolean;
  is_builtin: boolean;
  by: string | null;
  updated_at: string | null;
  used_by: CatalogName[];
  power: "code" | "program" | "secret" | "private" | null;
  definition: JsonObject | null;
}

/** Definitions by name. `changeable`: callers may change them. Where tools are listed, `types` are theirs. */
export interface CatalogList {
  items: CatalogItem[];
  changeable: boolean;
  types: ToolTypeView[];
}

export interface CatalogName {
  kind: "agent" | "skill" | "tool" | "source" | "upstream" | "route";
  name: string;
}

export interface CatalogVersion {
  version: number;
  name: string;
  at: string;
  by: string | null;
  deleted: boolean;
}

export interface CatalogVersions {
  versions: CatalogVersion[];
}

export interface ChangedEntry {
  seq: number;
  id: string | null;
  was: "whole" | "condensed" | "cut" | "left out" | "summary" | "facts" | "terms" | "recalled";
  now: "whole" | "condensed" | "cut" | "left out" | "summary" | "facts" | "terms" | "recalled";
}

/**
 * Changes of a conversation; omitted fields stay. A null key of `metadata` is removed, a null `expires_at` removes the
 * expiry, and `ttl_seconds` sets it from now. Lists leave an archived one out, and show a pinned one first.
 */
export interface Changes {
  label?: string | null;
  tags?: string[] | null;
  metadata?: JsonObject | null;
  status?: "active" | "paused" | "completed" | "failed" | null;
  expires_at?: string | null;
  ttl_seconds?: number | null;
  archived?: boolean | null;
  pinned?: boolean | null;
}

/** A key and an address to check; without them, those that runs use. */
export interface CheckBody {
  key?: string | null;
  url?: string | null;
}

/** The branch that the conversation follows: `end` is the id of its last message or call. */
export interface ChosenBranch {
  thread_id: string;
  end: string;
}

/** A number of an answer, and the query whose rows have it; null: none has. */
export interface CitationView {
  number: string;
  query: string | null;
}

/**
 * A query of a run, or one of an earlier run that the answer cites. `shown` says how many of its rows the model saw.
 */
export interface CitedQueryView {
  query: string;
  sql: string;
  columns: string[];
  shown?: string;
}

/** Conversations, the cursor of the next page, and the ids of damaged conversations that were skipped. */
export interface ConversationList {
  conversations: ConversationView[];
  next_cursor: string | null;
  damaged: string[];
}

/**
 * What is derived from a conversation. `memories` are those that it `said`, and those that its runs `used`. If it is
 * deleted with its memories, those `only_here` go, and those of the conversations below it.
 */
export interface ConversationMemory {
  thread_id: string;
  summary: SummaryView | null;
  topics: TopicView[];
  memories: MemoryView[];
  said: string[];
  used: string[];
  only_here: string[];
}

/**
 * A conversation of the list. `agent` is null for the analyst, `status` that of the last run, `session_status` that of
 * document 002, which can be set. `waiting_below` are the conversations below it with calls that wait, `queued` is how
 * many questions wait in it, `match` is the place that a search found.
 */
export interface ConversationView {
  tags: string[];
  metadata: JsonObject;
  expires_at: string | null;
  archived_at: string | null;
  pinned_at: string | null;
  id: string;
  label: string;
  last_active_at: string;
  created_at: string;
  source: string | null;
  agent: AgentName | null;
  parent_id: string | null;
  message_count: number;
  status: "running" | "waiting" | "finished" | "paused" | "failed" | "interrupted" | null;
  session_status: "active" | "paused" | "completed" | "failed";
  waiting_below: string[];
  queued: number;
  match?: Match;
}

export type CustomEvent = WarningEvent | TextWithdrawnEvent | DecidedEvent | InterruptedEvent | QuestionRemovedEvent;

/** A call with its decision, null while it waits; `edited` are the arguments of an edit. */
export interface DecidedCall {
  id: string;
  run: string;
  tool: string;
  args: JsonObject;
  asked_at: string;
  decision: "approve" | "edit" | "reject" | "superseded" | null;
  edited?: JsonObject;
  message?: string;
  by: string | null;
  decided_at: string | null;
}

export interface DecidedEvent {
  type: "CUSTOM";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  name: "longthread.decided";
  value: DecidedValue;
}

export interface DecidedValue {
  calls: DecisionView[];
}

/** A person's decision about a call; `args` are those of an edit. */
export interface DecisionView {
  id: string;
  tool: string;
  decision: "approve" | "edit" | "reject" | "superseded";
  by?: string | null;
  args?: JsonObject;
  message?: string;
}

/** A decision for each call, by the call's id. */
export interface Decisions {
  decisions: Record<string, ApproveDecision | EditDecision | RejectDecision>;
}

/** A definition as a person writes it, without kind and name. */
export interface DefinitionBody {
  definition: JsonObject;
}

/** A run of another agent that answers a call. */
export interface DelegatedRun {
  thread_id: string;
  run_id: string;
  call_id: string | null;
  agent: string | null;
  status: "running" | "waiting" | "finished" | "paused" | "failed" | "interrupted";
}

/** A conversation that is deleted at that time, unless it is restored before. */
export interface DeletionView {
  id: string;
  deletes_at: string;
}

/** How a view differs from that of the call at `step`. Both begin with the same `same_tokens`. */
export interface DifferenceView {
  step: number;
  same_tokens: number;
  entered: PlacedEntry[];
  left: PlacedEntry[];
  changed: ChangedEntry[];
}

/** Another question in the place of one. */
export interface EditBody {
  source?: string | null;
  model?: string | null;
  max_steps?: number | null;
  question: string;
}

/** The call is made with other arguments. */
export interface EditDecision {
  type: "edit";
  edited_action: EditedAction;
}

/** What a person changed of a call: its arguments before it was made, or its query after it (`by` whom). */
export interface EditView {
  args?: JsonObject;
  by?: string;
  note: string;
}

/** The tool of the call, which an edit cannot change, and its new arguments. */
export interface EditedAction {
  name?: string | null;
  args: JsonObject;
}

/** The run that holds an edited query, and its step with the result. */
export interface EditedQuery {
  thread_id: string;
  run_id: string;
  step: StepView;
}

/** The password of who has one. */
export interface ErasureBody {
  password?: string | null;
}

/**
 * An error of a call, a run or a refresh: `type` is its code, `params` are the values in its message. `thread_id` is
 * the conversation of the agent that a call asked.
 */
export interface ErrorView {
  type: string;
  message: string;
  params?: JsonObject;
  thread_id?: string;
}

export type Event = RunStartedEvent | TextMessageStartEvent | TextMessageContentEvent | TextMessageEndEvent | ReasoningStartEvent | ReasoningMessageStartEvent | ReasoningMessageContentEvent | ReasoningMessageEndEvent | ReasoningEndEvent | StepStartedEvent | ToolCallStartEvent | ToolCallArgsEvent | ToolCallEndEvent | ToolCallResultEvent | StepFinishedEvent | CustomEvent | RunFinishedEvent | RunErrorEvent;

/** A question, and the query that answers it. */
export interface ExampleBody {
  question: string;
  sql: string;
}

export interface FailureMetadata {
  longthread?: FailureNote;
}

export interface FailureNote {
  answer?: string;
  citations?: CitationView[];
  message_id?: string | null;
  queries?: CitedQueryView[];
  usage?: RunUsage;
  summary?: string | null;
  reason?: string;
  hint?: string;
  unfinished?: string;
  error?: ErrorView;
  calls?: PendingCall[];
  edited_by?: string;
  status: "failed";
}

export interface FeedbackList {
  feedback: FeedbackView[];
  next_cursor: string | null;
}

/**
 * An answer that was judged. `call` is the step of the model call that gave it, `sql` the last query that it rests on;
 * null where there is none.
 */
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

/**
 * A grant. `item` is the name or the id of a definition, the name of a model (`openai:*`: all of a provider), or that
 * of the demo or of the configured source. `to_id` is a user's or a group's, and empty for everyone.
 */
export interface GrantBody {
  kind: "source" | "agent" | "skill" | "tool" | "model" | "upstream" | "route";
  item: string;
  to_kind: "user" | "group" | "everyone";
  to_id?: string;
  may?: "use" | "edit";
}

export interface GrantList {
  grants: GrantView[];
}

/**
 * What a user, a group or everyone may do. `item` is the id of a definition, or the name of a model or of what is
 * configured; `granted_by` is a user's id, or `default` for what everyone may use by default.
 */
export interface GrantView {
  kind: "source" | "agent" | "skill" | "tool" | "model" | "upstream" | "route";
  item: string;
  item_name: string;
  to_kind: "user" | "group" | "everyone";
  to_id: string;
  to_name: string | null;
  may: "use" | "edit";
  granted_by: string;
  granted_at: string | null;
}

export interface GroupBody {
  name: string;
}

export interface GroupList {
  groups: GroupView[];
}

/** A group. Those of an issuer or a proxy (`origin`) get their members at each login. */
export interface GroupView {
  id: string;
  name: string;
  origin: "local" | "oidc" | "proxy";
  members: number;
}

export interface Health {
  status: "ok";
}

/**
 * A conversation's last messages on the chosen branch, or on that of the entry that was asked for (`at`). `runs` are
 * theirs, `steps` is by run, or by question outside runs; `run` is the branch's last run, `queue` has the questions
 * that wait, and `before` is the cursor of the earlier messages.
 */
export interface History {
  tags: string[];
  metadata: JsonObject;
  expires_at: string | null;
  archived_at: string | null;
  pinned_at: string | null;
  agent: AgentName;
  parent: Parent | null;
  waiting_below: Below[];
  thread_id: string;
  label: string;
  source: string | null;
  created_at: string;
  last_active_at: string;
  messages: MessageView[];
  runs: RunView[];
  steps: Record<string, StepView[]>;
  run: RunView | null;
  queue: QueuedView[];
  before: string | null;
  at: PlaceView | null;
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
  auth: AuthView;
}

/** Something a run needs from outside before it can continue, such as an approval or a missing value. */
export interface Interrupt {
  subagentRunId?: string | null;
  id: string;
  reason: string;
  message?: string | null;
  toolCallId?: string | null;
  responseSchema?: JsonObject | null;
  expiresAt?: string | null;
  metadata?: JsonObject | null;
}

/** The process that executed the run is gone. Run and stream can be resumed. */
export interface InterruptedEvent {
  type: "CUSTOM";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  name: "longthread.interrupted";
  value: InterruptedValue;
}

/** The process that executed the run is gone. Run and stream can be resumed. */
export interface InterruptedValue {
}

/** An issuer at which users log in: `id` goes into `/api/oidc/{issuer}/start`. */
export interface IssuerView {
  id: string;
  label: string;
}

/**
 * A provider's key, and the address of a server of one's own or of one among a provider's. With `check` both are stored
 * only if the provider answers and takes the key.
 */
export interface KeyBody {
  key?: string | null;
  url?: string | null;
  check?: boolean;
}

/** The models that a provider lists for a key, and where it was asked; null: it was not asked, or has no list. */
export interface KeyChecked {
  provider: string;
  url: string;
  models: string[] | null;
}

/** A conversation that left the list. */
export interface LeftConversation {
  id: string;
}

/** The password that a link sets. A setup link also needs the first user's name. */
export interface LinkBody {
  token: string;
  password: string;
  name?: string | null;
  display?: string;
}

/** What a link that works once is for, and for whom; null: it makes the first user. */
export interface LinkView {
  kind: "setup" | "invitation" | "reset";
  name: string | null;
}

/** The first page of the list, sent first, and again to a client that was away for long. */
export interface ListedConversations {
  conversations: ConversationView[];
}

export interface LocalText {
  en: string;
  zh: string;
}

export interface LoginBody {
  name: string;
  password: string;
}

export interface LoginSessionList {
  sessions: LoginSessionView[];
}

/** A login. `agent` is what the browser calls itself; `current`: this request has it. */
export interface LoginSessionView {
  id: string;
  made_at: string;
  seen_at: string;
  ends_at: string;
  address: string;
  agent: string;
  via: "local" | "session" | "key" | "proxy" | "token";
  current: boolean;
}

export interface LoginView {
  user: MeView;
}

/**
 * What a search found: the words around the place, without signs of Markdown, and the message that has them, which is
 * null where it is the title or a tag.
 */
export interface Match {
  text: string;
  message: string | null;
}

/**
 * A user, as the user sees it. `via` says how the caller was recognized. `issuer` is the login provider where the
 * session began: after `POST /api/logout`, `/api/oidc/{issuer}/logout` ends the login there.
 */
export interface MeView {
  id: string;
  name: string;
  display: string;
  email: string | null;
  role: "admin" | "builder" | "member";
  groups: string[];
  via: "local" | "session" | "key" | "proxy" | "token";
  issuer: string | null;
  has_password: boolean;
  created_at: string | null;
  budget: BudgetView | null;
}

export interface MemberBody {
  may?: "use" | "manage";
}

/** A member of a project. `may`: `use` it, or also `manage` its members, instructions and sources. */
export interface MemberView {
  id: string;
  name: string;
  display: string;
  may: "use" | "manage";
  added_at: string;
}

/**
 * Changes of a memory; omitted fields stay. A null `expires_at` removes the expiry. A pinned memory is given to every
 * run: pinning sets its importance.
 */
export interface MemoryBody {
  content?: string | null;
  type?: "episodic" | "semantic" | "procedural" | null;
  importance?: number | null;
  pinned?: boolean | null;
  expires_at?: string | null;
}

/** The messages of a conversation that a memory comes from, by their ids. */
export interface MemoryEntries {
  thread_id: string;
  entries: string[];
}

export interface MemoryList {
  memories: MemoryView[];
  warnings: string[];
}

/**
 * A memory. `pinned`: it is given to every run. `thread_id` is the conversation that it comes from, null where the user
 * said it, or where that was deleted, at `source_deleted_at`. `read` names what a model had read before it remembered
 * this, such as `run_sql q1 of demo`. At `said_at` its words were said last.
 */
export interface MemoryView {
  id: string;
  type: "episodic" | "semantic" | "procedural";
  content: string;
  importance: number;
  pinned: boolean;
  agent: string;
  thread_id: string | null;
  source_deleted_at: string | null;
  sources: MemoryEntries[];
  read: string | null;
  created_at: string;
  said_at: string;
  expires_at: string | null;
}

/** Changes of a message's metadata; a null key is removed. */
export interface MessageChanges {
  metadata: JsonObject;
}

export interface MessageMetadata {
  id: string;
  thread_id: string;
  metadata: JsonObject;
}

/**
 * A message; `kind` is `question`, `answer`, `summary` or null. `run_id` is the run that works on a question, or that
 * gave an answer. `siblings` are the message and those in its place, `answers` those of a question.
 */
export interface MessageView {
  id: string;
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  kind: string | null;
  created_at: string;
  run_id: string | null;
  metadata: JsonObject;
  siblings: Siblings;
  answers: Siblings | null;
}

/** A model by its name in requests. */
export interface ModelBody {
  model: string;
}

/**
 * A model that has answered. `window` is in tokens. Its `origin`: the `server` told it, it is `known` by the model's
 * name, `measured` by a call that was refused, a `setting`, or `assumed`.
 */
export interface ModelChecked {
  model: string;
  window: number;
  origin: "server" | "known" | "measured" | "setting" | "assumed";
}

/**
 * A model by its name in requests, and where it comes from: it is `configured`, the `demo`, of a server that was found
 * on this machine (`local`), or what a provider lists for a key. `provider` is that provider, or the kind of that
 * server. `protocol` is how the model speaks best, as a probe found; null: it was not probed.
 */
export interface ModelInfo {
  name: string;
  origin: "configured" | "demo" | "local" | "provider";
  provider: string | null;
  protocol: "native" | "json" | "sql" | null;
}

/** The models that can be asked. `default` is asked where none is named. `keys_allowed`: callers may enter keys. */
export interface ModelList {
  default: string;
  models: ModelInfo[];
  providers: ModelProvider[];
  servers: ModelServer[];
  keys_allowed: boolean;
}

/**
 * A provider that can be connected, or a user's own server: `own:NAME`. `name` and `chinese_name` are what it calls
 * itself, `addresses` the base URLs among which one is chosen; none: its user gives one. `kind`: of a `local` server
 * `addresses` says where it listens by default, and `own` connects it. `url` is where it is asked once it is
 * `connected`. `key` says where its key is from, and never what it is; `set_at` is when it was stored. `problem`: it
 * refuses the key, does not answer, or was stored under another LONGTHREAD_SECRET_KEY.
 */
export interface ModelProvider {
  provider: string;
  kind: "vendor" | "local" | "own";
  name: string;
  chinese_name: string;
  addresses: string[];
  connected: boolean;
  url: string | null;
  key: "stored" | "environment" | null;
  set_at: string | null;
  problem: "refused" | "unreachable" | "unreadable" | null;
}

/** A server on this machine, such as `ollama`. */
export interface ModelServer {
  kind: string;
  url: string;
}

/** Where a conversation goes: into a project, or with null out of the one where it is. */
export interface MoveBody {
  project: string | null;
}

export interface NewAccountView {
  id: string;
  name: string;
  display: string;
  email: string | null;
  role: "admin" | "builder" | "member";
  status: "active" | "disabled" | "pending";
  groups: string[];
  has_password: boolean;
  created_at: string;
  seen_at: string | null;
  budget: BudgetView | null;
  link: OneTimeLink;
}

/** A new API key with its text, which is given this once. */
export interface NewApiKeyView {
  id: string;
  name: string;
  user: string;
  scopes: ("chat" | "read" | "memories" | "sources" | "catalog" | "gateway" | "mcp" | "admin")[];
  agents: string[] | null;
  models: string[] | null;
  sources: string[] | null;
  budget: BudgetView | null;
  requests_per_minute: number | null;
  parallel: number | null;
  expires_at: string | null;
  made_at: string;
  seen_at: string | null;
  key: string;
}

/**
 * A conversation before its first question. Without an `id` it gets one, without an `agent` it is the analyst's.
 */
export interface NewConversation {
  id?: string | null;
  title?: string | null;
  agent?: string | null;
  source?: string | null;
  tags?: string[];
  metadata?: JsonObject;
  project?: string | null;
}

/** An opinion of an answer, with a sentence that says why. */
export interface NewFeedback {
  opinion: "up" | "down";
  text?: string;
}

export interface NewLinkBody {
  kind?: "invitation" | "reset";
}

/** A statement to remember. `agent` names the agent whose it is; by default the analyst's. */
export interface NewMemory {
  content: string;
  type?: "episodic" | "semantic" | "procedural" | null;
  importance?: number | null;
  expires_at?: string | null;
  agent?: string | null;
}

/**
 * A message that is added without a run. Without an `id` it gets one. It follows `parent_id`, by default the last
 * message. Only an assistant's has `tool_calls`; a tool's has the `tool_call_id` of the call that it answers.
 */
export interface NewMessage {
  id?: string | null;
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  parent_id?: string | null;
  tool_calls?: WrittenCall[];
  tool_call_id?: string | null;
  metadata?: JsonObject;
}

export interface NewProjectBody {
  name: string;
  instructions?: string;
}

/**
 * A source: uploaded files, by their ids, or an address. Without a name, it is called as its files or database. Several
 * files are tables that are asked and joined together.
 */
export interface NewSource {
  name?: string | null;
  uploads?: string[] | null;
  address?: string | null;
  description?: string | null;
}

export interface NewUserBody {
  name: string;
  role?: "admin" | "builder" | "member";
  display?: string;
  email?: string | null;
  groups?: string[];
}

/**
 * What is told of how a file was read: an English `text`, or what a program says by its `code` and the `values` in it.
 * Without a code there is only the text. It is on a column, a table, or neither.
 */
export interface NoteView {
  text: string;
  code: string;
  values: Record<string, string | number>;
  table: string | null;
  column: string | null;
}

/** What came out of a call. The fields of `data` are the tool's. */
export interface ObservationView {
  ok: boolean;
  data?: Json;
  error?: ErrorView;
  edited?: EditView;
}

/** Where a person sets a password, once, until `expires_at`. It is given this once. */
export interface OneTimeLink {
  path: string;
  expires_at: string;
}

/** Options of a run; omitted ones are the thread's or the server's. */
export interface Options {
  source?: string | null;
  model?: string | null;
  max_steps?: number | null;
}

/** A place `{{name}}` in the query, and the value that holds where the board gives no other. */
export interface ParameterBody {
  name: string;
  kind: "text" | "number" | "date";
  value: string | number;
  label?: string;
}

/** A parameter `{{name}}` of a query, with its value. People read `label`, or the name if it is empty. */
export interface ParameterView {
  name: string;
  label: string;
  kind: "text" | "number" | "date";
  value: string | number;
}

export interface Parent {
  id: string;
  label: string;
}

/** A new password. `current` is the one of now, null for who has none. */
export interface PasswordBody {
  current?: string | null;
  password: string;
}

/** A call that waits for a decision; `parameters` is the JSON Schema of its arguments. */
export interface PendingCall {
  id: string;
  tool: string;
  description: string;
  args: JsonObject;
  parameters: JsonObject;
}

/** Where an entry is: the message that shows it (null: none does), and whether its branch is the chosen one. */
export interface PlaceView {
  message: string | null;
  chosen: boolean;
}

export interface PlacedEntry {
  seq: number;
  id: string | null;
}

/**
 * An RFC 9457 problem. `code` is stable; `detail` says how to mend it; `params` are the values in that sentence.
 * `errors` are the wrong parts of a request.
 */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  params?: Record<string, string | number>;
  thread?: string;
  run?: string;
  errors?: Wrong[];
}

export interface ProfileBody {
  display?: string | null;
  email?: string | null;
}

/** What changes of a project. `sources` are replaced: the caller may use the new ones. */
export interface ProjectBody {
  name?: string | null;
  instructions?: string | null;
  sources?: string[] | null;
}

export interface ProjectList {
  projects: ProjectSummary[];
}

/** A project as a list has it. `may` is what the caller may do. */
export interface ProjectSummary {
  id: string;
  name: string;
  may: "use" | "manage";
  conversations: number;
  updated_at: string;
}

/**
 * A project. `instructions` go into the prompts of its runs; `sources` are the names of what it gives its members.
 */
export interface ProjectView {
  id: string;
  name: string;
  may: "use" | "manage";
  conversations: number;
  updated_at: string;
  instructions: string;
  sources: string[];
  members: MemberView[];
  created_at: string;
}

/** A query as somebody has edited it. */
export interface QueryBody {
  sql: string;
}

/**
 * A question. Without a `thread_id` it begins a conversation; with one it always sees what was said there.
 * `continue_conversation` (document 001): whether it goes on with the conversation's unfinished run. By default its
 * wording says so, such as "continue" or "继续". `project`: where a new conversation begins.
 */
export interface QuestionBody {
  source?: string | null;
  model?: string | null;
  max_steps?: number | null;
  question: string;
  thread_id?: string | null;
  protocol?: "auto" | "native" | "json" | "sql";
  agent?: string | null;
  when_busy?: "reject" | "enqueue" | "interrupt" | "rollback";
  continue_conversation?: boolean | null;
  project?: string | null;
}

/** The question was removed from the queue. This event is the stream's last. */
export interface QuestionRemovedEvent {
  type: "CUSTOM";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  name: "longthread.question_removed";
  value: RemovedValue;
}

/**
 * A question that waits for its turn; `position` counts from 1 in its conversation. `events` is the path of its stream,
 * which goes on with the events of its run.
 */
export interface Queued {
  thread_id: string;
  queued_id: string;
  position: number;
  events: string;
}

/** The questions that wait in a conversation, the next one first. */
export interface QueuedList {
  thread_id: string;
  queue: QueuedView[];
}

/** What has become of a question: its `position` while it waits, else its `run_id`. */
export interface QueuedState {
  thread_id: string;
  queued_id: string;
  position: number | null;
  run_id: string | null;
  events: string;
}

export interface QueuedView {
  thread_id: string;
  queued_id: string;
  position: number;
  events: string;
  question: string;
  queued_at: string;
}

export interface Ready {
  status: "ready";
}

/** Closes a span of reasoning. */
export interface ReasoningEndEvent {
  type: "REASONING_END";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
}

/** Appends a fragment to a streamed reasoning message. */
export interface ReasoningMessageContentEvent {
  type: "REASONING_MESSAGE_CONTENT";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
  delta: string;
}

/** Closes a streamed reasoning message. */
export interface ReasoningMessageEndEvent {
  type: "REASONING_MESSAGE_END";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
}

/** Opens a streamed reasoning message. */
export interface ReasoningMessageStartEvent {
  type: "REASONING_MESSAGE_START";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
  role?: "reasoning";
}

/** Opens a span of reasoning. A span may contain several reasoning messages. */
export interface ReasoningStartEvent {
  type: "REASONING_START";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
}

/** The messages that were found, the best first. */
export interface RecallAnswer {
  hits: RecallHit[];
  warnings: string[];
}

/**
 * A message that was found, in the conversation `thread_id` with this `label`. `active`: it is on the chosen branch.
 * `around` are messages on either side of it.
 */
export interface RecallHit {
  id: string;
  seq: number;
  role: "system" | "user" | "assistant" | "tool";
  name?: string;
  said_at: string;
  text: string;
  thread_id: string;
  label: string;
  score: number;
  active: boolean;
  around: RecalledMessage[];
}

/**
 * A message, a reply or a result: the `seq`th of its conversation. `name` is the tool of a result. `said_at` is the
 * time that its sender gave, else when it was stored. `text` is the part around the words that were found.
 */
export interface RecalledMessage {
  id: string;
  seq: number;
  role: "system" | "user" | "assistant" | "tool";
  name?: string;
  said_at: string;
  text: string;
}

/** The call is not made; the model reads the `message`. */
export interface RejectDecision {
  type: "reject";
  message?: string | null;
}

/** The question was removed from the queue. This event is the stream's last. */
export interface RemovedValue {
  queued_id: string;
}

export interface ResultMetadata {
  longthread?: ResultNote;
}

export interface ResultNote {
  step: number;
  ok: boolean | null;
  elapsed_ms: number | null;
}

/**
 * A page of a result, in the order that was asked for. `query` is its label, such as `q3`. `total` is null where the
 * rows were not counted to the end. `rerun`: the query was run again for this, so the rows may be others than the model
 * saw. Not `whole`: the database has more rows, and is not asked for them.
 */
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

/**
 * Ends a run that failed. Run-scoped, so it carries no subagent attribution; a subagent that fails without ending the
 * run reports SUBAGENT_ERROR instead.
 */
export interface RunErrorEvent {
  type: "RUN_ERROR";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: FailureMetadata | null;
  message: string;
  code?: string | null;
  usage?: TokenUsage[] | null;
}

/**
 * The run was stopped before it completed, by whoever was running it, and did not fail. Neither success nor interrupt:
 * nothing was produced as a result, and nothing is waited for, so the next run on the thread is an ordinary new run
 * rather than a resume. Closed like its siblings: a cancelled run has no interrupts to carry. Named in the schema
 * before 1.0 because an outcome a consumer does not recognise is stripped and read as success — a cancellation added
 * later would reach every 1.0 consumer as a completed run.
 */
export interface RunFinishedCancelledOutcome {
  type: "cancelled";
}

/** Closes a run that did not fail. Run-scoped, so it carries no subagent attribution. */
export interface RunFinishedEvent {
  type: "RUN_FINISHED";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  threadId: string;
  runId: string;
  result?: RunResult | null;
  outcome?: RunFinishedSuccessOutcome | RunFinishedInterruptOutcome | RunFinishedCancelledOutcome | null;
  usage?: TokenUsage[] | null;
}

/**
 * The run is paused, waiting for something outside it. Resuming means starting a new run whose resume entries answer
 * these interrupts.
 */
export interface RunFinishedInterruptOutcome {
  type: "interrupt";
  interrupts: Interrupt[];
}

/**
 * The run completed. Equivalent to an absent outcome. Closed like every other object, which is also what keeps it from
 * carrying the suspended sibling's interrupts — a success with an interrupt still pending would be a contradiction, not
 * an extension. A completed run may still have left frontend tool calls for the application to answer;
 * pendingToolCallIds names them.
 */
export interface RunFinishedSuccessOutcome {
  type: "success";
  pendingToolCallIds?: string[] | null;
}

/** An event of a run that the client watches. */
export interface RunFrame {
  thread_id: string;
  run_id: string;
  event: Event;
}

/**
 * What a run came to. A finished one has its `answer`, a paused one `summary`, `reason` and `hint`, a failed one its
 * `error`, and one that waits the `calls` to decide about.
 */
export interface RunOutcome {
  answer?: string;
  citations?: CitationView[];
  message_id?: string | null;
  queries?: CitedQueryView[];
  usage?: RunUsage;
  summary?: string | null;
  reason?: string;
  hint?: string;
  unfinished?: string;
  error?: ErrorView;
  calls?: PendingCall[];
  edited_by?: string;
}

/** The `result` of `RUN_FINISHED`. */
export interface RunResult {
  answer?: string;
  citations?: CitationView[];
  message_id?: string | null;
  queries?: CitedQueryView[];
  usage?: RunUsage;
  summary?: string | null;
  reason?: string;
  hint?: string;
  unfinished?: string;
  error?: ErrorView;
  calls?: PendingCall[];
  edited_by?: string;
  status: "running" | "waiting" | "finished" | "paused" | "failed";
}

/** Opens a run. Run-scoped, so it carries no subagent attribution. */
export interface RunStartedEvent {
  type: "RUN_STARTED";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: StartMetadata | null;
  threadId: string;
  runId: string;
  protocolVersion?: string | null;
  parentRunId?: string | null;
}

/** The tokens of a run, as its provider counted them. */
export interface RunUsage {
  input_tokens: number;
  output_tokens: number;
}

/**
 * A run. `outcome` holds what its status implies: the answer, the summary, the error, or the calls that wait.
 * `unfinished` is the text that it was writing when it was stopped or failed, which is also an interrupted message.
 * `edited_by` is the user whose edited query it ran, without a model; its answer is empty. `asked_by` is the name of
 * the member who asked, in a project.
 */
export interface RunView {
  id: string;
  status: "running" | "waiting" | "finished" | "paused" | "failed" | "interrupted";
  question: string;
  source: string | null;
  model: string;
  agent: AgentVersion | null;
  asked: DelegatedRun[];
  protocol: "auto" | "native" | "json" | "sql";
  max_steps: number;
  continues: string | null;
  started_at: string;
  ended_at: string | null;
  outcome: RunOutcome;
  unfinished: string;
  edited_by: string | null;
  asked_by: string | null;
  approvals: DecidedCall[];
  warnings: string[];
  last_event_seq: number;
  events: string;
}

/**
 * What a call saw of an entry, or of those from `first` to `seq`: `how`, in which `tier`, and `why` so. `id` is the
 * entry's, null for several or where it was deleted; `call_id` is the call that it is the result of.
 */
export interface SeenEntry {
  id: string | null;
  seq: number;
  first: number | null;
  count: number;
  role: string;
  run_id: string | null;
  call_id: string | null;
  how: "whole" | "condensed" | "cut" | "left out" | "summary" | "facts" | "terms" | "recalled";
  why: "budget" | "digest" | "stale" | "unpaired" | "window" | "pruned" | null;
  tier: number | null;
  tokens: number;
  text: string;
}

export interface ServerSentEvent {
  id?: string;
  data: JsonText<Event>;
}

/** When a link expires: at a time, or so many seconds from now; without either, never. */
export interface ShareBody {
  expires_at?: string | null;
  ttl_seconds?: number | null;
}

export interface ShareList {
  shares: ShareView[];
}

/** A new link. `token` is given this once; `path` is where a browser opens it. */
export interface ShareMade {
  id: string;
  created_at: string;
  expires_at: string | null;
  token: string;
  path: string;
}

/** A link to a conversation as it was at `created_at`. */
export interface ShareView {
  id: string;
  created_at: string;
  expires_at: string | null;
}

/** A board as it was at `shared_at`, to read. */
export interface SharedBoard {
  title: string;
  shared_at: string;
  cards: SharedCard[];
}

/** A card as a link shows it. `parameters` have the values that its rows were read with. */
export interface SharedCard {
  id: string;
  title: string;
  question: string;
  sql: string;
  parameters: ParameterView[];
  look: JsonObject;
  result: CardResult;
  read_at: string;
}

/**
 * A conversation up to the message where it was shared, to read. `label` is its present title. `steps` is by run, or by
 * question outside runs; calls that concern memory are left out. `before` is the cursor of the earlier messages.
 */
export interface SharedConversation {
  label: string;
  created_at: string;
  shared_at: string;
  messages: SharedMessage[];
  runs: SharedRun[];
  steps: Record<string, StepView[]>;
  before: string | null;
}

export interface SharedMessage {
  id: string;
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  kind: string | null;
  created_at: string;
  run_id: string | null;
}

/** A run that has ended. `outcome` has its answer or summary with citations and queries. */
export interface SharedRun {
  id: string;
  status: "running" | "waiting" | "finished" | "paused" | "failed" | "interrupted";
  model: string;
  agent: string | null;
  started_at: string;
  ended_at: string | null;
  outcome: RunOutcome;
  unfinished: string;
}

/**
 * What stands at one place of a conversation, one branch each, oldest first: the ids of the first messages. `shown` is
 * the index of the branch that the history follows; null: none of these.
 */
export interface Siblings {
  ids: string[];
  shown: number | null;
}

export interface SourceColumn {
  name: string;
  type: string;
}

export interface SourceExample {
  question: string;
  sql: string;
}

/** The sources. `default` is asked where none is named. `changeable`: callers may add and remove some. */
export interface SourceList {
  sources: SourceView[];
  default: string | null;
  changeable: boolean;
}

/** The first tables `of` so many. `notes` say what was guessed, and which files were left out. */
export interface SourcePreview {
  tables: TableView[];
  of: number;
  notes: NoteView[];
}

export interface SourceTerm {
  name: string;
  meaning: string | null;
  sql: string | null;
  synonyms: string[];
}

/**
 * What a source was taught, in this version of it; `version` is 0 where nobody has taught it. `metrics` are the names
 * of those that its definition has.
 */
export interface SourceTerms {
  source: string;
  version: number;
  description: string | null;
  terms: SourceTerm[];
  examples: SourceExample[];
  metrics: string[];
  changeable: boolean;
}

/**
 * A source, by the name that a question may give as its `source`. `address` has no password. It is null for `files`
 * that were uploaded, whose id is `upload`: the address that a conversation keeps has it as a part.
 */
export interface SourceView {
  name: string;
  origin: "configured" | "demo" | "catalog";
  description: string | null;
  address: string | null;
  upload: string | null;
  files: string[];
}

/** What was spent from one day to another, both included, in UTC. */
export interface SpendingReport {
  by: "user" | "key" | "agent" | "model" | "day";
  since: string;
  until: string;
  currency: string;
  rows: SpendingView[];
}

/**
 * What one user, key, agent or model spent, or what was spent on one day. `name` is for people; null where there is
 * none: requests without a key, or through the gateway, which has no agent. `cost` is in the server's currency, without
 * the `unpriced` tokens of models that have no price.
 */
export interface SpendingView {
  id: string;
  name: string | null;
  requests: number;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  unpriced: number;
}

export interface StartMetadata {
  longthread?: StartNote;
}

export interface StartNote {
  question: string;
  source: string | null;
  model: string;
  protocol: "auto" | "native" | "json" | "sql";
  max_steps: number;
  continues: string | null;
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

/** Closes a named step. */
export interface StepFinishedEvent {
  type: "STEP_FINISHED";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  stepName: string;
}

/** Opens a named step within a run, for producers whose frameworks have a step concept worth surfacing. */
export interface StepStartedEvent {
  type: "STEP_STARTED";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: CallMetadata | null;
  subagentRunId?: string | null;
  stepName: string;
}

/**
 * A call. `observation` is null while it has none, and `cut` says that only a part is shown; `step` and `elapsed_ms`
 * are null outside runs.
 */
export interface StepView {
  step: number | null;
  action: string;
  args: JsonObject;
  call_id: string | null;
  ok: boolean | null;
  observation: ObservationView | null;
  cut: boolean;
  thought: string;
  elapsed_ms: number | null;
  started_at: string;
  status: "running" | "done" | "failed" | "abandoned";
}

/** The conversation's last run, null where it never had one. */
export interface Stopped {
  thread_id: string;
  run: RunView | null;
}

/**
 * The summary of a conversation's messages from `first` to `last`, by their ids; null where one was deleted. `model`
 * wrote it; null: it was made without one.
 */
export interface SummaryView {
  text: string;
  messages: number;
  first: string | null;
  last: string | null;
  model: string | null;
}

/** Whether runs may use it. */
export interface SwitchBody {
  is_active: boolean;
}

/** A table with its first rows; `problem` says why they cannot be read. */
export interface TableView {
  name: string;
  columns: SourceColumn[];
  rows: Json[][];
  problem: string | null;
}

export interface TagList {
  tags: TagView[];
}

/** A tag, and how many conversations have it. */
export interface TagView {
  tag: string;
  conversations: number;
}

/** A word of the business: what it means, in words, in SQL or in both. SQL may be a part of a statement. */
export interface TermBody {
  name: string;
  meaning?: string | null;
  sql?: string | null;
  synonyms?: string[];
}

/**
 * Terms and examples to add, in the place of those of the same name and question, and the names and questions of those
 * to remove.
 */
export interface TermsBody {
  description?: string | null;
  terms?: TermBody[];
  examples?: ExampleBody[];
  remove_terms?: string[];
  remove_examples?: string[];
}

export interface TextEndMetadata {
  longthread?: TextEndNote;
}

/** The text stays as an unfinished message: its run was stopped, or failed. */
export interface TextEndNote {
  interrupted: true;
}

/** Appends a fragment to a streamed text message. */
export interface TextMessageContentEvent {
  type: "TEXT_MESSAGE_CONTENT";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
  delta: string;
}

/** Closes a streamed text message. */
export interface TextMessageEndEvent {
  type: "TEXT_MESSAGE_END";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: TextEndMetadata | null;
  subagentRunId?: string | null;
  messageId: string;
}

/**
 * Opens a streamed text message. The content arrives as TEXT_MESSAGE_CONTENT events and the message closes with
 * TEXT_MESSAGE_END.
 */
export interface TextMessageStartEvent {
  type: "TEXT_MESSAGE_START";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  messageId: string;
  role?: "developer" | "system" | "assistant" | "user" | null;
  name?: string | null;
}

/** This text is no answer, but a thought or an aborted attempt. */
export interface TextWithdrawnEvent {
  type: "CUSTOM";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  name: "longthread.text_withdrawn";
  value: WithdrawnValue;
}

/** The token of a link that works once. */
export interface TokenBody {
  token: string;
}

/**
 * Token counts for one provider and model, in the protocol's own accounting: every count is either a total or a named
 * part of one, so entries from different providers add up without double-counting. inputTokens and outputTokens are the
 * totals; reasoningTokens, cachedInputTokens and cacheWriteInputTokens are parts of them, never additions to them;
 * totalTokens is the two totals summed. Every field is a label or a number — nothing content-bearing or identifying, no
 * prompts, completions, messages, or thread, run and user identifiers.
 */
export interface TokenUsage {
  provider?: string | null;
  model?: string | null;
  inputTokens?: number | null;
  outputTokens?: number | null;
  totalTokens?: number | null;
  reasoningTokens?: number | null;
  cachedInputTokens?: number | null;
  cacheWriteInputTokens?: number | null;
}

/** Appends a fragment of a tool call's arguments. */
export interface ToolCallArgsEvent {
  type: "TOOL_CALL_ARGS";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  toolCallId: string;
  delta: string;
}

/** Closes a tool call, meaning its arguments are complete. */
export interface ToolCallEndEvent {
  type: "TOOL_CALL_END";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  toolCallId: string;
}

/**
 * Carries what a tool returned. Mints a tool message rather than appending to an existing one, which is why it has its
 * own messageId.
 */
export interface ToolCallResultEvent {
  type: "TOOL_CALL_RESULT";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: ResultMetadata | null;
  subagentRunId?: string | null;
  messageId: string;
  toolCallId: string;
  content: string;
  role?: "tool" | null;
}

/** Opens a tool call. The arguments arrive as TOOL_CALL_ARGS events and the call closes with TOOL_CALL_END. */
export interface ToolCallStartEvent {
  type: "TOOL_CALL_START";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  toolCallId: string;
  toolCallName: string;
  parentMessageId?: string | null;
}

/** A field of an implementation that a form shows. `none` is what an empty choice says. */
export interface ToolFieldView {
  name: string;
  input: "text" | "code" | "sql" | "choice" | "source";
  title: LocalText;
  hint: LocalText | null;
  options: string[];
  none: LocalText | null;
}

/** What an agent would be told: `{"ok": true, "data": …}` or `{"ok": false, "error": {"type", "message"}}`. */
export interface ToolTrial {
  tool: string;
  observation: ObservationView;
}

/**
 * A type of tools. `about` says what it does; a type without it is defined on the command line alone. A form shows
 * `fields` of its implementation, and `more` gives examples of the others. One that `serves_tools` may have several for
 * a definition, whose schemas it knows itself.
 */
export interface ToolTypeView {
  name: string;
  title: LocalText;
  about: LocalText | null;
  fields: ToolFieldView[];
  more: LocalText | null;
  serves_tools: boolean;
}

export interface TopicSpan {
  first: string | null;
  last: string | null;
}

/** A topic, how often it was mentioned, and in which stretches of messages. */
export interface TopicView {
  topic: string;
  mentions: number;
  spans: TopicSpan[];
}

/**
 * Arguments of a call. `source` is what a built-in tool asks; `approve` approves a call that needs that. With a
 * `definition` it is called as that says, which is not stored.
 */
export interface TrialBody {
  args?: JsonObject;
  source?: string | null;
  approve?: boolean;
  definition?: JsonObject | null;
}

/** An edited query that was run, in no conversation: its step has no number. */
export interface TriedQuery {
  thread_id: string;
  step: StepView;
}

/**
 * A file that was uploaded. `name` is what its source would be called; `source` is the one whose file it has replaced,
 * else null.
 */
export interface UploadView {
  tables: TableView[];
  of: number;
  notes: NoteView[];
  upload: string;
  name: string;
  file: string;
  bytes: number;
  source: SourceView | null;
}

/**
 * Calls of a model, and the tokens that its provider counted; of `uncounted` calls it said nothing. With `fallback`
 * another model answered in its place. `cost` is null where no price is configured.
 */
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

/** What a conversation has used, with those below it. `currency` is that of the costs. */
export interface UsageView {
  thread_id: string;
  runs: number;
  tool_calls: number;
  currency: string;
  models: UsageOfModel[];
}

/** What changes of a user. A budget of null: none. */
export interface UserBody {
  role?: "admin" | "builder" | "member" | null;
  status?: "active" | "disabled" | null;
  display?: string | null;
  email?: string | null;
  budget?: BudgetBody | null;
}

export type UserEvent = {
  id?: string;
  event: "conversations";
  data: JsonText<ListedConversations>;
} | {
  id?: string;
  event: "conversation";
  data: JsonText<ConversationView>;
} | {
  id?: string;
  event: "archived";
  data: JsonText<LeftConversation>;
} | {
  id?: string;
  event: "deleted";
  data: JsonText<LeftConversation>;
} | {
  id?: string;
  event: "approvals";
  data: JsonText<WaitingApprovals>;
} | {
  id?: string;
  event: "gone";
  data: JsonText<WatchedRun>;
} | {
  id?: string;
  event: "run";
  data: JsonText<RunFrame>;
};

/** The entries from `first` to `last` that went into a view alike. */
export interface ViewSegment {
  first: number;
  last: number;
  how: "whole" | "condensed" | "cut" | "left out" | "summary" | "facts" | "terms" | "recalled";
  tokens: number;
  why: "budget" | "digest" | "stale" | "unpaired" | null;
  limit: number | null;
  bare: boolean;
}

/** What a server tells before a login. */
export interface VisitorInfo {
  auth: AuthView;
}

export interface WaitingApprovals {
  waiting: WaitingRun[];
}

/** The calls of a run that a person has to decide about. */
export interface WaitingRun {
  thread_id: string;
  run_id: string;
  calls: PendingCall[];
}

/** Something was cut, retried or not understood. */
export interface WarningEvent {
  type: "CUSTOM";
  timestamp?: number | null;
  rawEvent?: Json | null;
  metadata?: JsonObject | null;
  subagentRunId?: string | null;
  name: "longthread.warning";
  value: WarningValue;
}

/** Something was cut, retried or not understood. */
export interface WarningValue {
  message: string;
}

/** A run that the client watches and that is not there (any more). */
export interface WatchedRun {
  thread_id: string;
  run_id: string;
}

/** This text is no answer, but a thought or an aborted attempt. */
export interface WithdrawnValue {
  message_id: string;
}

/** A tool call in OpenAI's form (document 002). */
export interface WrittenCall {
  id: string;
  type?: "function";
  function: WrittenFunction;
}

/** The tool of a call, and its arguments: an object, or the text of one as OpenAI has it. */
export interface WrittenFunction {
  name: string;
  arguments?: JsonObject | string;
}

/** A part of a request that is wrong, such as `body.question`, and why, for people and for programs. */
export interface Wrong {
  at: string;
  message: string;
  kind: "missing" | "too_long" | "not_text" | "not_number" | "not_flag" | "not_object" | "not_list" | "twice" | "unknown_field" | "unknown_name" | "other";
}
