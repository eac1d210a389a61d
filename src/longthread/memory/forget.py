"""Forget a thread, a user or a memory: all that is kept of it goes, in every table, and what remains is derived anew.

What a background pass has read before is not written any more: it looks, under the thread's lock, whether the thread is
still there and still the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from longthread.errors import RunInProgress, ThreadNotFound
from longthread.store import catalog, log, memories
from longthread.store.driver import Driver, Transaction
from longthread.store.leases import IsAlive, executed
from longthread.store.maintenance.scrub import scrub
from longthread.store.maintenance.space import Say, silently
from longthread.store.queries import Sql
from longthread.store.tables import StoreTable, Tables, read_tables
from longthread.store.transfer.threads import thread_ids

_SESSION = "session_id"
_USER = "user_id"


@dataclass(slots=True)
class Forgotten:
    """What went, or would go: threads, and rows by table. `problems` tells people what could not be done besides."""

    threads: int = 0
    ids: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


async def forget_thread(
    store: Driver, thread_id: str, *, user_id: str, alive: IsAlive | None = None, anew: bool = False
) -> Forgotten:
    """Delete a thread as `delete_thread` does, and take it out of the store's files.

    Args:
        anew: see `scrub`.

    Raises:
        ThreadNotFound: there is no such thread, or it is another user's.
        RunInProgress: a run on it is being executed.
        StoreError: the database failed.
    """
    gone = await delete_thread(store, thread_id, user_id=user_id, alive=alive)
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone.problems += await scrub(store, _concerned(tables, gone, anew=anew), anew=anew)
    return gone


async def delete_thread(store: Driver, thread_id: str, *, user_id: str, alive: IsAlive | None = None) -> Forgotten:
    """Delete a thread with all that is kept of it, also what was derived from it: index, vectors, summary, topics, and
    the memories that no other thread has said. With it go the threads below it. It cannot be undone.

    Args:
        alive: whether the owner of a run may still be at work; None: runs are not looked at.

    Raises:
        ThreadNotFound: there is no such thread, or it is another user's.
        RunInProgress: a run on it is being executed.
        StoreError: the database failed.
    """
    async with store.reading() as tx:
        tables = await read_tables(tx)
    gone = Forgotten()
    async with store.writing() as tx:
        await _delete_thread(tx, tables, thread_id, user_id, alive, gone)
    return gone


async def forget_user(store: Driver, user_id: str, *, alive: IsAlive | None = None, anew: bool = False) -> Forgotten:
    """Delete all threads of a user, all memories, and whatever else is the user's. It cannot be undone. The catalog is
    nobody's: what the user defined stays, and no longer says who defined it.

    Each thread goes in a transaction of its own. Stopped at any moment, what is left is whole; forget again.

    Raises:
        RunInProgress: a run of the user's is being executed.
        StoreError: the database failed.
    """
    async with store.reading() as tx:
        tables = await read_tables(tx)
        page = await thread_ids(tx, user_id=user_id)
        for thread_id in page:
            await _expect_idle(tx, thread_id, alive)
    gone = Forgotten()
    while page:
        for thread_id in page:
            async with store.writing() as tx:
                try:
                    await _delete_thread(tx, tables, thread_id, user_id, alive, gone)
                except ThreadNotFound:  # somebody else has deleted it meanwhile
                    continue
        async with store.reading() as tx:
            page = await thread_ids(tx, user_id=user_id)
    async with store.writing() as tx:
        for table in reversed(_of_users(tables)):
            gone.rows[table.name] += await tx.run(
                Sql(f'DELETE FROM "{table.name}" WHERE "{_USER}" = :user_id'), user_id=user_id
            )
        signed = await catalog.forget_maker(tx, user_id)
    gone.rows += Counter()
    changed = {*_concerned(tables, gone, anew=anew), *_beside(tables), *(("catalog_versions",) if signed else ())}
    gone.problems += await scrub(store, changed, anew=anew)
    return gone


async def forget_memory(store: Driver, memory_id: str, *, user_id: str, anew: bool = False) -> Forgotten:
    """Delete a memory with its terms and its vector, and take it out of the views of the runs that used it.

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
    """Write all of a store's files anew, without what was deleted before, by whomever; what could not be done, for
    people. It takes as long as the store is large, and may run while others use it.

    Args:
        say: told what is being done.

    Raises:
        StoreError: the database failed. Nothing is lost by that.
    """
    async with store.reading() as tx:
        tables = await read_tables(tx)
    return await scrub(store, [table.name for table in tables.all], anew=True, say=say)


