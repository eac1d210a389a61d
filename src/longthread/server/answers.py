"""The answers of the API, as they are in its OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from longthread.model.entry import Role
from longthread.model.run import How, Outcome, Protocol, ShownStatus, StepStatus, Why
from longthread.model.thread import Opinion, SessionStatus

Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
JsonObject = dict[str, Any]


class AgentInfo(TypedDict):
    """An active agent. With `asks_source` it, or an agent below it, asks a source; `source` is the name of its
    own, and `model` its own model, which a question may name another one for."""

    id: str
    name: str
    description: str
    asks_source: bool
    source: str | None
    model: str | None


class AgentList(TypedDict):
    agents: list[AgentInfo]


class AgentName(TypedDict):
    id: str
    name: str | None


class AgentVersion(AgentName):
    """The agent of a run, by its name at that time."""

    version: int


class Attributes(TypedDict):
    """What people note about a conversation."""

    tags: list[str]
    metadata: JsonObject
    expires_at: Timestamp | None
    archived_at: Timestamp | None
    pinned_at: Timestamp | None


class Match(TypedDict):
    """What a search found: the words around the place, without signs of Markdown, and the message that has them, which
    is null where it is the title or a tag."""

    text: str
    message: str | None


class ConversationView(Attributes):
    """A conversation of the list. `agent` is null for the analyst, `status` that of the last run, `session_status` that
    of document 002, which can be set. `waiting_below` are the conversations below it with calls that wait, `queued` is
    how many questions wait in it, `match` is the place that a search found."""

    id: str
    label: str
    last_active_at: Timestamp
    created_at: Timestamp
    source: str | None
    agent: AgentName | None
    parent_id: str | None
    message_count: int
    status: ShownStatus | None
    session_status: SessionStatus
    waiting_below: list[str]
    queued: int
    match: NotRequired[Match]


class ConversationList(TypedDict):
    """Conversations, the cursor of the next page, and the ids of damaged conversations that were skipped."""

    conversations: list[ConversationView]
    next_cursor: str | None
    damaged: list[str]


class TagView(TypedDict):
    """A tag, and how many conversations have it."""

    tag: str
    conversations: int


class TagList(TypedDict):
    tags: list[TagView]


class FeedbackView(TypedDict):
    """An answer that was judged. `call` is the step of the model call that gave it, `sql` the last query that it rests
    on; null where there is none."""

    thread_id: str
    message_id: str
    run_id: str | None
    call: int | None
    question: str
    answer: str
    sql: str | None
    source: str | None
    model: str | None
    opinion: Opinion
    text: str
    at: Timestamp


class FeedbackList(TypedDict):
    feedback: list[FeedbackView]
    next_cursor: str | None


class DeletionView(TypedDict):
    """A conversation that is deleted at that time, unless it is restored before."""

    id: str
    deletes_at: Timestamp


class MessageMetadata(TypedDict):
    id: str
    thread_id: str
    metadata: JsonObject


class Accepted(TypedDict):
    """A run that has begun or goes on. `events` is the path of its stream."""

    thread_id: str
    run_id: str
    events: str


class Queued(TypedDict):
    """A question that waits for its turn; `position` counts from 1 in its conversation. `events` is the path of its
    stream, which goes on with the events of its run."""

    thread_id: str
    queued_id: str
    position: int
    events: str


class QueuedView(Queued):
    question: str
    queued_at: Timestamp


class QueuedState(TypedDict):
    """What has become of a question: its `position` while it waits, else its `run_id`."""

    thread_id: str
    queued_id: str
    position: int | None
    run_id: str | None
    events: str


class QueuedList(TypedDict):
    """The questions that wait in a conversation, the next one first."""

    thread_id: str
    queue: list[QueuedView]


class Siblings(TypedDict):
    """What stands at one place of a conversation, one branch each, oldest first: the ids of the first messages. `shown`
    is the index of the branch that the history follows; null: none of these."""

    ids: list[str]
    shown: int | None


class MessageView(TypedDict):
    """A message; `kind` is `question`, `answer`, `summary` or null. `run_id` is the run that works on a question, or
    that gave an answer. `siblings` are the message and those in its place, `answers` those of a question."""

    id: str
    role: Role
    content: str
    kind: str | None
    created_at: Timestamp
    run_id: str | None
    metadata: JsonObject
    siblings: Siblings
    answers: Siblings | None


class ChosenBranch(TypedDict):
    """The branch that the conversation follows: `end` is the id of its last message or call."""

    thread_id: str
    end: str


class StepView(TypedDict):
    """A call. `observation` is null while it has none, and `cut` says that only a part is shown; `step` and
    `elapsed_ms` are null outside runs."""

    step: int | None
    action: str
    args: JsonObject
    call_id: str | None
    ok: bool | None
    observation: JsonObject | None
    cut: bool
    thought: str
    elapsed_ms: int | None
    started_at: Timestamp
    status: StepStatus | Literal["abandoned"]


class CallInfo(TypedDict):
    """A call of the model: the `number`th of the `of` calls of its run. `tokens` are those of the messages that it saw,
    by estimate; `budget` is what they might have."""

    step: int
    run_id: str
    number: int
    of: int
    model: str
    started_at: Timestamp
    status: StepStatus
    tokens: int
    budget: int | None
    usage: dict[str, int]


class CallList(TypedDict):
    """Calls of the model, oldest first; `before` is the cursor of the earlier ones."""

    thread_id: str
    calls: list[CallInfo]
    before: str | None


class ViewSegment(TypedDict):
    """The entries from `first` to `last` that went into a view alike."""

    first: int
    last: int
    how: How
    tokens: int
    why: Why | None
    limit: int | None
    bare: bool


class SeenEntry(TypedDict):
    """What a call saw of an entry, or of those from `first` to `seq`: `how`, in which `tier`, and `why` so. `id` is the
    entry's, null for several or where it was deleted; `call_id` is the call that it is the result of."""

    id: str | None
    seq: int
    first: int | None
    count: int
    role: str
    run_id: str | None
    call_id: str | None
    how: How
    why: Why | Literal["window", "pruned"] | None
    tier: int | None
    tokens: int
    text: str


