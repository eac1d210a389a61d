"""Runs, their steps, and their events, numbered from 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from longthread.model.entry import Entry

RunStatus = Literal["running", "waiting", "finished", "paused", "failed"]
"""`waiting`: for a person's approval of its calls (`longthread.model.approval`)."""
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
class Run:
    """One execution of an agent, from a user's message to `finished`, `paused` or `failed`.

    A run that continues another has the other's `question`. `question_seq` is the entry of the question, `entry_seq`
    the last one, with the answer or summary of `outcome`. The steps are those from `first_step` up to `stop_step`.
    `agent` is None in a run from before agents had versions; `answers` is the delegating call, if any.
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


@dataclass(frozen=True, slots=True)
class Step:
    """One model call or one tool call of a run (document 000's `conversation_steps`).

    `index` counts the thread's steps. A model call has a `manifest` (`longthread.model.manifest`) and a `prompt` with
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
