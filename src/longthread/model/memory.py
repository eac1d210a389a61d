"""Memories: what is known of a user beyond one conversation, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

MemoryType = Literal["episodic", "semantic", "procedural"]
"""What happened; what is so; how something is done (document 002 §2.6)."""
Use = Literal["given", "found"]
"""How a run came to use a memory: its model was given it with the question, or looked it up."""

_SHOWN = 3
"""Results that are named where it is told in a few words."""

ANALYST = "6c6f6e67-7468-5265-8164-616e616c7973"
"""The id of the built-in agent, whose memories an analyst's are."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a model had read when it said a memory: `results` names the tools' results, such as `run_sql q1`, the newest
    first; `source` is the database that was asked, None where there was none."""

    source: str | None
    results: Sequence[str]

    @property
    def told(self) -> str:
        """It in a few words."""
        more = f" and {len(self.results) - _SHOWN} more" if len(self.results) > _SHOWN else ""
        return f"{', '.join(self.results[:_SHOWN])}{more}{f' of {self.source}' if self.source else ''}"

    def to_json(self) -> dict[str, Any]:
        """It as JSON; `from_json` restores it."""
        return {"source": self.source, "results": list(self.results)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Origin:
        return cls(data["source"], tuple(data["results"]))


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Where a memory comes from: entries of a thread, and what was read there that others may have written."""

    thread_id: str
    seqs: Sequence[int] = ()
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """What is to be remembered.

    Args:
        type, importance, expires_at: None leaves what a memory that says the same has; a new one is semantic, of
            importance 0.5, and stays. The importance is 0 to 1; from `expires_at` on, in any time zone, it is not true.
        source: the entries that say it; None: a person told it by hand.
    """

    content: str
    type: MemoryType | None = None
    importance: float | None = None
    expires_at: datetime | None = None
    source: MemorySource | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of one user, with one agent. Times are in UTC.

    `thread_id` is the thread that said it last; None: a person told it by hand. `origin` is what a model had read when
    it said it; None: nothing that others may have written, or a person vouches for it.
    """

    id: str
    user_id: str
    agent_id: str
    content: str
    type: MemoryType
    importance: float
    created_at: datetime
    expires_at: datetime | None = None
    thread_id: str | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """A memory that a run used, in the line that its model saw."""

    memory_id: str
    how: Use
    shown: str
