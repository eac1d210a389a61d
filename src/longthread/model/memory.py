"""Memories: statements about a user that outlive a thread, with their origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

MemoryType = Literal["episodic", "semantic", "procedural"]
"""An event, a fact, a way of doing things (document 002 §2.6)."""
Use = Literal["given", "found"]
"""How a run came to use a memory: it was given with the question, or the model found it."""

_SHOWN = 3
"""Results that a summary names."""

ANALYST = "6c6f6e67-7468-5265-8164-616e616c7973"
"""The id of the built-in agent."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a model had read when it stored a memory: `results` names the tools' results (`run_sql q1`), newest first;
    `source` is the database that it queried, if any."""

    source: str | None
    results: Sequence[str]

    @property
    def summary(self) -> str:
        """The first results and the source, for people."""
        more = f" and {len(self.results) - _SHOWN} more" if len(self.results) > _SHOWN else ""
        return f"{', '.join(self.results[:_SHOWN])}{more}{f' of {self.source}' if self.source else ''}"

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "results": list(self.results)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Origin:
        return cls(data["source"], tuple(data["results"]))


@dataclass(frozen=True, slots=True)
class MemorySource:
    """The entries that a memory comes from, and the untrusted results that the model had read by then."""

    thread_id: str
    seqs: Sequence[int] = ()
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory to be stored; `source` is None where a person entered it.

    In the other fields None keeps the value of an equal memory. A new one is semantic, of importance 0.5 (from 0 to 1),
    and does not expire.
    """

    content: str
    type: MemoryType | None = None
    importance: float | None = None
    expires_at: datetime | None = None
    source: MemorySource | None = None


@dataclass(frozen=True, slots=True)
class MemoryChanges:
    """What a person changes in a memory; None keeps what there is."""

    content: str | None = None
    type: MemoryType | None = None
    importance: float | None = None
    expires_at: datetime | None = None
    never_expires: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of one user with one agent. Times are in UTC; at `said_at` its words were said last.

    `thread_id` is the thread that stored it last; None where a person entered it, or where that thread was deleted, at
    `source_deleted_at`. `origin` is None where the model had read nothing that others may have written, or where a
    person confirmed the memory.
    """

    id: str
    user_id: str
    agent_id: str
    content: str
    type: MemoryType
    importance: float
    created_at: datetime
    said_at: datetime
    expires_at: datetime | None = None
    thread_id: str | None = None
    origin: Origin | None = None
    source_deleted_at: datetime | None = None

    @property
    def is_entered(self) -> bool:
        """Whether a person entered it, or confirmed it."""
        return self.thread_id is None and self.source_deleted_at is None


@dataclass(frozen=True, slots=True)
class Used:
    """A memory that a run used, with the line that its model saw."""

    memory_id: str
    how: Use
    shown: str