async def look_at_user(store: Driver, user_id: str) -> Forgotten:
    """What `forget_user` would delete."""
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
    """What `forget_thread` would delete.

    Raises:
        ThreadNotFound: there is no such thread, or it is another user's.
    """
    async with store.reading() as tx:
        await log.find_row(tx, thread_id, user_id=user_id)
        found, tables = Forgotten(ids=await _family(tx, thread_id, user_id)), await read_tables(tx)
        for each in found.ids:
            found.rows += await _count(tx, tables, each)
        found.threads = len(found.ids)
        return found


_VOLUMES = ("recall_volumes", "recall_volume_postings", "recall_loose")
_MEMORIES = ("memories", "memory_sources", "memory_uses")


async def _delete_thread(
    tx: Transaction, tables: Tables, thread_id: str, user_id: str, alive: IsAlive | None, gone: Forgotten
) -> None:
    """Lock a thread, and delete it with those below it; what went is added to `gone`."""
    await log.lock(tx, thread_id)
    await log.find_row(tx, thread_id, user_id=user_id)
    rows: Counter[str] = Counter()
    family = await _family(tx, thread_id, user_id)
    for each in family:
        await log.lock(tx, each)
        await _expect_idle(tx, each, alive)
        rows += await _count(tx, tables, each)
    await log.delete_thread(tx, thread_id, user_id=user_id)
    gone.rows += rows
    gone.threads += len(family)
    gone.ids += family


async def _family(tx: Transaction, thread_id: str, user_id: str) -> list[str]:
    """A thread, and those below it."""
    return [thread_id, *await log.threads_below(tx, thread_id, user_id=user_id)]


async def _expect_idle(tx: Transaction, thread_id: str, alive: IsAlive | None) -> None:
    run_id = None if alive is None else await executed(tx, thread_id, alive=alive)
    if run_id is not None:
        raise RunInProgress(thread=thread_id, run=run_id)


async def _count(tx: Transaction, tables: Tables, thread_id: str) -> Counter[str]:
    """How many rows of each table are a thread's."""
    found: Counter[str] = Counter()
    for name, column in _of_threads(tables):
        sql = f'SELECT count(*) AS rows FROM "{name}" WHERE "{column}" = :thread_id'
        [row] = await tx.fetch(Sql(sql), thread_id=thread_id)
        found[name] += int(row["rows"])
    return found + Counter()


def _of_threads(tables: Tables) -> Iterable[tuple[str, str]]:
    """The tables with rows of a thread's, and the column that says which."""
    for table in (*tables.of_threads, *tables.derived):
        yield table.name, str(table.thread)
    for table in tables.shared:
        if _SESSION in table.by_name:
            yield table.name, _SESSION


def _of_users(tables: Tables) -> list[StoreTable]:
    """The tables that say of each row whose it is, but for the threads', which go one by one."""
    return [table for table in tables.all if table.thread is None and _USER in table.by_name]


def _concerned(tables: Tables, gone: Forgotten, *, anew: bool) -> set[str]:
    """The tables that rows went from, those of volumes with threads that were in them; with `anew` all that may have
    had rows of such threads before: what a task had written, say, until its checkpoint took that in."""
    before = {name for name, _ in _of_threads(tables)} if anew and gone.threads else set[str]()
    return {*gone.rows, *(_VOLUMES if gone.rows["recall_bound"] else ()), *before}


def _beside(tables: Tables) -> list[str]:
    """Tables whose rows go with those of another."""
    own = {table.name for table in _of_users(tables)}
    return [table.name for table in tables.shared if table.needs & own]
