"""Deletions: of threads, undone for a while, of single messages, and of what retention says, while servers run.

Until its time comes, a placeholder user owns a thread that is to be deleted, along with the threads below it. So it is
in no list and no index of its user's, and no access by its id finds it. A background job deletes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from longthread.errors import InvalidInput, RowDamaged, ThreadNotFound
from longthread.model.entry import Entry
from longthread.model.thread import title_of
from longthread.store import incarnation, log, memories, recall_index, summaries
from longthread.store.driver import Driver, Transaction, one
from longthread.store.maintenance.jobs import Job
from longthread.store.maintenance.retention import Retention, RetentionPlan
from longthread.store.queries import Sql, queries
from longthread.store.tables import StoreTable, Tables, read_tables
from longthread.store.transfer.threads import TransferProgress, each_thread
from longthread.store.vectors import BLOCK

_NOBODY = "\x7fnobody/"
"""The prefix of the placeholder users that own threads meanwhile. It has a character that no user's name has."""


@dataclass(frozen=True, slots=True)
class PendingDeletion:
    """A thread that is deleted at `at`. Until then a placeholder user owns it."""

    thread_id: str
    nobody: str
    """The placeholder user."""
    at: datetime


@dataclass(frozen=True, slots=True)
class RestoredThread:
    """A thread that was given back to its user. `with_memories`: what was remembered from it was to be deleted too."""

    user_id: str
    with_memories: bool


async def begin(
    tx: Transaction,
    thread_id: str,
    *,
    user_id: str,
    seconds: float,
    with_memories: bool = False,
    owner: str | None = None,
) -> PendingDeletion:
    """Take a thread, and those below it, from their user. `with_memories` is kept for `log.delete_thread`. The worker
    `owner` measures the time. Raises `ThreadNotFound`."""
    await log.lock(tx, thread_id)
    await log.find_row(tx, thread_id, user_id=user_id)
    nobody = f"{_NOBODY}{thread_id}"
    for each in [thread_id, *await log.threads_below(tx, thread_id, user_id=user_id)]:
        await log.lock(tx, each)
        row = {"thread_id": each, "root": thread_id, "user_id": user_id, "with_memories": with_memories}
        await tx.run("insert_pending_deletion", **row)
        await tx.run("own_thread", id=each, user_id=nobody)
    await Job("deletion", thread_id).note(tx, seconds, owner)
    return PendingDeletion(thread_id, nobody, datetime.now(UTC) + timedelta(seconds=seconds))


async def undo(tx: Transaction, thread_id: str, *, user_id: str | None = None) -> RestoredThread:
    """Give a thread back, with those below it. If the one above it is to be deleted itself, this one stands on its own
    from now on. Raises `ThreadNotFound` if it is not to be deleted, or another one's than `user_id`."""
    await log.lock(tx, thread_id)
    found = await tx.fetch("select_pending_deletion", root=thread_id)
    owners = {str(row["user_id"]) for row in found}
    if not found or (user_id is not None and owners != {user_id}):
        raise ThreadNotFound(thread=thread_id)
    for row in found:
        await log.lock(tx, row["thread_id"])
        await tx.run("own_thread", id=row["thread_id"], user_id=row["user_id"])
    await tx.run("detach_from_deleted", id=thread_id)
    await tx.run("delete_pending_deletion", root=thread_id)
    await Job("deletion", thread_id).call_off(tx)
    return RestoredThread(owners.pop(), bool(found[0]["with_memories"]))


async def of_user(tx: Transaction, user_id: str) -> list[str]:
    """Return the threads that a user has deleted, and may have back."""
    return [row["root"] for row in await tx.fetch("select_pending_deletions_of_user", user_id=user_id)]


async def note_all(tx: Transaction) -> None:
    """Note the jobs of deletions that have none: a copy takes no jobs along."""
    for row in await tx.fetch("select_deletions_without_job", kind="deletion"):
        await Job("deletion", row["root"]).note(tx)


_TITLED = 32
"""In so many messages at the beginning of what stays another title is looked for."""


