"""Runs: their steps, the manifest of each call, their events, and the calls that wait for a person to approve them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from longthread.errors import InvalidInput
from longthread.model.entry import Entry

RunStatus = Literal["running", "waiting", "finished", "paused", "failed"]
"""`waiting`: for a person's approval of its calls (`longthread.model.run`)."""
ShownStatus = RunStatus | Literal["interrupted"]
"""`interrupted`: unfinished, and no process executes it."""
StepKind = Literal["model", "tool"]
StepStatus = Literal["running", "done", "failed"]
Protocol = Literal["auto", "native", "json", "sql"]
ProbedProtocol = Literal["native", "json", "sql"]
EventType = Literal[
    "started",  # question, source, model, protocol, max_steps, continues
    "text",  # delta: a piece of the answer as the model writes it; message_id
    "thought",  # text: why the model does what comes next
    "step_started",  # step, action, args, call_id
    "step_finished",  # step, action, call_id, ok, observation, elapsed_ms
    "waiting",  # calls [{id, tool, description, args, parameters}] that a person has to decide about
    "decided",  # calls [{id, tool, decision, by, args?, message?}], pending: how many are still undecided, request?
    "warning",  # message: something was cut, retried or not understood
    "finished",  # answer, citations, queries, usage
    "paused",  # summary, reason (max_steps | repeated | stopped | interrupted | superseded), hint, unfinished?
    "failed",  # error {type, message}, unfinished?
]
FINAL: frozenset[str] = frozenset({"finished", "paused", "failed"})
"""The types that end a run. Each run has exactly one, as its last event."""
HALTS: frozenset[str] = FINAL | {"waiting"}
"""The types that end an execution. Any process continues a waiting run with another execution."""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The agent of a run: its id and version, and in `parts` by kind the versions of its skills, tools and source, by
    id. `opened` there are the skills that the prompt holds in full, in the order in which they were opened."""

    id: str
    version: int
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def opened_skills(self) -> Sequence[str]:
        """The ids of the skills that the prompt holds in full."""
        return tuple(self.parts.get("opened", ()))

    def opening(self, ids: Iterable[str]) -> Self:
        """Opens further skills, if they are its own."""
        skills = self.parts.get("skill", {})
        opened = {id_: skills[id_] for id_ in (*self.opened_skills, *ids) if id_ in skills}
        return replace(self, parts={**self.parts, "opened": opened}) if opened else self

    def after(self, before: AgentRun | None) -> Self:
        """Keeps the skills open that the thread's last run `before` had opened."""
        if before is None or before.id != self.id or not before.opened_skills:
            return self
        own = {kind: ids for kind, ids in self.parts.items() if kind != "opened"}
        return replace(self, parts=own).opening([*before.opened_skills, *self.opened_skills])


@dataclass(frozen=True, slots=True)
class Answers:
    """The call of a delegating agent, in the parent thread, that a run answers."""

    run_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class RunAsker:
    """The user who asked for a run, and the API key of the request, if it had one."""

    user: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of an agent, from a user's message to `finished`, `paused` or `failed`.

    A run that continues another has the other's `question`. `question_seq` is the entry of the question, `entry_seq`
    the last one, with the answer or summary of `outcome`. The steps are those from `first_step` up to `stop_step`.
    `agent` is None in a run from before agents had versions; `answers` is the delegating call, if any. `asker` is None
    without a login, as on the command line.
    """

    thread_id: str
    id: str
    status: RunStatus
    question: str
    source: str | None
    model: str
    protocol: Protocol
    max_steps: int
    started_at: datetime
    ended_at: datetime | None = None
    continues: str | None = None
    first_step: int = 0
    stop_step: int | None = None
    question_seq: int | None = None
    entry_seq: int | None = None
    outcome: Mapping[str, Any] = field(default_factory=dict)
    agent: AgentRun | None = None
    answers: Answers | None = None
    asker: RunAsker | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One model call or one tool call of a run (document 000's `conversation_steps`).

    `index` counts the thread's steps. A model call has a `manifest` (`longthread.model.run`) and a `prompt` with
    the system prompt and tools. `entry_seq` and `entry_id` are of the step's entry: the reply with the `thought`, or
    the result with the `observation`. `elapsed_ms` and `usage` are empty until the step is done.
    """

    thread_id: str
    index: int
    run_id: str
    kind: StepKind
    status: StepStatus
    started_at: datetime
    thought: str = ""
    action: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    observation: Mapping[str, Any] | None = None
    call_id: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    manifest: Sequence[Any] = ()
    prompt: str | None = None
    entry_seq: int | None = None
    entry_id: str | None = None
    elapsed_ms: int | None = None


