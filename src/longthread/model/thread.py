"""A thread: a conversation. The source documents call it conversation, session or SCID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

TITLE_LENGTH = 50
"""Characters of the first question that make a title (document 000)."""


Archived = Literal["exclude", "include", "only"]
"""Whether a list has archived threads."""
ARCHIVED: tuple[Archived, ...] = get_args(Archived)


RESERVED = "longthread."
"""How keys of metadata begin that are Longthread's own. People neither see nor set them as metadata."""
PINNED, TITLED = f"{RESERVED}pinned_at", f"{RESERVED}titled"


SessionStatus = Literal["active", "paused", "completed", "failed"]
"""Document 002's status of a thread."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread's metadata. `tip` is the seq of the active branch's last entry, or 0; `first_seq` the first that
    retention has left. `agent_id` is None for the analyst. `parent_id` is the thread that delegated this one. `tags`
    and `metadata` are people's; retention deletes the thread after `expires_at`; lists leave
    it out since `archived_at`, and show it first since `pinned_at`. `titled` is the title that Longthread gave it last,
    after the first question: a title that is another one is a person's, or the question's first words."""

    id: str
    user_id: str
    title: str | None
    source: str | None
    created_at: datetime
    updated_at: datetime
    tip: int = 0
    entry_count: int = 0
    first_seq: int = 1
    tool_categories: Sequence[str] = ()
    tags: Sequence[str] = field(default_factory=tuple)
    agent_id: str | None = None
    parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    pinned_at: datetime | None = None
    titled: str | None = None


def title_of(question: str) -> str:
    """The first words of a question as a thread's title."""
    line = " ".join(question.split())
    return line[:TITLE_LENGTH]
