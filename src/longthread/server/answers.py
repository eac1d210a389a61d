"""The answers of the API, as they are in its OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from longthread.model.run import How, Outcome, Protocol, ShownStatus, StepStatus, Why

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
    `edited_by` is the user whose edited query it ran, without a model; its answer is empty. `asked_by` is the name of
    the member who asked, in a project."""

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
    asked_by: str | None
    approvals: list[DecidedCall]
    warnings: list[str]
    last_event_seq: int
    events: str


class Stopped(TypedDict):
    """The conversation's last run, null where it never had one."""

    thread_id: str
    run: RunView | None


class Health(TypedDict):
    status: Literal["ok"]


class Ready(TypedDict):
    status: Literal["ready"]


class NotReady(TypedDict):
    """The server begins or ends, or nothing can be written: `detail` says why."""

    status: Literal["warming", "draining", "read_only", "unwritable"]
    detail: NotRequired[str]