async def expect_free(tx: Transaction, thread_id: str) -> None:
    """Raise InvalidInput if runs or the gateway refer to a thread's entries."""
    row = await one(tx, "select_whose", thread_id=thread_id)
    if row is not None and row["referred"]:
        raise InvalidInput(
            reason=f"Thread {thread_id} has runs of Longthread's own agents or calls of the gateway, which hold what "
            "its messages say. Forget the whole thread: `longthread forget --thread`."
        )


async def delete_entries(tx: Transaction, thread_id: str, user_id: str, entries: Sequence[Entry]) -> None:
    """Delete entries with all of their versions: from the log, index, vectors, summary, topics, title and memories.

    What followed them follows what stood before them. The caller has locked the thread in this transaction. All that
    others have read of the thread is invalid afterwards.
    """
    seqs = sorted(entry.seq for entry in entries)
    parents = {entry.seq: entry.parent_seq for entry in entries}
    asked = {"thread_id": thread_id, "seqs": json.dumps(seqs)}
    await memories.forget_said(tx, thread_id, seqs)
    await _from_summary(tx, thread_id, seqs, parents)
    children = await tx.fetch("select_children_of_entries", **asked)
    moved = [
        {"thread_id": thread_id, "seq": row["seq"], "parent": _left(int(row["parent_seq"]), parents)}
        for row in children
        if row["seq"] not in parents
    ]
    await tx.run_all("move_entry", moved)
    for query in ("forget_entries", "forget_message_metadata", "forget_vectors"):
        await tx.run(query, **asked)
    await tx.run("forget_fold", thread_id=thread_id)
    await _from_index(tx, thread_id, user_id, seqs)
    await _end(tx, thread_id, user_id, entries, parents)
    await incarnation.begin_again(tx, thread_id)


def _left(seq: int, parents: Mapping[int, int]) -> int:
    """Return an entry, or the nearest one before it that stays."""
    while seq in parents:
        seq = parents[seq]
    return seq


async def _from_summary(tx: Transaction, thread_id: str, seqs: Sequence[int], parents: Mapping[int, int]) -> None:
    await summaries.outdate(tx, thread_id, seqs[0], prompt=True)
    for seq in seqs:
        if mark := _left(seq, parents):
            await tx.run("move_mark", thread_id=thread_id, seq=seq, to=mark)
    found = await summaries.find_thread(tx, thread_id)
    if found is not None and found.kept is not None and found.kept.last_seq in parents:
        await summaries.drop(tx, thread_id)  # nothing is left that it could tell of


async def _from_index(tx: Transaction, thread_id: str, user_id: str, seqs: Sequence[int]) -> None:
    for extent in await recall_index.extents(tx, thread_id):
        if any(extent.first <= seq <= extent.last for seq in seqs):
            await recall_index.delete_segments(tx, thread_id, extent.first, extent.first)
    blocks = json.dumps(sorted({seq // BLOCK for seq in seqs}))
    await tx.run("forget_signatures", thread_id=thread_id, blocks=blocks)
    await tx.run("unsign_embedded", thread_id=thread_id)
    volumes = [each.volume for each in await recall_index.bindable(tx, user_id, [thread_id]) if each.volume is not None]
    await recall_index.delete_volumes(tx, user_id, volumes)


async def _end(
    tx: Transaction, thread_id: str, user_id: str, entries: Sequence[Entry], parents: Mapping[int, int]
) -> None:
    """Move the tip where it was deleted, and take the title from what is left where it was taken from an entry."""
    thread = await log.find_thread(tx, thread_id, user_id=user_id)
    tip, title = _left(thread.tip, parents), thread.title
    if title in {title_of(entry.text) for entry in entries if entry.role == "user"}:
        left = await log.entries_between(tx, thread_id, thread.first_seq, entries[0].seq + _TITLED)
        asked = (title_of(entry.text) for entry in left if entry.role == "user" and entry.text.strip())
        title = next(asked, None)
    await tx.run("forget_tip", thread_id=thread_id, tip=tip, title=title)


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
