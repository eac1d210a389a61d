"""Memories: what is known of a user beyond one conversation, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

MemoryType = Literal["episodic", "semantic", "procedural"]
"""What happened; what is so; how something is done (document 002 §2.6)."""
Use = Literal["given", "found"]
"""How a run came to use a memory: its model was given it with the question, or looked it up."""

ANALYST = "6c6f6e67-7468-5265-8164-616e616c7973"
"""The id of the built-in agent, whose memories an analyst's are."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory comes from: entries of a thread."""

    thread_id: str
    seqs: Sequence[int] = ()


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
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of one user, with one agent. Times are in UTC.

    `thread_id` is the thread that said it last; None: a person told it by hand.
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


@dataclass(frozen=True, slots=True)
class Used:
    """A memory that a run used, in the line that its model saw."""

    memory_id: str
    how: Use
    shown: str
