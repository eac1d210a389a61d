"""Detection of what a source database holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longthread.store.imports import memory
from longthread.store.imports.clients import Clients
from longthread.store.imports.conversations import Conversations
from longthread.store.imports.extracted import ImportSource
from longthread.store.imports.foreign import Foreign
from longthread.store.imports.foreign_rows import count, has
from longthread.store.imports.sessions import Sessions

SOURCES: Sequence[ImportSource] = (Conversations(), Sessions(), Clients())
CHECKPOINTS = "the checkpoints of a LangGraph saver"
ITEMS = "the items of a LangGraph store"
BESIDE = "the labels, summaries, vectors and topics of document 004"
_SAVERS = frozenset({"checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations", "writes"})
"""Tables of LangGraph's savers, on either database."""
_STORES = frozenset({"store", "store_vectors", "store_migrations", "vector_migrations"})
"""Tables of LangGraph's stores, on either database."""
_VERSIONS = frozenset({"checkpoint_migrations", "store_migrations", "vector_migrations"})
"""These tables have rows from the start."""


@dataclass(frozen=True, slots=True)
class DatabaseKinds:
    """What can be imported: conversations of these documents, LangGraph's checkpoints and items, and document 004's
    tables."""

    sources: Sequence[ImportSource]
    checkpoints: bool
    items: bool
    beside: bool

    @property
    def names(self) -> list[str]:
        """Return its names, for people."""
        found = [source.kind for source in self.sources]
        others = ((CHECKPOINTS, self.checkpoints), (ITEMS, self.items), (BESIDE, self.beside))
        return found + [name for name, is_there in others if is_there]

    @property
    def tables(self) -> frozenset[str]:
        others = ((_SAVERS, self.checkpoints), (_STORES, self.items), (memory.TABLES, self.beside))
        named = [source.tables for source in self.sources] + [tables for tables, is_there in others if is_there]
        return frozenset[str]().union(*named)


def kinds_of(foreign: Foreign) -> DatabaseKinds:
    """Return what a database holds: several kinds, one or none."""
    writes = "writes" if foreign.dialect == "sqlite" else "checkpoint_writes"
    checkpoints = (
        has(foreign, "checkpoints", "thread_id", "checkpoint_ns", "checkpoint_id") and writes in foreign.tables
    )
    items = has(foreign, "store", "prefix", "key", "value")
    sources = [source for source in SOURCES if source.fits(foreign)]
    return DatabaseKinds(sources, checkpoints, items, memory.fits(foreign))


def is_longthread(foreign: Foreign) -> bool:
    """Return whether it is a Longthread store, which has tables of the same names."""
    return has(foreign, "entries", "parent_seq")


async def unreadable(foreign: Foreign) -> frozenset[str]:
    """Return the tables that this user may not read: a failed read would end the snapshot."""
    return frozenset(row["name"] for row in await foreign.tx.fetch("foreign_unreadable"))


async def is_empty(foreign: Foreign, kinds: DatabaseKinds) -> bool:
    """Return whether the importable tables have no rows."""
    names = [table.name for table in foreign.tables.all if table.name in kinds.tables - _VERSIONS]
    return not any([await count(foreign, name) for name in names])


async def left_tables(foreign: Foreign, kinds: DatabaseKinds) -> Mapping[str, int]:
    """Count the rows of tables that are not imported; empty and unreadable ones are left out."""
    known = kinds.tables | await unreadable(foreign)
    found = {table.name: await count(foreign, table.name) for table in foreign.tables.all if table.name not in known}
    return {name: rows for name, rows in found.items() if rows}
