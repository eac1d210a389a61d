"""Rows of any table: read in pages, written, counted and compared."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import cache, partial
from typing import Any

from longthread.store.driver import Row, Transaction
from longthread.store.queries import Sql
from longthread.store.tables import StoreTable

PAGE_BYTES = 4_000_000
"""Approximate part of a table in memory at a time."""
_PAGE_ROWS = 1000


async def read_rows(tx: Transaction, table: StoreTable, thread_id: str | None = None) -> AsyncIterator[Row]:
    """Yield a table's rows in key order: one thread's, or all of a shared table."""
    limit, after = 32, None
    while True:
        values = _after(table, after)
        if table.thread:
            values["of_thread"] = thread_id
        rows = await tx.fetch(_select(table, after is not None), **values, page=limit)
        for row in rows:
            yield _from_database(table, row) if table.vectors else row
        if len(rows) < limit or not table.order:
            return
        after = rows[-1]
        limit = max(1, min(_PAGE_ROWS, PAGE_BYTES * len(rows) // max(1, sum(map(size_of, rows)))))


async def write_rows(tx: Transaction, table: StoreTable, rows: Iterable[Row]) -> None:
    """Insert rows. Absent columns get their defaults."""
    given: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        given.setdefault(tuple(row), []).append(row)
    for names, alike in given.items():
        await tx.run_all(_insert(table, names), map(partial(_to_database, table), alike) if table.vectors else alike)


async def update_row(tx: Transaction, table: StoreTable, row: Row) -> None:
    """Update the row with this key."""
    given = _to_database(table, row)
    await tx.run(_update(table, tuple(name for name in row if name not in table.key)), **given)


async def delete_rows(tx: Transaction, table: StoreTable, thread_id: str) -> None:
    await tx.run(Sql(f'DELETE FROM "{table.name}" WHERE {table.of_thread(":of_thread")}'), of_thread=thread_id)


async def count_rows(tx: Transaction, tables: Sequence[StoreTable], thread_id: str) -> dict[str, int]:
    """Count a thread's rows by table; empty tables are absent."""
    rows = await tx.fetch(_count(tuple(tables)), of_thread=thread_id)
    return {row["name"]: int(row["rows"]) for row in rows if row["rows"]}


def size_of(row: Row) -> int:
    """Return a row's approximate size in bytes."""
    return sum(len(value) if isinstance(value, str | bytes) else 8 for value in row.values())


def key_of(table: StoreTable, row: Row) -> tuple[Any, ...]:
    """Return what identifies a row within its thread or shared table."""
    return tuple(row[name] for name in table.order)


def _from_database(table: StoreTable, row: Row) -> Row:
    """Decode vectors: PostgreSQL sends two 16-bit counts, then big-endian numbers."""
    found = dict(row)
    for name in table.vectors:
        if found[name] is not None:
            numbers = struct.unpack_from(f">{(len(found[name]) - 4) // 4}f", found[name], 4)
            found[name] = struct.pack(f"<{len(numbers)}f", *numbers)
    return found


def _to_database(table: StoreTable, row: Row) -> Row:
    """Encode vectors as text; nine digits identify a 32-bit float."""
    given = dict(row)
    for name in table.vectors:
        if given.get(name) is not None:
            numbers = struct.unpack(f"<{len(given[name]) // 4}f", given[name])
            given[name] = f"[{','.join(f'{number:.9g}' for number in numbers)}]"
    return given


def _after(table: StoreTable, row: Row | None) -> dict[str, Any]:
    return {} if row is None else {f"after_{number}": row[name] for number, name in enumerate(table.order)}


@cache
def _select(table: StoreTable, goes_on: bool) -> Sql:
    columns = ", ".join(f'{column.read} AS "{column.name}"' for column in table.columns)
    order = ", ".join(f'"{name}"' for name in table.order)
    conditions = [table.of_thread(":of_thread")] if table.thread else []
    if goes_on:
        conditions.append(f"({order}) > ({', '.join(f':after_{number}' for number in range(len(table.order)))})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    by = f" ORDER BY {order}" if order else ""
    return Sql(f'SELECT {columns} FROM "{table.name}"{where}{by} LIMIT :page')


@cache
def _insert(table: StoreTable, names: tuple[str, ...]) -> Sql:
    columns = ", ".join(f'"{name}"' for name in names)
    return Sql(f'INSERT INTO "{table.name}" ({columns}) VALUES ({", ".join(table.by_name[n].write for n in names)})')


@cache
def _update(table: StoreTable, names: tuple[str, ...]) -> Sql:
    values = ", ".join(f'"{name}" = {table.by_name[name].write}' for name in names)
    where = " AND ".join(f'"{name}" = {table.by_name[name].write}' for name in table.key)
    return Sql(f'UPDATE "{table.name}" SET {values} WHERE {where}')


@cache
def _count(tables: tuple[StoreTable, ...]) -> Sql:
    each = (
        f"""SELECT '{table.name}' AS name, count(*) AS rows FROM "{table.name}" WHERE {table.of_thread(":of_thread")}"""
        for table in tables
    )
    return Sql(" UNION ALL ".join(each))
