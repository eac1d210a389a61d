"""A store's location, contents and size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from longthread.errors import StoreDamaged, StoreFull
from longthread.store.backends.migrate import SCHEMA_VERSION
from longthread.store.driver import Driver, Transaction
from longthread.store.queries import Sql
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
