"""Copies of whole stores between backends, thread by thread, so that a killed copy can continue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from longthread.errors import NotStorable, RowDamaged, StoreError, ThreadNotFound, ValueRefused
from longthread.store import incarnation, log, wait_list
from longthread.store.driver import Driver, Row, Transaction, one
from longthread.store.open import refuse_same
from longthread.store.queries import Sql
from longthread.store.tables import RUNS, THREADS, StoreTable, Tables, read_tables
from longthread.store.transfer.threads import (
    PAGE_BYTES,
    Refusal,
    TransferOutcome,
    TransferProgress,
    count_rows,
    count_threads,
    differing_column,
    each_thread,
    gone_on,
    key_of,
    read_rows,
    read_thread,
    size_of,
    store_thread,
    write_rows,
    write_thread,
)

_NO_RUN = "its run is not there"
_PARENTS: Mapping[str, Mapping[str, str]] = {
    "memories": {"session_id": THREADS},
    "memory_sources": {"memory_id": "memories", "session_id": THREADS},
    "memory_uses": {"memory_id": "memories"},
    "board_cards": {"board_id": "boards"},
}
"""Columns of shared tables and the tables that they refer to. The target may lack a parent: it was refused, or is newer
than the list that was read."""
_NAMED = frozenset({"skills", "tools", "sources", "upstreams", "routes"})
"""Tables whose names are unique."""


async def copy_store(
    source: Driver, target: Driver, progress: TransferProgress, *, update: bool = False
) -> TransferOutcome:
    """Copy everything in `source` that `target` lacks; what differs is left and reported.

    With `update`, threads that have continued in the source are replaced, unless the target has an entry, a checkpoint
    or a run of its own. Both stores may be in use: each thread is copied from one snapshot, in one transaction.

    Raises:
        InvalidInput: both are the same store.
        StoreError: a database failed. Completed threads stay, and another copy continues from there.
    """
    await refuse_same(source, target)
    copying = await _open(source, target, update=update)
    early = [table.name for table in copying.theirs.shared_tables if THREADS not in table.needs]
    late = [table.name for table in copying.theirs.shared_tables if THREADS in table.needs]
    for name in early:
        await copying.copy_shared(name)
    async for thread_id in each_thread(source, progress):
        await copying.copy_thread(thread_id)
    for name in late:
        await copying.copy_shared(name)
    async with source.reading() as tx:
        copying.outcome.questions_left = await wait_list.count(tx)
    return copying.outcome


@dataclass(frozen=True, slots=True)
class CopyComparison:
    """Both stores' numbers of threads after a copy, and the source's threads with other row counts in the target."""

    source: int
    target: int
    differing: tuple[str, ...]

    @property
    def missing(self) -> int:
        """The least number of threads that the target lacks."""
        return max(0, self.source - self.target)


async def compare_stores(source: Driver, target: Driver, progress: TransferProgress) -> CopyComparison:
    """Compare both stores' numbers of threads, and each source thread's row counts."""
    copying = await _open(source, target)
    differing = [name async for name in each_thread(source, progress) if await copying.counts_differ(name)]
    async with source.reading() as here, target.reading() as there:
        return CopyComparison(await count_threads(here), await count_threads(there), tuple(differing))


async def _open(source: Driver, target: Driver, *, update: bool = False) -> _Copying:
    """Raises `StoreError` if the stores do not have the same tables and columns."""
    async with source.reading() as here, target.reading() as there:
        ours, theirs = await read_tables(here), await read_tables(there)
    if ours.shape != theirs.shape:
        raise StoreError(reason=f"{source.where} and {target.where} do not have the same tables.")
    return _Copying(source, target, ours, theirs, update)


@dataclass(slots=True)
class _Copying:
    """A copy in progress. `ours` and `theirs` are the source's and the target's tables, each in its own SQL."""

    source: Driver
    target: Driver
    ours: Tables
    theirs: Tables
    update: bool
    outcome: TransferOutcome = field(default_factory=TransferOutcome)

    async def copy_thread(self, thread_id: str) -> None:
        """Copy a thread that the target lacks; update or report one that differs or is damaged."""
        try:
            reason = await self._copy_thread(thread_id)
        except (RowDamaged, ValueRefused, NotStorable) as error:
            why = (error.reason or str(error)).rstrip(".")
            self.outcome.refused.append(Refusal(f"thread {thread_id}", why, is_damaged=True))
        else:
            if reason is not None:
                self.outcome.refused.append(Refusal(f"thread {thread_id}", reason))

    async def _copy_thread(self, thread_id: str) -> str | None:
        async with self.source.reading() as here:
            counts = await count_rows(here, self.ours.of_threads, thread_id)
            if not counts:
                return None  # Deleted after it was listed.
            rows = read_thread(here, self.ours, thread_id)
            reason = await store_thread(self.target, self.theirs, thread_id, counts, rows, self.outcome)
            if reason is None or not self.update:
                return reason
            return await self._update(here, thread_id, counts)

    async def _update(self, here: Transaction, thread_id: str, counts: Mapping[str, int]) -> str | None:
        """Replace a thread in the target; if the target has rows of its own, return what they are."""
        async with self.target.writing() as tx:
            await log.position(tx, thread_id)
            if reason := await gone_on(here, tx, self.theirs, thread_id):
                return reason
            rows = read_thread(here, self.ours, thread_id)
            self.outcome.rows += await write_thread(tx, self.theirs, thread_id, counts, rows, over_old=True)
            await incarnation.renew(tx, thread_id)
        self.outcome.updated += 1
        return None

    async def counts_differ(self, thread_id: str) -> bool:
        async with self.source.reading() as here, self.target.reading() as there:
            counts = await count_rows(here, self.ours.of_threads, thread_id)
            return bool(counts) and counts != await count_rows(there, self.theirs.of_threads, thread_id)

    async def copy_shared(self, name: str) -> None:
        """Copy the missing rows of a shared table; report rows that differ."""
        batch: list[Row] = []
        size = 0
        async with self.source.reading() as here, self.target.reading() as there:
            theirs = read_rows(there, self.theirs[name])
            mine = await anext(theirs, None)
            async for row in read_rows(here, self.ours[name]):
                key = key_of(self.ours[name], row)
                while mine is not None and key_of(self.theirs[name], mine) < key:
                    mine = await anext(theirs, None)
                if mine is None or key_of(self.theirs[name], mine) != key:
                    batch.append(row)
                    size += size_of(row)
                elif column := differing_column(self.theirs[name], mine, row):
                    self.outcome.refused.append(Refusal(" ".join([name, *map(str, key)]), f"another {column}"))
                if size > PAGE_BYTES:
                    await self._write_shared(name, batch)
                    batch, size = [], 0
        await self._write_shared(name, batch)

    async def _write_shared(self, name: str, rows: list[Row]) -> None:
        if rows:
            table, ready, refused = self.theirs[name], list[Row](), list[Refusal]()
            async with self.target.writing() as tx:
                for each in rows:
                    row = await _without_missing_thread(tx, table, each)
                    if reason := await self._why_not(tx, table, row):
                        refused.append(Refusal(" ".join([name, *map(str, key_of(table, row))]), reason))
                    else:
                        ready.append(row)
                await write_rows(tx, table, ready)
            self.outcome.rows += len(ready)
            self.outcome.refused += refused

    async def _why_not(self, tx: Transaction, table: StoreTable, row: Row) -> str | None:
        """Return why a row of a shared table cannot be written; None: it can."""
        if RUNS in table.needs and not await self._has_run(tx, row):
            return _NO_RUN
        for column, parent in _PARENTS.get(table.name, {}).items():
            if row[column] is not None and not await self._has_row(tx, parent, row[column]):
                return f"its row of {parent} is not there; copy again"
        taken = Sql(f'SELECT 1 AS taken FROM "{table.name}" WHERE name = :name')
        if table.name in _NAMED and await tx.fetch(taken, name=row["name"]):
            return f"another one there is called {row['name']}; rename one of them, and copy again"
        return None

    async def _has_run(self, tx: Transaction, row: Row) -> bool:
        """Return whether the run that a session's row refers to exists."""
        if not await _has_thread(tx, row["session_id"]):
            return False
        return await one(tx, "select_run", thread_id=row["session_id"], id=row["run_id"]) is not None

    async def _has_row(self, tx: Transaction, name: str, row_id: str) -> bool:
        if name == THREADS:
            return await _has_thread(tx, row_id)
        id_ = self.theirs[name].by_name["id"]
        return await one(tx, Sql(f'SELECT 1 AS there FROM "{name}" WHERE id = {id_.write}'), id=row_id) is not None


async def _without_missing_thread(tx: Transaction, table: StoreTable, row: Row) -> Row:
    """Return a board's card without its conversation, which it may outlive, where the target has no such thread."""
    if table.name != "board_cards" or row["asked_in"] is None or await _has_thread(tx, row["asked_in"]):
        return row
    return {**row, "asked_in": None}


async def _has_thread(tx: Transaction, thread_id: str) -> bool:
    """Return whether a thread exists, and lock it."""
    try:
        await log.lock(tx, thread_id)
    except ThreadNotFound:
        return False
    return True