class PlacedEntry(TypedDict):
    seq: int
    id: str | None


class ChangedEntry(PlacedEntry):
    was: How
    now: How


class DifferenceView(TypedDict):
    """How a view differs from that of the call at `step`. Both begin with the same `same_tokens`."""

    step: int
    same_tokens: int
    entered: list[PlacedEntry]
    left: list[PlacedEntry]
    changed: list[ChangedEntry]


class CallView(CallInfo):
    """What a call of the model saw. `why_planned` says why its view does not extend that of the call before; it is
    empty if it does."""

    thread_id: str
    why_planned: str
    system: str
    tools: list[str]
    segments: list[ViewSegment]
    entries: list[SeenEntry]
    difference: DifferenceView | None


class ResultRows(TypedDict):
    """A page of a result, in the order that was asked for. `query` is its label, such as `q3`. `total` is null where
    the rows were not counted to the end. `rerun`: the query was run again for this, so the rows may be others than the
    model saw. Not `whole`: the database has more rows, and is not asked for them."""

    thread_id: str
    step: int
    query: str | None
    sql: str
    columns: list[str]
    rows: list[list[Any]]
    offset: int
    total: int | None
    cut_cells: int
    whole: bool
    rerun: bool


class TriedQuery(TypedDict):
    """An edited query that was run, in no conversation: its step has no number."""

    thread_id: str
    step: StepView


class EditedQuery(TypedDict):
    """The run that holds an edited query, and its step with the result."""

    thread_id: str
    run_id: str
    step: StepView


class UsageOfModel(TypedDict):
    """Calls of a model, and the tokens that its provider counted; of `uncounted` calls it said nothing. With `fallback`
    another model answered in its place. `cost` is null where no price is configured."""

    model: str
    fallback: bool
    calls: int
    uncounted: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None


class UsageView(TypedDict):
    """What a conversation has used, with those below it. `currency` is that of the costs."""

    thread_id: str
    runs: int
    tool_calls: int
    currency: str
    models: list[UsageOfModel]


