"""Events of a run, numbered from 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

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
    """Return what a run writes, no entry yet: its text behind the last step, and the reply's id. `events` are all of
    it, in order."""
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
