"""Opens a database of LangGraph's own savers and stores, to write to it."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ExtraMissing, NotAnExportTarget, StoreError
from longthread.langgraph.imports.stock_items import TABLE
from longthread.langgraph.imports.stock_savers import CheckpointAddress, StockCheckpoints, not_a_saver
from longthread.store.imports.foreign import Foreign, export_errors, open_foreign, shown_address
from longthread.store.imports.kinds import is_longthread
from longthread.store.open import is_postgres

_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class StockTarget:
    """A database to write to: the path of a SQLite file, or a URL. `serde` is the serializer that its program uses."""

    address: str
    serde: SerializerProtocol

    @classmethod
    async def of(cls, address: str, serde: SerializerProtocol) -> StockTarget:
        """Check what is there; nothing is written. Raises NotAnExportTarget."""
        path = address.removeprefix(_SQLITE)
        where = shown_address(address)
        if "://" in path and not is_postgres(path):
            raise NotAnExportTarget(where=where, reason="it is neither a SQLite file nor a postgresql:// address.")
        if not path:
            raise NotAnExportTarget(where=where, reason="it names no file.")
        target = cls(path, serde)
        async with target.snapshot() as foreign:
            if foreign is not None and (reason := _why_none(foreign)):
                raise NotAnExportTarget(where=where, reason=reason)
        return target

    @property
    def shown(self) -> str:
        return shown_address(self.address)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Foreign | None]:
        """Read what is there; None if there is no file yet, or an empty one."""
        if not is_postgres(self.address) and _is_new(Path(self.address)):
            yield None
            return
        async with AsyncExitStack() as stack:
            try:
                foreign = await stack.enter_async_context(open_foreign(self.address))
            except StoreError as error:
                raise NotAnExportTarget(where=self.shown, reason=error.reason) from error
            yield foreign

    async def checkpoints(self, thread_ids: list[str]) -> dict[str, list[CheckpointAddress]]:
        """List what is there of these threads, oldest first."""
        async with self.snapshot() as foreign:
            if foreign is None:
                return {}
            there = StockCheckpoints(foreign)
            known = await there.threads()
            return {thread_id: await there.checkpoints(thread_id) for thread_id in thread_ids if thread_id in known}

    @asynccontextmanager
    async def saver(self) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        """Open the database's own saver, which makes its tables.

        Raises:
            ExtraMissing: its package is not installed.
            StoreError: the database cannot be opened or written.
        """
        kind, name = ("postgres", "AsyncPostgresSaver") if is_postgres(self.address) else ("sqlite", "AsyncSqliteSaver")
        module = _module(f"langgraph.checkpoint.{kind}.aio", name, f"langgraph-checkpoint-{kind}")
        with export_errors():
            if kind == "postgres":
                opened = getattr(module, name).from_conn_string(_plain(self.address), serde=self.serde)
                async with opened as saver:
                    await saver.setup()
                    yield saver
                return
            async with module.aiosqlite.connect(self.address) as connection:
                saver = getattr(module, name)(connection, serde=self.serde)
                await saver.setup()
                yield saver

    async def make_items(self) -> None:
        """Make the tables of the database's own store of items; raises as `saver` does."""
        kind, name = ("postgres", "AsyncPostgresStore") if is_postgres(self.address) else ("sqlite", "AsyncSqliteStore")
        module = _module(f"langgraph.store.{kind}.aio", name, f"langgraph-checkpoint-{kind}")
        where = _plain(self.address) if kind == "postgres" else self.address
        with export_errors():
            async with getattr(module, name).from_conn_string(where) as store:
                await store.setup()


def _is_new(path: Path) -> bool:
    return not path.exists() or (path.is_file() and not path.stat().st_size)


def _why_none(foreign: Foreign) -> str | None:
    if is_longthread(foreign):
        return "it is a Longthread store, whose tables have the same names."
    if TABLE in foreign.tables and "prefix" not in foreign.tables[TABLE].by_name:
        return f"its table `{TABLE}` is not that of a LangGraph store."
    return not_a_saver(foreign) if "checkpoints" in foreign.tables else None


def _module(name: str, what: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ExtraMissing(what=f"Writing what {what} reads", package=package, extra="import") from error


def _plain(url: str) -> str:
    return f"postgresql://{url.partition('://')[2]}"