def start_of(entries: Sequence[Entry], run: Run) -> int | None:
    """Return the index of the message that a run answers, among the last messages of its branch; None if it is not
    among them. That is the run's own question or, if it answers one again, the message before its first."""
    for place, entry in enumerate(entries):
        if entry.metadata.get("run") == run.id:
            return place
    first = next((place for place, entry in enumerate(entries) if entry.run_id == run.id), None)
    if first is None:
        return len(entries) - 1 if entries and entries[-1].role == "user" else None
    return first - 1 if first else None


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `seq` is its number within the run, the `id:` of a server-sent event."""

    thread_id: str
    run_id: str
    seq: int
    type: EventType
    data: Mapping[str, Any]
    at: datetime

    def to_json(self) -> dict[str, Any]:
        """The event as one flat JSON object, as `ask --json` prints it."""
        head = {"type": self.type, "seq": self.seq, "thread_id": self.thread_id, "run_id": self.run_id}
        return head | dict(self.data)


@dataclass(frozen=True, slots=True)
class Mark:
    """The compact form of an event that its run or step implies.

    `after` are microseconds from the start of the run or step. A piece of text has `chars` characters of the reply, and
    the white space around them that the reply lacks.
    """

    seq: int
    type: EventType
    after: int
    chars: int | None = None
    space: tuple[str, str] = ("", "")

    @classmethod
    def at(cls, seq: int, kind: EventType, moment: datetime, *, since: datetime) -> Mark:
        return cls(seq, kind, (moment - since) // _MICROSECOND)

    def moment(self, since: datetime) -> datetime:
        """The time of the event."""
        return since + self.after * _MICROSECOND

    def to_json(self) -> list[Any]:
        """The mark as a short list; `from_json` restores it."""
        text = [] if self.chars is None else [self.chars, *(self.space if any(self.space) else ())]
        return [self.seq, self.type, self.after, *text]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Mark:
        seq, kind, after, *text = data
        chars, space = (text[0], (text[1], text[2]) if len(text) > 1 else ("", "")) if text else (None, ("", ""))
        return cls(seq, kind, after, chars, space)


_MICROSECOND = timedelta(microseconds=1)


def unfinished_reply(events: Iterable[Event]) -> tuple[str, str]:
    """Return what a run writes, no entry yet: its text after the last step, and the reply's id. `events` are all of it,
    in order."""
    pieces: list[str] = []
    message_id: str | None = None
    for event in events:
        if event.type == "text":
            if event.data.get("message_id") != message_id:
                pieces, message_id = [], event.data.get("message_id")
            pieces.append(event.data["delta"])
        elif event.type != "warning":
            pieces, message_id = [], None
    return "".join(pieces), message_id or ""


Choice = Literal["approve", "edit", "reject"]
CHOICES: tuple[Choice, ...] = ("approve", "edit", "reject")
Outcome = Literal["approve", "edit", "reject", "superseded"]
"""The outcome of a call. `superseded`: another question came, or the run was stopped."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision about a call: approve it, edit its arguments (`args`), or reject it with a `message`. `tool`
    is the tool that an edit names, which it cannot change."""

    type: Choice = "approve"
    args: Mapping[str, Any] = field(default_factory=dict)
    message: str | None = None
    tool: str | None = None

    @classmethod
    def of(cls, data: Any) -> Decision:
        """Parses a decision of LangChain's human-in-the-loop middleware: `{"type": "approve"}`, `{"type": "edit",
        "edited_action": {"name", "args"}}` (or just `args`), `{"type": "reject", "message"?}`. Raises InvalidInput."""
        if not isinstance(data, Mapping) or data.get("type") not in CHOICES:
            raise InvalidInput(reason=f"A decision is an object with a `type`: one of {', '.join(CHOICES)}.")
        action = data.get("edited_action")
        args: Any = action.get("args") if isinstance(action, Mapping) else data.get("args")
        message = data.get("message")
        if data["type"] == "edit" and not isinstance(args, Mapping):
            raise InvalidInput(reason="An edit gives the arguments of the call, an object, as `edited_action.args`.")
        if message is not None and not isinstance(message, str):
            raise InvalidInput(reason="The `message` of a decision is a text.")
        if data["type"] != "edit":
            return cls(data["type"], message=message or None)
        tool = action.get("name") if isinstance(action, Mapping) else None
        return cls("edit", dict(args), message or None, None if tool is None else str(tool))


@dataclass(frozen=True, slots=True)
class Approval:
    """A call of a tool with `approve`.

    `message_id` is the reply with the call, `place` its place there. `args` include defaults; edited ones must fit the
    schema `parameters`. `decision` is None while the call waits; `message` is the reason of a rejection.
    """

    thread_id: str
    run_id: str
    message_id: str
    call_id: str
    place: int
    tool: str
    description: str
    args: Mapping[str, Any]
    parameters: Mapping[str, Any]
    asked_at: datetime
    decision: Outcome | None = None
    edited: Mapping[str, Any] | None = None
    message: str | None = None
    by: str | None = None
    at: datetime | None = None

    @property
    def made_with(self) -> Mapping[str, Any]:
        """The final arguments of the call."""
        return self.args if self.edited is None else self.edited

    def request(self) -> dict[str, Any]:
        """The request for a person."""
        return {
            "id": self.call_id,
            "tool": self.tool,
            "description": self.description,
            "args": dict(self.args),
            "parameters": dict(self.parameters),
        }

    def to_json(self) -> dict[str, Any]:
        """The call with its decision."""
        edited = {} if self.edited is None else {"edited": dict(self.edited)}
        note = {} if self.message is None else {"message": self.message}
        return {
            "id": self.call_id,
            "run": self.run_id,
            "tool": self.tool,
            "args": dict(self.args),
            "asked_at": self.asked_at.isoformat(),
            "decision": self.decision,
            **edited,
            **note,
            "by": self.by,
            "decided_at": self.at.isoformat() if self.at else None,
        }


How = Literal["whole", "condensed", "cut", "left out", "summary", "facts", "terms", "recalled"]
Why = Literal["budget", "digest", "stale", "unpaired"]
TEXTS: frozenset[How] = frozenset({"summary", "facts", "terms", "recalled"})
"""Segments that are texts. All but the summary come after the messages."""
NO_ROOM: frozenset[Why | None] = frozenset({"budget", "digest"})
"""Reasons for entries that had no room."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The entries from seq `first` to `last` of a view, which went in alike, and their tokens together.

    `how`: `whole`; `condensed`: without thinking, results shortened (to `limit` characters, if given); `cut`: a single
    entry, its text cut to `limit` characters and, if `bare`, its calls without arguments; `left out`; `summary`: only a
    summary covers them. Notes after the messages: `facts` of the source that the view no longer has whole, `terms` of
    the source, `recalled` entries. Their texts are stored with the call's prompt.

    `why` entries were left out: `budget`: no room; `digest`: no room, but the summary's text covers them; `unpaired`: a
    call without result or the reverse; `stale`: of another source or schema. With another `how`, `stale` means that
    only the calls and results were left out.

    `form` is how results were shown: 0 as in older calls; 1 shortened by rows; 2 also the tables of a source shown as
    text. A whole segment has it only where such a result is in it.
    """

    first: int
    last: int
    how: How
    tokens: int = 0
    why: Why | None = None
    limit: int | None = None
    bare: bool = False
    form: int = 0

    def to_json(self) -> list[Any]:
        values = [self.first, self.last, self.how, self.tokens, self.why, self.limit, self.bare, self.form or None]
        while values[-1] is None or values[-1] is False:
            values.pop()
        return values

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Segment:
        return cls(*data)


def segments_of(manifest: Sequence[Any]) -> list[Segment]:
    """The segments of a stored manifest; empty for the oldest format."""
    return [Segment.from_json(each) for each in manifest if isinstance(each, list)]


CORRECT = "Send the corrected SQL."
"""Ends the message to a model about a failure that another statement may not have."""
_EXACT = re.compile(
    r"'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|(?<!\w)\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)|"
    r"--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z)",
    re.S,
)
"""Literals, quoted names and comments. A doubled quote begins the next one."""
_DOUBTFUL = ("\\", "#")
"""Characters that some dialects take as an escape and a comment, and others do not."""
_END = "; \t\r\n"


def statement_form(sql: str, *, folds: bool = True) -> str:
    """Return a form that equal statements share: blanks and the end do not count, nor does case if the dialect `folds`
    names. Literals, quoted names and comments must be equal; if it is in doubt where they end, all must."""
    text = sql.strip().rstrip(_END)
    if any(sign in text for sign in _DOUBTFUL):
        return text
    parts: list[str] = []
    at = 0
    for exact in _EXACT.finditer(text):
        parts += [_loose(text[at : exact.start()], folds=folds), exact[0]]
        at = exact.end()
    return "".join([*parts, _loose(text[at:], folds=folds)])


def _loose(text: str, *, folds: bool) -> str:
    blanks = re.sub(r"\s+", " ", text)
    return blanks.lower() if folds else blanks