class PendingCall(TypedDict):
    """A call that waits for a decision; `parameters` is the JSON Schema of its arguments."""

    id: str
    tool: str
    description: str
    args: JsonObject
    parameters: JsonObject


class DecidedCall(TypedDict):
    """A call with its decision, null while it waits; `edited` are the arguments of an edit."""

    id: str
    run: str
    tool: str
    args: JsonObject
    asked_at: Timestamp
    decision: Outcome | None
    edited: NotRequired[JsonObject]
    message: NotRequired[str]
    by: str | None
    decided_at: Timestamp | None


class ApprovalList(TypedDict):
    thread_id: str
    run_id: str | None
    pending: list[PendingCall]
    decided: list[DecidedCall]


class DelegatedRun(TypedDict):
    """A run of another agent that answers a call."""

    thread_id: str
    run_id: str
    call_id: str | None
    agent: str | None
    status: ShownStatus


class RunView(TypedDict):
    """A run. `outcome` holds what its status implies: the answer, the summary, the error, or the calls that wait.
    `unfinished` is the text that it was writing when it was stopped or failed, which is also an interrupted message.
    `edited_by` is the user whose edited query it ran, without a model; its answer is empty."""

    id: str
    status: ShownStatus
    question: str
    source: str | None
    model: str
    agent: AgentVersion | None
    asked: list[DelegatedRun]
    protocol: Protocol
    max_steps: int
    continues: str | None
    started_at: Timestamp
    ended_at: Timestamp | None
    outcome: JsonObject
    unfinished: str
    edited_by: str | None
    approvals: list[DecidedCall]
    warnings: list[str]
    last_event_seq: int
    events: str


class Stopped(TypedDict):
    """The conversation's last run, null where it never had one."""

    thread_id: str
    run: RunView | None


class Parent(TypedDict):
    id: str
    label: str


class Below(TypedDict):
    id: str
    label: str
    agent: str | None


class Lineage(TypedDict):
    """A conversation's agent, its parent, and the conversations below it with calls that wait."""

    agent: AgentName
    parent: Parent | None
    waiting_below: list[Below]


class PlaceView(TypedDict):
    """Where an entry is: the message that shows it (null: none does), and whether its branch is the chosen one."""

    message: str | None
    chosen: bool


class History(Attributes, Lineage):
    """A conversation's last messages on the chosen branch, or on that of the entry that was asked for (`at`). `runs`
    are theirs, `steps` is by run, or by question outside runs; `run` is the branch's last run, `queue` has the
    questions that wait, and `before` is the cursor of the earlier messages."""

    thread_id: str
    label: str
    source: str | None
    created_at: Timestamp
    last_active_at: Timestamp
    messages: list[MessageView]
    runs: list[RunView]
    steps: dict[str, list[StepView]]
    run: RunView | None
    queue: list[QueuedView]
    before: str | None
    at: PlaceView | None


class StateView(TypedDict):
    """A conversation's state, with document 000's fields."""

    question: str
    messages: list[JsonObject]
    steps: list[JsonObject]
    known_tables: list[Any]
    known_schemas: JsonObject
    candidate_tables: list[str]
    known_samples: JsonObject
    error_history: list[JsonObject]
    sql_history: list[JsonObject]
    last_error: JsonObject | None
    done: bool
    answer: JsonObject | None
    max_steps: int | None
    compressed_summary: str | None
    compressed_message_count: int
    compressed_config_hash: str | None


class Health(TypedDict):
    status: Literal["ok"]


class Ready(TypedDict):
    status: Literal["ready"]


class NotReady(TypedDict):
    """The server begins or ends, or nothing can be written: `detail` says why."""

    status: Literal["warming", "draining", "read_only", "unwritable"]
    detail: NotRequired[str]


class Info(TypedDict):
    """What a server serves, and as which user. `sources` are those that callers may name: `any`, or a list."""

    version: str
    model: str
    demo: bool
    source: str | None
    sources: Literal["any"] | list[str]
    max_steps: int
    user: str
    database: str | None
