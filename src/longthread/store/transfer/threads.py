"""Whole threads in transfer, and rows of any table: read in pages, written completely or not at all, compared."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Protocol

from longthread.errors import StoreError
from longthread.model.entry import SENT_ID
from longthread.store import wait_list
from longthread.store.driver import Driver, Row, Transaction, one
from longthread.store.leases import left
from longthread.store.queries import Sql
from longthread.store.tables import CHECKPOINTS, ENTRIES, RUNS, THREADS, StoreTable, Tables, canonical

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


TableRow = tuple[str, Row]
"""A table's name and a row."""


class TransferProgress(Protocol):
    """Receives the number of finished threads, and the current activity."""

    def __call__(self, done: int, total: int, what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was left unchanged, and why."""

    what: str
    reason: str
    is_damaged: bool = False
    """Its values are unreadable, or the other database refuses them."""

    def __str__(self) -> str:
        return f"{self.what} ({self.reason})"


@dataclass(slots=True)
class TransferOutcome:
    """What happened to the threads, and the rows written of them and of shared tables."""

    written: int = 0
    updated: int = 0
    same: int = 0
    rows: int = 0
    questions_left: int = 0
    """How many questions wait in the store that was copied. They are not taken along."""
    refused: list[Refusal] = field(default_factory=list)


async def thread_ids(
    tx: Transaction, *, after: str | None = None, user_id: str | None = None, limit: int = 500
) -> list[str]:
    """Return thread ids in order: all, or a user's. An id may be empty: None comes before all ids."""
    rows = await tx.fetch("select_thread_ids", after=after, user_id=user_id, limit=limit)
    return [row["id"] for row in rows]


async def each_thread(store: Driver, progress: TransferProgress, *, user_id: str | None = None) -> AsyncIterator[str]:
    """Yield the id of each thread of a store in use, or of a user's, in order."""
    async with store.reading() as tx:
        total = await count_threads(tx, user_id=user_id)
        page = await thread_ids(tx, user_id=user_id)
    done = 0
    while page:
        for thread_id in page:
            progress(done, max(total, done + 1), thread_id)
            yield thread_id
            done += 1
        async with store.reading() as tx:
            page = await thread_ids(tx, after=page[-1], user_id=user_id)
    progress(done, max(total, done), "")


_GOES_ON: Mapping[str, frozenset[str] | None] = {ENTRIES: None, CHECKPOINTS: frozenset({"id"}), RUNS: frozenset()}
"""Tables that grow as a thread continues, with their constant columns; None: no column changes."""


async def count_threads(tx: Transaction, *, user_id: str | None = None) -> int:
    """Count threads: all, or a user's."""
    [row] = await tx.fetch("count_threads", user_id=user_id)
    return int(row["threads"])


async def read_thread(tx: Transaction, tables: Tables, thread_id: str) -> AsyncIterator[TableRow]:
    """Yield a thread's rows, its own in `threads` first, table by table, in key order, without leases of runs."""
    for table in tables.of_threads:
        async for row in _rows_of(tx, table, thread_id):
            yield table.name, row


async def _rows_of(tx: Transaction, table: StoreTable, thread_id: str) -> AsyncIterator[Row]:
    async for row in read_rows(tx, table, thread_id):
        yield left(row) if table.name == RUNS else row


async def write_thread(
    tx: Transaction,
    tables: Tables,
    thread_id: str,
    counts: Mapping[str, int],
    rows: AsyncIterable[TableRow],
    *,
    over_old: bool = False,
) -> int:
    """Insert a thread from rows in the order of `read_thread`; return their number. `over_old`: it exists, is locked,
    and is replaced; otherwise it must not exist. Raises `StoreError`, also if the counts differ from `counts`."""
    if over_old:
        for table in (*tables.derived_tables, *reversed(tables.of_threads[1:])):
            await delete_rows(tx, table, thread_id)
    total, size, batch, current = 0, 0, list[Row](), THREADS
    async for name, row in rows:
        total += 1
        if name == THREADS and over_old:
            await update_row(tx, tables[name], row)
            continue
        if name != current or size > PAGE_BYTES:
            await write_rows(tx, tables[current], batch)
            size, batch, current = 0, [], name
        batch.append(row)
        size += size_of(row)
    await write_rows(tx, tables[current], batch)
    there = await count_rows(tx, tables.of_threads, thread_id)
    if there != counts:
        raise StoreError(reason=f"of thread {thread_id} {there} was written where {dict(counts)} was read.")
    return total


async def store_thread(
    store: Driver,
    tables: Tables,
    thread_id: str,
    counts: Mapping[str, int],
    rows: AsyncIterable[TableRow],
    outcome: TransferOutcome,
    *,
    user_id: str | None = None,
) -> str | None:
    """Write a thread in one transaction if the store lacks it, and count it; return how an existing one differs. With
    `user_id`, nothing is said of another user's thread but that its id is taken."""
    async with store.reading() as tx:
        there = await one(tx, "select_owner", id=thread_id)
        if there is not None:
            if user_id not in (None, there["user_id"]):
                return "its id is taken by another user"
            reason = await difference(tx, tables, thread_id, counts, rows)
            outcome.same += reason is None
            return reason
    async with store.writing() as tx:
        outcome.rows += await write_thread(tx, tables, thread_id, counts, rows)
    outcome.written += 1
    return None


async def difference(
    tx: Transaction, tables: Tables, thread_id: str, counts: Mapping[str, int], rows: AsyncIterable[TableRow]
) -> str | None:
    """Return how an existing thread differs from `rows`, both in exported form; None if they are equal."""
    there = await count_rows(tx, tables.of_threads, thread_id)
    for name in sorted({*there, *counts}):
        if there.get(name, 0) != counts.get(name, 0):
            return f"{name}: {there.get(name, 0)} there, {counts.get(name, 0)} here"
    table = tables[THREADS]
    ours = _rows_of(tx, table, thread_id)
    async for name, row in rows:
        if name != table.name:
            table = tables[name]
            ours = _rows_of(tx, table, thread_id)
        if column := differing_column(table, await anext(ours), row):
            place = " ".join([name, *(str(part) for part in key_of(table, row))])
            return f"{place}: another {column}"
    return None


def differing_column(table: StoreTable, mine: Row, other: Row) -> str | None:
    """Return the first column in which two rows differ. A column absent from the other may have its default."""
    for column in table.columns:
        if column.name not in other and column.has_default:
            continue
        if canonical(column, mine[column.name]) != canonical(column, other.get(column.name)):
            return column.name
    return None


async def gone_on(here: Transaction, there: Transaction, tables: Tables, thread_id: str) -> str | None:
    """Return what a thread has only there: a question that waits, an entry, a checkpoint or a run; None: it can have
    continued only here."""
    if await wait_list.counts(there, [thread_id]):
        return "a question waits there"
    for name, compared in _GOES_ON.items():
        table = tables[name]
        rows, ours = (_rows_of(tx, table, thread_id) for tx in (here, there))
        row = await anext(rows, None)
        async for mine in ours:
            key = key_of(table, mine)
            while row is not None and key_of(table, row) < key:
                row = await anext(rows, None)
            place = " ".join([name, *(str(part) for part in key if part not in ("", thread_id))])
            if row is None or key_of(table, row) != key:
                return f"{place}: only there"
            if (column := differing_column(table, mine, row)) and (compared is None or column in compared):
                return f"{place}: another {column}"
    return None


@dataclass(frozen=True, slots=True)
class ThreadCount:
    """How many entries and checkpoints a thread has."""

    thread_id: str
    entries: int
    checkpoints: int


async def count_checkpoints(tx: Transaction, user_id: str) -> list[ThreadCount]:
    """Count the entries and checkpoints of each of a user's threads."""
    rows = await tx.fetch("count_checkpoints_of_threads", user_id=user_id)
    return [ThreadCount(row["id"], int(row["entries"]), int(row["checkpoints"])) for row in rows]


async def list_checkpoint_users(tx: Transaction) -> list[str]:
    """Return the users who have threads with checkpoints, or items."""
    return [row["user_id"] for row in await tx.fetch("select_users_of_langgraph")]


async def sent_ids(tx: Transaction, thread_id: str) -> list[str]:
    """Return the id of each message in a thread's log, as its sender gave it."""
    rows = await tx.fetch("select_sent_ids", thread_id=thread_id)
    return [str(json.loads(row["metadata"] or "{}").get(SENT_ID, row["id"])) for row in rows]
