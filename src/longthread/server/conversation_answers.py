"""The answers about conversations: their lists, messages, history, questions that wait, opinions and tags."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from longthread.model.entry import Role
from longthread.model.run import ShownStatus
from longthread.model.thread import Opinion, SessionStatus
from longthread.server.answers import AgentName, JsonObject, RunView, StepView, Timestamp


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
