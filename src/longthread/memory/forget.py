"""Deletes a thread, a user or a memory from every table, and derives the remaining data again.

A background pass discards what it read before: under the thread's lock, it checks that the thread is still the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from longthread.access import audit
from longthread.access.erasure import erase_access, shut_out
from longthread.errors import ThreadNotFound
from longthread.store import boards, catalog, log, memories
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance import deletions, jobs
from longthread.store.maintenance.space import Say, scrub, silently
from longthread.store.queries import Sql
from longthread.store.tables import StoreTable, Tables, read_tables
from longthread.store.transfer.threads import thread_ids

_SESSION = "session_id"
_USER = "user_id"


@dataclass(slots=True)
class Forgotten:
    """What was, or would be, deleted: threads, and rows by table. `kept` memories outlive the threads that they come
    from. `problems` are reports for people."""

    threads: int = 0
    ids: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def tables(self) -> set[str]:
        """The tables with deleted rows, and that of memories which named a deleted thread."""
        return {*self.rows, *(("memories",) if self.kept else ())}

    def add(self, other: Forgotten) -> None:
        self.threads += other.threads
        self.ids += other.ids
        self.rows += other.rows
        self.kept += other.kept
        self.problems += other.problems


async def forget_thread(
    store: Driver, thread_id: str, *, user_id: str, with_memories: bool = True, anew: bool = False
) -> Forgotten:
    """Delete a thread as `delete_thread` does, and from the store's files; same errors. `scrub` explains the last
    parameter."""
    gone = await delete_thread(store, thread_id, user_id=user_id, with_memories=with_memories)
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone.problems += await scrub(store, _find_tables(tables, gone, anew=anew), anew=anew)
    return gone


async def delete_thread(store: Driver, thread_id: str, *, user_id: str, with_memories: bool = False) -> Forgotten:
    """Delete a thread and those below it, with index, vectors, summary and topics. It cannot be undone. A process that
    executes a run on it writes nothing more. What was remembered from them stays; `with_memories`, what no other thread
    has said goes too.

    Raises:
        ThreadNotFound: there is no such thread, or it is another user's.
        StoreError: the database failed.
    """
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone = Forgotten()
    async with store.writing() as tx:
        await _Deletion(tx, tables, user_id, with_memories).delete(thread_id, gone)
        await audit.note(tx, "conversation.delete", thread_id)
    return gone


async def end_deletion(store: Driver, thread_id: str) -> Forgotten:
    """Delete a thread whose time to undo that is over. Raises as `delete_thread` does: it was undone."""
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone = Forgotten()
    async with store.writing() as tx:
        restored = await deletions.undo(tx, thread_id)
        await _Deletion(tx, tables, restored.user_id, restored.with_memories).delete(thread_id, gone)
    return gone


async def forget_user(store: Driver, user_id: str, *, anew: bool = False) -> Forgotten:
    """Delete all threads, memories and other data of a user, and the user. It cannot be undone.

    The catalog is shared: the user's definitions stay, without the user's name, and so do projects. Each thread has its
    own transaction. The user is shut out first. After an interruption the rest is intact; call it again.

    Raises:
        LastAdmin: no administrator would be left. Nothing was deleted.
        StoreError: the database failed.
    """
    async with store.writing() as tx:
        await shut_out(tx, user_id)
    async with store.reading() as tx:
        tables = await read_tables(tx)
        page = await thread_ids(tx, user_id=user_id)
        pending = await deletions.of_user(tx, user_id)
    gone = Forgotten()
    for thread_id in pending:
        with suppress(ThreadNotFound):  # it is deleted meanwhile, or given back
            gone.add(await end_deletion(store, thread_id))
    while page:
        for thread_id in page:
            async with store.writing() as tx:
                try:
                    await _Deletion(tx, tables, user_id, with_memories=True).delete(thread_id, gone)
                except ThreadNotFound:  # somebody else has deleted it meanwhile
                    continue
        async with store.reading() as tx:
            page = await thread_ids(tx, user_id=user_id)
    async with store.writing() as tx:
        await jobs.forget_user(tx, user_id)
        for table in reversed(_of_users(tables)):
            gone.rows[table.name] += await tx.run(
                Sql(f'DELETE FROM "{table.name}" WHERE "{_USER}" = :user_id'), user_id=user_id
            )
        signed = await catalog.forget_maker(tx, user_id)
        changed = await erase_access(tx, user_id)
    gone.rows += Counter()
    changed |= {*_find_tables(tables, gone, anew=anew), *_beside(tables), *(("catalog_versions",) if signed else ())}
    gone.problems += await scrub(store, changed, anew=anew)
    return gone


async def forget_memory(store: Driver, memory_id: str, *, user_id: str, anew: bool = False) -> Forgotten:
    """Delete a memory with its terms and vector, also from the views of runs that used it.

    The conversation that it comes from stays.

    Raises:
        MemoryNotFound: there is no such memory, or it is another user's.
        StoreError: the database failed.
    """
    async with store.writing() as tx:
        await memories.delete(tx, memory_id, user_id=user_id)
    rows = Counter({"memories": 1})
    return Forgotten(rows=rows, problems=await scrub(store, _MEMORIES, anew=anew))


async def forget_deleted(store: Driver, *, say: Say = silently) -> list[str]:
    """Rewrite all of a store's files without data deleted before; return what could not be done.

    The time grows with the store's size; others may use the store meanwhile. `say` reports progress.

    Raises:
        StoreError: the database failed. Nothing is lost.
    """
    async with store.reading() as tx:
        tables = await read_tables(tx)
    return await scrub(store, [table.name for table in tables.all], anew=True, say=say)


async def look_at_user(store: Driver, user_id: str) -> Forgotten:
    """Return what `forget_user` would delete."""
    found = Forgotten()
    async with store.reading() as tx:
        tables = await read_tables(tx)
        after: str | None = None
        while page := await thread_ids(tx, after=after, user_id=user_id):
            for thread_id in page:
                found.rows += await _count(tx, tables, thread_id)
            found.threads, after = found.threads + len(page), page[-1]
        for table in _of_users(tables):
            sql = f'SELECT count(*) AS rows FROM "{table.name}" WHERE "{_USER}" = :user_id'
            [row] = await tx.fetch(Sql(sql), user_id=user_id)
            found.rows[table.name] = int(row["rows"])
    found.rows += Counter()
    return found


async def look_at_thread(store: Driver, thread_id: str, *, user_id: str, with_memories: bool = True) -> Forgotten:
    """Return what `forget_thread` would delete; ThreadNotFound if the thread is missing or another user's."""
    async with store.reading() as tx:
        await log.find_row(tx, thread_id, user_id=user_id)
        found = Forgotten()
        await _Deletion(tx, await read_tables(tx), user_id, with_memories).look(thread_id, found)
        return found


