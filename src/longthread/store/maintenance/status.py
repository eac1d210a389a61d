"""A store's location, contents and size, and whether it can be written: it may be read while its disk is full, its file
or server read-only, or a standby."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from longthread.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from longthread.model.ids import new_id
from longthread.store import leases
from longthread.store.driver import Driver, Transaction
from longthread.store.queries import Sql
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.tables import StoreTable, read_tables


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """A store at one moment. `schema` is its schema version, `latest` this Longthread's. `bytes` is its size on disk;
    `free` of these bytes are unused. `tables` are sizes with indexes, in bytes; empty if SQLite cannot measure them.
    `rows` are row counts; `live` are running runs."""

    where: str
    dialect: str
    server: str
    schema: int
    latest: int
    bytes: int
    free: int
    tables: Mapping[str, int]
    rows: Mapping[str, int]
    live: int


async def status_of(store: Driver) -> StoreStatus:
    """Inspect a store, also of an older schema: counts every row and measures every table."""
    async with store.reading() as tx:
        tables = (await read_tables(tx)).all
        [server], [size] = await tx.fetch("select_server"), await tx.fetch("select_size")
        [schema] = await tx.fetch("select_schema")
        return StoreStatus(
            where=store.where,
            dialect=store.dialect,
            server=server["server"],
            schema=int(schema["version"]),
            latest=SCHEMA_VERSION,
            bytes=int(size["bytes"]),
            free=int(size["free"]),
            tables=await _sizes(tx),
            rows=await _rows(tx, tables),
            live=await _live(tx),
        )


async def size_of(store: Driver) -> int:
    """Return a store's size on disk, in bytes."""
    async with store.reading() as tx:
        [size] = await tx.fetch("select_size")
        return int(size["bytes"])


async def _live(tx: Transaction) -> int:
    [runs] = await tx.fetch("count_runs")
    return int(runs["live"])


async def _sizes(tx: Transaction) -> dict[str, int]:
    [can] = await tx.fetch("select_can_measure")
    if not can["can"]:
        return {}
    try:
        return {row["name"]: int(row["bytes"]) for row in await tx.fetch("select_table_sizes")}
    except StoreFull as error:  # so SQLite says of a page that cannot be measured: to read them nothing is written
        raise StoreDamaged(reason="a page of its file is not what SQLite writes.") from error


async def _rows(tx: Transaction, tables: Iterable[StoreTable]) -> dict[str, int]:
    return {table.name: await _count(tx, table) for table in tables}


async def _count(tx: Transaction, table: StoreTable) -> int:
    [row] = await tx.fetch(Sql(f'SELECT count(*) AS rows FROM "{table.name}"'))
    return int(row["rows"])


FRESH_SECONDS = 2.0
"""So long one look serves all who ask."""
_MOST_SECONDS = 5.0


class WriteCheck:
    """Writes a row and deletes it, in one transaction that is committed; at most every two seconds."""

    def __init__(self, store: Driver) -> None:
        self._store = store
        self._looking = asyncio.Lock()
        self._found: tuple[float, StoreError | None] | None = None

    async def expect(self) -> None:
        """Raise StoreError, which says why, if nothing can be written now."""
        async with self._looking:
            if self._found is None or time.monotonic() - self._found[0] > FRESH_SECONDS:
                self._found = time.monotonic(), await self._problem()
            problem = self._found[1]
        if problem is not None:
            raise problem

    async def _problem(self) -> StoreError | None:
        mark = f"ready/{new_id()}"
        try:
            async with asyncio.timeout(_MOST_SECONDS), self._store.writing() as tx:
                await leases.register(tx, mark)
                await leases.remove(tx, mark)
        except TimeoutError:
            return StoreBusy(seconds=f"{_MOST_SECONDS:g}")
        except StoreError as error:
            return error
        return None
