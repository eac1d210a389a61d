"""What an import reads from another program's database, before it is written to the store."""

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
    """An entry. `parent` is an earlier index in the conversation; None begins a branch. `at` is ISO 8601 in UTC."""

    draft: Draft
    parent: int | None
    at: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The other program's summary of older messages."""

    text: str
    message_count: int = 0
    config_hash: str | None = None
    updated_at: str | None = None


@dataclass(slots=True)
class Conversation:
    """A conversation. `tip` is the index of its last entry; -1 if there is none. `user_id`: None if the source names no
    user. `holds` counts items by the names of `ImportReport.there`. `rows` are rows of other tables, by table, without
    thread ids."""

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
    """The result of an import, for people. `there`, `here` and `already` count by name: items of the source, items here
    now, and items that were here before. `left` says what was left out, and why; `notes` what was changed."""

    there: Counter[str] = field(default_factory=Counter)
    here: Counter[str] = field(default_factory=Counter)
    already: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


class ImportSource(Protocol):
    """A kind of database. `kind` and `noun` name it and its conversations for people; `tables` are imported."""

    kind: str
    noun: str
    tables: frozenset[str]

    def fits(self, foreign: Foreign) -> bool:
        """Return whether the database has these tables, in this form."""
        ...

    async def ids(self, foreign: Foreign) -> list[str]:
        """Return the conversation ids, oldest first."""
        ...

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        """Return a conversation; None if it cannot be imported: the report says why."""
        ...

    def shared(self, foreign: Foreign, report: ImportReport) -> AsyncIterator[tuple[str, Row]]:
        """Yield rows of tables that threads share, with the table's name, referenced rows first."""
        ...
