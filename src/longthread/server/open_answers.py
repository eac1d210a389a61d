"""The shapes inside of answers' open objects: how a run ended, what a call found, and what Longthread puts into the
open fields of AG-UI's events.

The OpenAPI description has them. Nothing validates them when the server answers: tools put more into a result, and
archives hold runs of other versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from longthread.model.approval import Outcome
from longthread.model.run import Protocol, RunStatus
from longthread.server.answers import ConversationView, JsonObject, PendingCall
from longthread.server.events import DECIDED, INTERRUPTED, REMOVED, WARNING, WITHDRAWN


class ErrorView(TypedDict):
    """An error of a call, a run or a refresh: `type` is its code, `params` are the values in its message.
    `thread_id` is the conversation of the agent that a call asked."""

    type: str
    message: str
    params: NotRequired[JsonObject]
    thread_id: NotRequired[str]


class EditView(TypedDict):
    """What a person changed of a call: its arguments before it was made, or its query after it (`by` whom)."""

    args: NotRequired[JsonObject]
    by: NotRequired[str]
    note: str


class ObservationView(TypedDict):
    """What came out of a call. The fields of `data` are the tool's."""

    ok: bool
    data: NotRequired[Any]
    error: NotRequired[ErrorView]
    edited: NotRequired[EditView]


class CitationView(TypedDict):
    """A number of an answer, and the query whose rows have it; null: none has."""

    number: str
    query: str | None


class CitedQueryView(TypedDict):
    """A query of a run, or one of an earlier run that the answer cites. `shown` says how many of its rows the model
    saw."""

    query: str
    sql: str
    columns: list[str]
    shown: NotRequired[str]


class RunUsage(TypedDict):
    """The tokens of a run, as its provider counted them."""

    input_tokens: int
    output_tokens: int


class RunOutcome(TypedDict, total=False):
    """What a run came to. A finished one has its `answer`, a paused one `summary`, `reason` and `hint`, a failed one
    its `error`, and one that waits the `calls` to decide about."""

    answer: str
    citations: list[CitationView]
    message_id: str | None
    queries: list[CitedQueryView]
    usage: RunUsage
    summary: str | None
    reason: str
    hint: str
    unfinished: str
    error: ErrorView
    calls: list[PendingCall]
    edited_by: str


class RunResult(RunOutcome):
    """The `result` of `RUN_FINISHED`."""

    status: RunStatus


class StartNote(TypedDict):
    question: str
    source: str | None
    model: str
    protocol: Protocol
    max_steps: int
    continues: str | None


class CallNote(TypedDict):
    step: int
    call_id: str


class ResultNote(TypedDict):
    step: int
    ok: bool | None
    elapsed_ms: int | None


class TextEndNote(TypedDict):
    """The text stays as an unfinished message: its run was stopped, or failed."""

    interrupted: Literal[True]


class FailureNote(RunOutcome):
    status: Literal["failed"]


class StartMetadata(TypedDict):
    longthread: NotRequired[StartNote]


class CallMetadata(TypedDict):
    longthread: NotRequired[CallNote]


class ResultMetadata(TypedDict):
    longthread: NotRequired[ResultNote]


class TextEndMetadata(TypedDict):
    longthread: NotRequired[TextEndNote]


class FailureMetadata(TypedDict):
    longthread: NotRequired[FailureNote]


class WarningValue(TypedDict):
    """Something was cut, retried or not understood."""

    message: str


class WithdrawnValue(TypedDict):
    """This text is no answer, but a thought or an aborted attempt."""

    message_id: str


class DecisionView(TypedDict):
    """A person's decision about a call; `args` are those of an edit."""

    id: str
    tool: str
    decision: Outcome
    by: NotRequired[str | None]
    args: NotRequired[JsonObject]
    message: NotRequired[str]


class DecidedValue(TypedDict):
    calls: list[DecisionView]


class InterruptedValue(TypedDict):
    """The process that executed the run is gone. Run and stream can be resumed."""


class RemovedValue(TypedDict):
    """The question was removed from the queue. This event is the stream's last."""

    queued_id: str


class ListedConversations(TypedDict):
    """The first page of the list, sent first, and again to a client that was away for long."""

    conversations: list[ConversationView]


class LeftConversation(TypedDict):
    """A conversation that left the list."""

    id: str


class WaitingRun(TypedDict):
    """The calls of a run that a person has to decide about."""

    thread_id: str
    run_id: str
    calls: list[PendingCall]


class WaitingApprovals(TypedDict):
    waiting: list[WaitingRun]


class WatchedRun(TypedDict):
    """A run that the client watches and that is not there (any more)."""

    thread_id: str
    run_id: str


OPEN_FIELDS: Mapping[tuple[str, str], Any] = {
    ("RunView", "outcome"): RunOutcome,
    ("SharedRun", "outcome"): RunOutcome,
    ("StepView", "observation"): ObservationView,
    ("ToolTrial", "observation"): ObservationView,
    ("CardView", "error"): ErrorView,
    ("RunStartedEvent", "metadata"): StartMetadata,
    ("StepStartedEvent", "metadata"): CallMetadata,
    ("ToolCallResultEvent", "metadata"): ResultMetadata,
    ("TextMessageEndEvent", "metadata"): TextEndMetadata,
    ("RunErrorEvent", "metadata"): FailureMetadata,
    ("RunFinishedEvent", "result"): RunResult,
}
"""What the open fields of schemas hold, by schema and field."""
CUSTOM_EVENTS: Mapping[str, tuple[str, Any]] = {
    "WarningEvent": (WARNING, WarningValue),
    "TextWithdrawnEvent": (WITHDRAWN, WithdrawnValue),
    "DecidedEvent": (DECIDED, DecidedValue),
    "InterruptedEvent": (INTERRUPTED, InterruptedValue),
    "QuestionRemovedEvent": (REMOVED, RemovedValue),
}
"""Longthread's own events among AG-UI's: by their schemas, their names and what their values are."""
USER_EVENTS: Mapping[str, Any] = {
    "conversations": ListedConversations,
    "conversation": ConversationView,
    "archived": LeftConversation,
    "deleted": LeftConversation,
    "approvals": WaitingApprovals,
    "gone": WatchedRun,
}
"""What a user's stream tells of the list and of runs that are gone, by the event's name."""
