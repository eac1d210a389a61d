"""Events: what a run tells those who watch it, numbered from 1 within the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    "decided",  # calls [{id, tool, decision, by, args?, message?}], pending: how many are still undecided
    "warning",  # message: something was cut, retried or not understood
    "finished",  # answer, citations, queries, usage
    "paused",  # summary, reason (max_steps | stopped | interrupted | superseded), hint
    "failed",  # error {type, message}
]
FINAL: frozenset[str] = frozenset({"finished", "paused", "failed"})
"""The types that end a run's stream. Each run has exactly one, and it comes last."""

HALTS: frozenset[str] = FINAL | {"waiting"}
"""The types that an execution of a run ends with. One that waits is gone on with by another, in any process."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `seq` is its number in the run's stream, the `id:` of a server-sent event."""

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
    """An event that says only what the run or the step that it is about already holds.

    `after` is when, in microseconds after the start of what it is about. Of a piece of text, `chars` is how much of the
    reply it is, and `space` the white space around that which did not become part of the reply.
    """

    seq: int
    type: EventType
    after: int
    chars: int | None = None
    space: tuple[str, str] = ("", "")

    @classmethod
    def at(cls, seq: int, kind: EventType, moment: datetime, *, since: datetime) -> Mark:
        """The mark of an event of this moment on something that started at `since`."""
        return cls(seq, kind, (moment - since) // _MICROSECOND)

    def moment(self, since: datetime) -> datetime:
        """When the event was, for something that started at `since`."""
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
