"""Deletes a thread, a user or a memory from every table, and derives the remaining data again.

A background pass discards what it read before: under the thread's lock, it checks that the thread is still the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from longthread.errors import ThreadNotFound
from longthread.store import catalog, log, memories
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance import deletions, jobs
from longthread.store.maintenance.scrub import scrub
from longthread.store.maintenance.space import Say, silently
from longthread.store.queries import Sql
from longthread.store.tables import StoreTable, Tables, read_tables
from longthread.store.transfer.threads import thread_ids

_SESSION = "session_id"
_USER = "user_id"


@dataclass(slots=True)
class Forgotten:
    """What was, or would be, deleted: threads, and rows by table. `problems` are reports for people."""

    threads: int = 0
    ids: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, other: Forgotten) -> None:
        self.threads += other.threads
        self.ids += other.ids
        self.rows += other.rows
        self.problems += other.problems


async def forget_thread(store: Driver, thread_id: str, *, user_id: str, anew: bool = False) -> Forgotten:
    """Delete a thread as `delete_thread` does, and from the store's files; same errors. For `anew` see `scrub`."""
    gone = await delete_thread(store, thread_id, user_id=user_id)
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone.problems += await scrub(store, _concerned(tables, gone, anew=anew), anew=anew)
    return gone


async def delete_thread(store: Driver, thread_id: str, *, user_id: str) -> Forgotten:
    """Delete a thread and those below it, with index, vectors, summary, topics, and memories that no other
    thread has said. It cannot be undone. A process that executes a run on it writes nothing more.

    Raises:
        ThreadNotFound: there is no such thread, or it is another user's.
        StoreError: the database failed.
    """
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone = Forgotten()
    async with store.writing() as tx:
        await _delete_thread(tx, tables, thread_id, user_id, gone)
    return gone


async def end_deletion(store: Driver, thread_id: str) -> Forgotten:
    """Delete a thread whose time to undo that is over. Raises as `delete_thread` does: it was undone."""
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone = Forgotten()
    async with store.writing() as tx:
        user_id = await deletions.undo(tx, thread_id)
        await _delete_thread(tx, tables, thread_id, user_id, gone)
    return gone


async def forget_user(store: Driver, user_id: str, *, anew: bool = False) -> Forgotten:
    """Delete all threads, memories and other data of a user. It cannot be undone.

    The catalog is shared: the user's definitions stay, without the user's name. Each thread has its own transaction.
    After an interruption the rest is intact; call it again.

    Raises:
        StoreError: the database failed.
    """
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
                    await _delete_thread(tx, tables, thread_id, user_id, gone)
                except ThreadNotFound:  # somebody else has deleted it meanwhile
                    continue
        async with store.reading() as tx:
            page = await thread_ids(tx, user_id=user_id)
    async with store.writing() as tx:
        for table in reversed(_of_users(tables)):
            gone.rows[table.name] += await tx.run(
                Sql(f'DELETE FROM "{table.name}" WHERE "{_USER}" = :user_id'), user_id=user_id
            )
        await jobs.forget_user(tx, user_id)
        signed = await catalog.forget_maker(tx, user_id)
    gone.rows += Counter()
    changed = {*_concerned(tables, gone, anew=anew), *_beside(tables), *(("catalog_versions",) if signed else ())}
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


async def look_at_thread(store: Driver, thread_id: str, *, user_id: str) -> Forgotten:
    """Return what `forget_thread` would delete; ThreadNotFound if the thread is missing or another user's."""
    async with store.reading() as tx:
        await log.find_row(tx, thread_id, user_id=user_id)
        found, tables = Forgotten(ids=await _family(tx, thread_id, user_id)), await read_tables(tx)
        for each in found.ids:
            found.rows += await _count(tx, tables, each)
        found.threads = len(found.ids)
        return found


_VOLUMES = ("recall_volumes", "recall_volume_postings", "recall_loose")
_MEMORIES = ("memories", "memory_sources", "memory_uses")
_JOINT = (
    f'"{_SESSION}" <> :thread_id AND id IN '
    f"(SELECT memory_id FROM memory_sources WHERE \"{_SESSION}\" = :thread_id AND content = '')"
)
"""The memories of other threads that were made of this one's words too."""


async def _delete_thread(tx: Transaction, tables: Tables, thread_id: str, user_id: str, gone: Forgotten) -> None:
    """Lock a thread, delete it with those below it, and add what was deleted to `gone`."""
    await log.lock(tx, thread_id)
    await log.find_row(tx, thread_id, user_id=user_id)
    rows: Counter[str] = Counter()
    family = await _family(tx, thread_id, user_id)
    for each in family:
        await log.lock(tx, each)
        rows += await _count(tx, tables, each)
    await log.delete_thread(tx, thread_id, user_id=user_id)
    gone.rows += rows
    gone.threads += len(family)
    gone.ids += family


async def _family(tx: Transaction, thread_id: str, user_id: str) -> list[str]:
    return [thread_id, *await log.threads_below(tx, thread_id, user_id=user_id)]


async def _count(tx: Transaction, tables: Tables, thread_id: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, of_thread in _of_threads(tables):
        sql = f'SELECT count(*) AS rows FROM "{name}" WHERE {of_thread}'
        [row] = await tx.fetch(Sql(sql), thread_id=thread_id)
        found[name] += int(row["rows"])
    return found + Counter()


def _of_threads(tables: Tables) -> Iterable[tuple[str, str]]:
    """Yield the tables with rows of threads, and the condition of those of `:thread_id`."""
    for table in (*tables.of_threads, *tables.derived):
        yield table.name, table.of_thread(":thread_id")
    for table in tables.shared:
        if _SESSION in table.by_name:
            yield table.name, f'"{_SESSION}" = :thread_id'
    yield "memories", _JOINT


def _of_users(tables: Tables) -> list[StoreTable]:
    """Return the tables with rows of users, except the threads', which are deleted one by one."""
    return [table for table in tables.all if table.thread is None and _USER in table.by_name]


def _concerned(tables: Tables, gone: Forgotten, *, anew: bool) -> set[str]:
    """Return the tables with deleted rows, and those of volumes with deleted threads.
    With `anew`, add tables that may have held such rows before, such as a task's writes before their checkpoint."""
    before = {name for name, _ in _of_threads(tables)} if anew and gone.threads else set[str]()
    return {*gone.rows, *(_VOLUMES if gone.rows["recall_bound"] else ()), *before}


def _beside(tables: Tables) -> list[str]:
    """Return tables whose rows are deleted with those of another."""
    own = {table.name for table in _of_users(tables)}
    return [table.name for table in tables.shared if table.needs & own]
