"""Execution of retention, or a dry run: thread by thread, in small transactions, while servers run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from longthread.errors import RowDamaged
from longthread.store import log, memories
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.retention import Retention, RetentionPlan
from longthread.store.queries import Sql, queries
from longthread.store.tables import StoreTable, Tables, read_tables
from longthread.store.transfer.threads import TransferProgress, each_thread

_DELETE = re.compile(r"^(?:--[^\n]*\n)*DELETE FROM (\w+)")


@dataclass(slots=True)
class Pruned:
    """What was, or would be, deleted: rows and bytes by table, and whole threads. `touched` threads lost something,
    `busy` ones have a running run, `damaged` ones are unreadable, each with the reason."""

    threads: int = 0
    touched: int = 0
    busy: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    damaged: dict[str, str] = field(default_factory=dict)

    def add(self, table: str, rows: int, size: int) -> None:
        if rows:
            self.rows[table] = self.rows.get(table, 0) + rows
            self.bytes += size


async def prune(
    store: Driver, retention: Retention, progress: TransferProgress, *, apply: bool, user_id: str | None = None
) -> Pruned:
    """Delete what retention does not keep, of one user or of all; without `apply`, only count it.

    Each transaction locks one thread and deletes a limited number of rows, or a whole thread. It can stop at any
    moment and be run again. Damaged threads stay. Raises `StoreError`: earlier deletions are committed.
    """
    async with store.reading() as tx:
        pruning = _Pruning(store, retention, await read_tables(tx))
    async for thread_id in each_thread(store, progress, user_id=user_id):
        try:
            await (pruning.apply(thread_id) if apply else pruning.look(thread_id))
        except RowDamaged as error:  # of this thread alone: a database that is damaged itself is not written to
            pruning.pruned.damaged[thread_id] = error.reason
    if retention.policy.now is not None:
        count = await _expire_memories(store, retention.policy.now, user_id, apply=apply)
        pruning.pruned.add("memories", count, 0)
    return pruning.pruned


async def _expire_memories(store: Driver, now: str, user_id: str | None, *, apply: bool) -> int:
    async with store.reading() as tx:
        count = await memories.count_expired(tx, user_id=user_id, now=now)
    if apply and count:
        async with store.writing() as tx:
            return await memories.delete_expired(tx, user_id=user_id, now=now)
    return count


@dataclass(slots=True)
class _Pruning:
    store: Driver
    retention: Retention
    tables: Tables
    pruned: Pruned = field(default_factory=Pruned)

    async def look(self, thread_id: str) -> bool:
        """Count what would be deleted of a thread; return whether anything would."""
        async with self.store.reading() as tx:
            found = await self.retention.plan(tx, thread_id)
            if found is None:
                self.pruned.busy += 1
                return False
            before = sum(self.pruned.rows.values())
            await self._measure(tx, thread_id, found)
        touched = sum(self.pruned.rows.values()) > before
        self.pruned.touched += touched
        return touched

    async def apply(self, thread_id: str) -> None:
        """Delete what may go of a thread. Most have nothing, and are not locked for that."""
        looked = Pruned()
        if await _Pruning(self.store, self.retention, self.tables, looked).look(thread_id):
            self.pruned.touched += 1
            while await self._delete_some(thread_id):
                pass
        self.pruned.busy += looked.busy

    async def _delete_some(self, thread_id: str) -> bool:
        """Delete what one transaction may; return whether there is more."""
        async with self.store.writing() as tx:
            # Lock first, then look: a run that begins now waits, and one that has begun is seen.
            if not await tx.fetch("select_position", id=thread_id):
                return False
            found = await self.retention.plan(tx, thread_id, at_once=False)
            if found is None:
                return False
            await self._measure(tx, thread_id, found)
            if found.whole:
                [thread] = await tx.fetch("select_retention", id=thread_id)
                with_memories = self.retention.policy.with_memories
                await log.delete_thread(tx, thread_id, user_id=thread["user_id"], with_memories=with_memories)
            for deletion in (*found.rows, *found.after):
                await tx.run(deletion.query, thread_id=thread_id, **deletion.values)
            if found.first_seq:
                await tx.run("move_first_seq", thread_id=thread_id, first_seq=found.first_seq)
        return found.more

    async def _measure(self, tx: Transaction, thread_id: str, found: RetentionPlan) -> None:
        if found.whole:
            family = [thread_id, *found.below]
            for each in family:
                self.pruned.threads += 1
                for table in self.tables.of_threads:
                    await self._count(tx, each, table, _all_of(table), {})
            if self.retention.policy.with_memories:
                user_id = await log.owner(tx, thread_id)
                self.pruned.add("memories", len(await memories.of_threads(tx, family, user_id=user_id)), 0)
        for deletion in found.rows:
            sql = queries(self.store.dialect)[deletion.query]
            head = _DELETE.match(sql)
            assert head is not None
            await self._count(tx, thread_id, self.tables[head[1]], sql[head.end() :], deletion.values)

    async def _count(
        self, tx: Transaction, thread_id: str, table: StoreTable, condition: str, values: Mapping[str, object]
    ) -> None:
        sql = f'SELECT count(*) AS rows, coalesce(sum({table.size}), 0) AS bytes FROM "{table.name}"{condition}'
        [counted] = await tx.fetch(Sql(sql), thread_id=thread_id, **values)
        self.pruned.add(table.name, int(counted["rows"]), int(counted["bytes"]))


def _all_of(table: StoreTable) -> str:
    return f" WHERE {table.of_thread(':thread_id')}"
