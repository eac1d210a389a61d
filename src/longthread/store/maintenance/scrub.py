"""Removal of deleted data from a store's files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence

from longthread.errors import StoreError
from longthread.store.driver import Driver
from longthread.store.maintenance.space import Say, silently, vacuum_table, write_table_anew
from longthread.store.queries import queries

PATIENCE = 2.0
"""Seconds to wait for transactions that began before the deletion."""
AGAIN = "Do it later: longthread forget --deleted."
"""What to do about what could not be done now."""
_HELD = (
    ": somebody has read the store since before (a long or a prepared transaction, a replica). When that has ended: "
    "longthread forget --deleted."
)


async def scrub(store: Driver, tables: Collection[str], *, anew: bool = False, say: Say = silently) -> list[str]:
    """Remove these tables' deleted data from the files; return what could not be done, for people.

    SQLite overwrites deleted data; its log is checkpointed and truncated. PostgreSQL frees the rows' space. `anew`
    rewrites the file or tables, in time proportional to their size: only that removes every copy that moved rows left.
    PostgreSQL's `pg_wal` holds deleted data until its files are recycled; planner samples hold keys until the next
    ANALYZE. Backends without such queries do nothing here.
    """
    known = queries(store.dialect)
    if "shrink_file" in known:
        return await _empty_log(store, anew=anew, say=say)
    if "select_primary_keys" not in known:
        return []
    return await (_write_anew(store, sorted(tables), say) if anew else _free_places(store, sorted(tables)))


async def _empty_log(store: Driver, *, anew: bool, say: Say) -> list[str]:
    problems = []
    async with store.maintaining() as tx:
        if anew:
            say("writing the file anew")
            try:
                await tx.run("vacuum_all")
            except StoreError as error:
                problems.append(f"The file could not be written anew. {error} {AGAIN}")
    async with store.maintaining() as tx:
        await tx.fetch("wait_briefly" if anew else "wait_a_moment")
        try:
            [done] = await tx.fetch("shrink_file")
        finally:
            await tx.fetch("wait_as_before")
    if done["busy"]:
        problems.append("What was deleted leaves the file's log when those who read it now have finished.")
    return problems


async def _free_places(store: Driver, tables: Sequence[str]) -> list[str]:
    problems = []
    for name in tables:
        try:
            await vacuum_table(store, name)
        except StoreError as error:
            problems.append(f"The space of table {name} could not be freed. {error}")
    return problems


async def _write_anew(store: Driver, tables: Sequence[str], say: Say) -> list[str]:
    held: list[str] = []
    failed: dict[str, list[str]] = {}
    async with store.reading() as tx:
        keys = {row["name"]: row["key"] for row in await tx.fetch("select_primary_keys")}
    horizon = await _unseen(store, say)
    for number, name in enumerate(tables, 1):
        say(f"writing {name} anew ({number} of {len(tables)})")
        try:
            if await write_table_anew(store, name, keys[name], horizon):
                held.append(name)
            await vacuum_table(store, name)
        except StoreError as error:
            failed.setdefault(str(error), []).append(name)
    problems = [f"Not written anew: {', '.join(names)}. {why} {AGAIN}" for why, names in failed.items()]
    if held:
        problems.append(f"What was deleted may still be in {', '.join(held)}{_HELD}")
    return problems


async def _unseen(store: Driver, say: Say) -> str:
    """Wait briefly for transactions that still see deleted rows, as far as this role may know of them; rewriting would
    copy these rows."""
    async with store.reading() as tx:
        [now] = await tx.fetch("select_horizon")
    horizon, until = str(now["horizon"]), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        async with store.reading() as tx:
            [others] = await tx.fetch("count_older", horizon=horizon)
        if not others["older"]:
            break
        say("waiting for those who read the store")
        await asyncio.sleep(0.05)
    return horizon