_VOLUMES = ("recall_volumes", "recall_volume_postings", "recall_loose")
_MEMORIES = ("memories", "memory_sources", "memory_uses")


@dataclass(frozen=True, slots=True)
class _Deletion:
    """Deletes a thread with those below it, in a transaction, or looks what would be deleted."""

    tx: Transaction
    tables: Tables
    user_id: str
    with_memories: bool

    async def delete(self, thread_id: str, gone: Forgotten) -> None:
        """Lock a thread, delete it, and add what was deleted to `gone`. Raises `ThreadNotFound`."""
        await log.lock(self.tx, thread_id)
        await log.find_row(self.tx, thread_id, user_id=self.user_id)
        for each in await log.threads_below(self.tx, thread_id, user_id=self.user_id):
            await log.lock(self.tx, each)
        await self.look(thread_id, gone)
        await log.delete_thread(self.tx, thread_id, user_id=self.user_id, with_memories=self.with_memories)

    async def look(self, thread_id: str, found: Forgotten) -> None:
        """Add what would be deleted to `found`."""
        family = [thread_id, *await log.threads_below(self.tx, thread_id, user_id=self.user_id)]
        for each in family:
            found.rows += await _count(self.tx, self.tables, each)
        said = len(await memories.of_threads(self.tx, family, user_id=self.user_id))
        if self.with_memories:
            found.rows += Counter({"memories": said})
            for each in family:
                found.rows += await boards.count_of_thread(self.tx, each)
        else:
            found.kept += said
        found.threads += len(family)
        found.ids += family


async def _count(tx: Transaction, tables: Tables, thread_id: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, of_thread in _of_threads(tables):
        sql = f'SELECT count(*) AS rows FROM "{name}" WHERE {of_thread}'
        [row] = await tx.fetch(Sql(sql), thread_id=thread_id)
        found[name] += int(row["rows"])
    return found + Counter()


def _of_threads(tables: Tables) -> Iterable[tuple[str, str]]:
    """Yield the tables with rows of threads, and the condition of those of `:thread_id`."""
    for table in (*tables.of_threads, *tables.derived_tables):
        yield table.name, table.of_thread(":thread_id")
    for table in tables.shared_tables:
        if _SESSION in table.by_name and table.name != "memories":  # which may outlive it
            yield table.name, f'"{_SESSION}" = :thread_id'


def _of_users(tables: Tables) -> list[StoreTable]:
    """Return the tables with rows of users, except the threads', which are deleted one by one."""
    return [table for table in tables.all if table.thread is None and _USER in table.by_name]


def _find_tables(tables: Tables, gone: Forgotten, *, anew: bool) -> set[str]:
    """Return the tables with deleted rows, and the tables of volumes with deleted threads. If the files are rewritten,
    add tables that may have held such rows before, such as a task's writes before their checkpoint."""
    before = {"memories", *(name for name, _ in _of_threads(tables))} if anew and gone.threads else set[str]()
    return {*gone.tables, *(_VOLUMES if gone.rows["recall_bound"] else ()), *before}


def _beside(tables: Tables) -> list[str]:
    """Return tables whose rows are deleted with those of another."""
    own = {table.name for table in _of_users(tables)}
    return [table.name for table in tables.shared_tables if table.needs & own]
