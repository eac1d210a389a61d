"""What an import takes out of another program's database, before the store gives it a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from longthread.model.entry import Draft
from longthread.store.driver import Row
from longthread.store.imports.foreign import Foreign


@dataclass(frozen=True, slots=True)
class ExtractedEntry:
    """An entry of a conversation. `parent` is the place, in the conversation's list, of the one before it on its
    branch; None begins a branch. It stands behind its parent in the list. `at` is ISO 8601 in UTC."""

    draft: Draft
    parent: int | None
    at: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What the other program told of older messages."""

    text: str
    message_count: int = 0
    config_hash: str | None = None
    updated_at: str | None = None


@dataclass(slots=True)
class Conversation:
    """A conversation. `tip` is the place of its last entry in `entries`; -1 where there is none.

    `user_id` None: the other database does not say whose it is. `holds` counts what of the other database it holds, by
    the names of `ImportReport.there`. `rows` are those of other tables of a thread's, by the table's name, without the
    thread's id.
    """

    id: str
    user_id: str | None
    title: str | None
    created_at: str
    updated_at: str
    entries: list[ExtractedEntry] = field(default_factory=list)
    tip: int = -1
    agent_id: str | None = None
    status: str = "active"
    metadata: dict[str, Any] = field(default_factory=dict)
    tool_categories: Sequence[Any] = ()
    tags: Sequence[Any] = ()
    ended_at: str | None = None
    expires_at: str | None = None
    summary: Summary | None = None
    holds: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass(slots=True)
class ImportReport:
    """What came of an import, for people.

    `there` and `here` count by name what the other database has and what is here now; `already` of these was here
    before. `left` names what could not be taken, and why; `notes` what is not as it was.
    """

    there: Counter[str] = field(default_factory=Counter)
    here: Counter[str] = field(default_factory=Counter)
    already: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


class ImportSource(Protocol):
    """One kind of database, as something to take conversations from. Each is a module of its own.

    `kind` says what it is, and `noun` what its conversations are called, for people; `tables` are those that it takes.
    """

    kind: str
    noun: str
    tables: frozenset[str]

    def fits(self, foreign: Foreign) -> bool:
        """Whether the database has these tables, in this form."""
        ...

    async def ids(self, foreign: Foreign) -> list[str]:
        """The ids of its conversations, the oldest first."""
        ...

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        """A conversation. None: it cannot be taken, and the report says why."""
        ...

    def shared(self, foreign: Foreign, report: ImportReport) -> AsyncIterator[tuple[str, Row]]:
        """Rows of tables that threads share, each with its table's name, those first that others refer to."""
        ...
