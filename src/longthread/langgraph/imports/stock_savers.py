"""Reads the databases of LangGraph's own savers, SqliteSaver and PostgresSaver."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from longthread.errors import CheckpointUnreadable, ExtraMissing, NotACheckpointDatabase, StoreError
from longthread.langgraph.imports.message_reader import MessageReader
from longthread.store.imports.foreign import Foreign, import_errors, open_foreign, shown_address
from longthread.store.tables import Tables

_NEEDED = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"}
_WRITES = {"sqlite": "writes", "postgres": "checkpoint_writes"}


@dataclass(frozen=True, slots=True)
class CheckpointAddress:
    ns: str
    id: str
    writes: int

    @property
    def key(self) -> tuple[str, str]:
        return self.ns, self.id


class StockCheckpoints:
    def __init__(self, foreign: Foreign, saver: Any, serde: MessageReader) -> None:
        self._foreign = foreign
        self._saver = saver
        self._serde = serde

    async def threads(self) -> dict[str, int]:
        """Count the checkpoints of each thread, oldest thread first."""
        rows = await self._foreign.tx.fetch("foreign_threads")
        return {row["thread_id"]: row["checkpoints"] for row in rows}

    async def checkpoints(self, thread_id: str) -> list[CheckpointAddress]:
        """List the checkpoints of a thread, of all namespaces, oldest first."""
        self._serde.forget()
        rows = await self._foreign.tx.fetch("foreign_checkpoints", thread_id=thread_id)
        return sorted(
            (CheckpointAddress(row["ns"], row["id"], row["writes"]) for row in rows), key=lambda a: (a.id, a.ns)
        )

    async def read(self, thread_id: str, address: CheckpointAddress) -> CheckpointTuple:
        """Read a checkpoint with its values and writes.

        Raises:
            CheckpointUnreadable: its bytes cannot be decoded; the message says why.
            StoreError: the database failed.
        """
        where = {"thread_id": thread_id, "checkpoint_ns": address.ns, "checkpoint_id": address.id}
        try:
            with import_errors():
                found: CheckpointTuple | None = await self._saver.aget_tuple({"configurable": where})
        except (NotImplementedError, ValueError, TypeError, AttributeError, LookupError) as error:
            # It may be encrypted, pickled, or damaged.
            raise CheckpointUnreadable(thread=thread_id, checkpoint=address.id, reason=f"{error}.") from error
        if found is None or not _is_whole(found):
            # Damaged bytes may well be those of something else.
            reason = "its bytes are damaged, and are not a checkpoint's."
            raise CheckpointUnreadable(thread=thread_id, checkpoint=address.id, reason=reason)
        return found

    async def paths(self, thread_id: str, address: CheckpointAddress) -> dict[str, str]:
        """Return the path of each task that wrote on a checkpoint: it determines their order."""
        if not _has_paths(self._foreign):
            return {}
        rows = await self._foreign.tx.fetch("foreign_paths", thread_id=thread_id, ns=address.ns, id=address.id)
        return {row["task_id"]: row["task_path"] for row in rows}


_PARTS = {"id": str, "channel_values": dict, "channel_versions": dict, "versions_seen": dict}


def _is_whole(found: CheckpointTuple) -> bool:
    checkpoint: Any = found.checkpoint
    if not isinstance(checkpoint, dict) or not isinstance(found.metadata, dict):
        return False
    return all(isinstance(checkpoint.get(name), kind) for name, kind in _PARTS.items())


@asynccontextmanager
async def open_stock(address: str) -> AsyncIterator[StockCheckpoints]:
    """Open the database of a SqliteSaver (a file) or PostgresSaver (a `postgresql://` URL) in one snapshot.

    Raises:
        NotACheckpointDatabase: it is none; the message says why.
        ExtraMissing: the package of the stock saver is not installed.
    """
    async with AsyncExitStack() as stack:
        try:
            foreign = await stack.enter_async_context(open_foreign(address))
        except StoreError as error:
            raise NotACheckpointDatabase(where=shown_address(address), reason=error.reason) from error
        if reason := _why_not(foreign.tables, _WRITES[foreign.dialect]):
            raise NotACheckpointDatabase(where=shown_address(address), reason=reason)
        serde = MessageReader()
        yield StockCheckpoints(foreign, await _saver(foreign, serde, stack), serde)


def _why_not(tables: Tables, writes: str) -> str | None:
    if "entries" in tables and "parent_seq" in tables["entries"].by_name:
        return "it is a Longthread store, and `longthread db copy` copies those."
    if "checkpoints" not in tables or writes not in tables:
        return f"it has no tables `checkpoints` and `{writes}`."
    missing = sorted(_NEEDED - tables["checkpoints"].by_name.keys())
    return f"its table `checkpoints` has no column `{missing[0]}`." if missing else None


async def _saver(foreign: Foreign, serde: MessageReader, stack: AsyncExitStack) -> Any:
    kind, name = ("sqlite", "AsyncSqliteSaver") if foreign.dialect == "sqlite" else ("postgres", "AsyncPostgresSaver")
    try:
        module = importlib.import_module(f"langgraph.checkpoint.{kind}.aio")
    except ImportError as error:
        package = f"langgraph-checkpoint-{kind}"
        raise ExtraMissing(what=f"Reading what {name} wrote", package=package, extra="import") from error
    if kind == "postgres":
        return getattr(module, name)(foreign.connection, serde=serde)
    connection = await stack.enter_async_context(module.aiosqlite.Connection(lambda: foreign.connection, 64))
    saver = getattr(module, name)(connection, serde=serde)
    # Its setup would create or migrate tables: an import writes nothing to its source.
    saver.is_setup, saver._has_task_path = True, _has_paths(foreign)
    return saver


def _has_paths(foreign: Foreign) -> bool:
    return "task_path" in foreign.tables[_WRITES[foreign.dialect]].by_name
