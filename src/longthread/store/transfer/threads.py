"""Whole threads in transfer: read row by row, written completely or not at all, compared."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from longthread.errors import StoreError
from longthread.store.driver import Driver, Row, Transaction
from longthread.store.leases import left
from longthread.store.questions import queue
from longthread.store.tables import CHECKPOINTS, ENTRIES, RUNS, THREADS, StoreTable, Tables, canonical
from longthread.store.transfer.rows import (
    PAGE_BYTES,
    count_rows,
    delete_rows,
    key_of,
    read_rows,
    size_of,
    update_row,
    write_rows,
)

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
        for table in (*tables.derived, *reversed(tables.of_threads[1:])):
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
    if await queue.counts(there, [thread_id]):
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
