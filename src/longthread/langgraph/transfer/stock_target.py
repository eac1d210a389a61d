"""Writes to a database of LangGraph's own savers and stores: opens it, and exports items to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import NotAnExportTarget
from longthread.langgraph.item_batch import PAGE
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.transfer.stock_items import TABLE, ItemTally, name_of
from longthread.langgraph.transfer.stock_savers import CheckpointAddress, StockCheckpoints, load_stock, not_a_saver
from longthread.store import items
from longthread.store.driver import one
from longthread.store.items import Item, ItemScope
from longthread.store.open import is_postgres
from longthread.store.queries import Sql
from longthread.store.tables import StoreTable
from longthread.store.transfer.foreign import Foreign, change_foreign, export_errors, open_foreign, shown_address
from longthread.store.transfer.kinds import is_longthread
from longthread.store.transfer.threads import update_row, write_rows

_SQLITE = "sqlite:///"
_WRITING = "Writing what {} reads"


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
    def _dialect(self) -> Literal["sqlite", "postgres"]:
        return "postgres" if is_postgres(self.address) else "sqlite"

    @property
    def redacted_address(self) -> str:
        return shown_address(self.address)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Foreign | None]:
        """Read what is there; None if there is no file yet, or an empty one."""
        if not is_postgres(self.address) and _is_new(Path(self.address)):
            yield None
            return
        async with open_foreign(self.address, NotAnExportTarget) as foreign:
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
        module, kind = load_stock("checkpoint", "Saver", self._dialect, _WRITING)
        with export_errors():
            if self._dialect == "postgres":
                async with kind.from_conn_string(_plain(self.address), serde=self.serde) as saver:
                    await saver.setup()
                    yield saver
                return
            async with module.aiosqlite.connect(self.address) as connection:
                saver = kind(connection, serde=self.serde)
                await saver.setup()
                yield saver

    async def make_items(self) -> None:
        """Make the tables of the database's own store of items; raises as `saver` does."""
        _, kind = load_stock("store", "Store", self._dialect, _WRITING)
        where = _plain(self.address) if self._dialect == "postgres" else self.address
        with export_errors():
            async with kind.from_conn_string(where) as store:
                await store.setup()


def _is_new(path: Path) -> bool:
    return not path.exists() or (path.is_file() and not path.stat().st_size)


def _why_none(foreign: Foreign) -> str | None:
    if is_longthread(foreign):
        return "it is a Longthread store, whose tables have the same names."
    if TABLE in foreign.tables and "prefix" not in foreign.tables[TABLE].by_name:
        return f"its table `{TABLE}` is not that of a LangGraph store."
    return not_a_saver(foreign) if "checkpoints" in foreign.tables else None


def _plain(url: str) -> str:
    return f"postgresql://{url.partition('://')[2]}"


async def export_items(
    saver: AsyncLongthreadSaver,
    target: StockTarget,
    replaces: bool,
    failures: list[str],
    tell: Callable[[str], None],
) -> ItemTally:
    """Write the user's items with their times, in one transaction. Vectors are not written: the other store makes its
    own when an item is put."""
    await target.make_items()
    done, after = ItemTally(), None
    with export_errors():
        async with saver._store.reading() as tx, change_foreign(target.address) as foreign:
            while some := await items.page(tx, ItemScope(saver._user_id), after, limit=PAGE):
                for item in some:
                    await _write(foreign, item, replaces, done, failures)
                    tell(item.namespace)
                after = some[-1]
    return done


async def _write(foreign: Foreign, item: Item, replaces: bool, done: ItemTally, failures: list[str]) -> None:
    table = foreign.tables[TABLE]
    found = await one(foreign.tx, _select_value(table), prefix=item.namespace, key=item.key)
    row = _row(foreign, item)
    if found is None:
        await write_rows(foreign.tx, table, [row])
    elif json.loads(found["value"]) == json.loads(item.value):
        done.already += 1
    elif replaces:
        await update_row(foreign.tx, table, row)
    else:
        failures.append(f"{name_of(item)} is there already, with another value.")
        return
    done.there += 1


def _select_value(table: StoreTable) -> Sql:
    return Sql(
        f'SELECT {table.by_name["value"].read} AS value FROM "{TABLE}" WHERE "prefix" = :prefix AND "key" = :key'
    )


def _row(foreign: Foreign, item: Item) -> Mapping[str, Any]:
    time = _sqlite_time if foreign.dialect == "sqlite" else str
    row: dict[str, Any] = {
        "prefix": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": time(item.created_at),
        "updated_at": time(item.updated_at),
    }
    if "expires_at" in foreign.tables[TABLE].by_name:
        minutes = item.ttl if item.ttl is None or foreign.dialect == "sqlite" else max(1, round(item.ttl))
        row |= {"expires_at": time(item.expires_at) if item.expires_at else None, "ttl_minutes": minutes}
    return row


def _sqlite_time(moment: str) -> str:
    """Return a time as SqliteStore writes it: it compares texts with SQLite's CURRENT_TIMESTAMP."""
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
