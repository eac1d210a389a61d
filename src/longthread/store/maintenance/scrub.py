"""Make sure that what was deleted is not left in the files of a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence

from longthread.errors import StoreError
from longthread.store.driver import Driver
from longthread.store.maintenance.space import Say, silently, vacuum_table, write_table_anew
from longthread.store.maintenance.wal_scrub import AGAIN, let_go
from longthread.store.queries import Sql, queries

PATIENCE = 2.0
"""Seconds to wait for those who read what was there before it was deleted."""
_HELD = (
    ": somebody has read the store since before (a long or a prepared transaction, a replica). When that has ended: "
    "longthread forget --deleted."
)


async def scrub(store: Driver, tables: Collection[str], *, anew: bool = False, say: Say = silently) -> list[str]:
    """Take out of the files what was deleted from these tables; what could not be done, for people.

    SQLite overwrites what is deleted, and here its log goes to the file and is emptied; PostgreSQL frees the rows'
    places. With `anew` the file, or each of the tables, is written anew, which takes as long as it is large: only then
    is it certain that no copy is left that the database once made of a row to move it, and no sample of its keys that
    PostgreSQL's planner has taken. PostgreSQL's own log then goes on to other files, where its role may have it do so.

    A backend that has no queries for it looks after itself.
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
        [samples] = await tx.fetch("select_clears_samples")
    horizon = await _unseen(store, say)
    for number, name in enumerate(tables, 1):
        say(f"writing {name} anew ({number} of {len(tables)})")
        try:
            if await write_table_anew(store, name, keys[name], horizon):
                held.append(name)
            if samples["clears"]:
                await _clear_samples(store, name)
            await vacuum_table(store, name)
        except StoreError as error:
            failed.setdefault(str(error), []).append(name)
    problems = [f"Not written anew: {', '.join(names)}. {why} {AGAIN}" for why, names in failed.items()]
    if held:
        problems.append(f"What was deleted may still be in {', '.join(held)}{_HELD}")
    return problems + await _write_samples_anew(store, tables, say) + await let_go(store, say)


async def _unseen(store: Driver, say: Say) -> str:
    """What was deleted before this moment may be left out. Whatever somebody can still see would be copied: for their
    transactions, as far as this role is told of them, it waits a little."""
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


async def _clear_samples(store: Driver, name: str) -> None:
    """Drop the values that the planner has sampled of a table: of an empty one it would keep them."""
    async with store.writing() as tx:
        await tx.run("wait_briefly")
        await tx.run(
            Sql(
                "SELECT pg_clear_attribute_stats(current_schema()::text, c.relname::text, a.attname::text, FALSE) "
                "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
                "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = :name"
            ),
            name=name,
        )


async def _write_samples_anew(store: Driver, tables: Collection[str], say: Say) -> list[str]:
    """Write the table of samples anew: those of before stay in its file otherwise."""
    horizon = await _unseen(store, say)
    say("writing the planner's samples anew")
    async with store.reading() as tx:
        [before] = await tx.fetch("select_file_of_samples")
    try:
        async with store.maintaining() as tx:
            await tx.run(Sql("VACUUM FULL pg_statistic"))
    except StoreError as error:
        return [f"The planner's samples could not be written anew. {error} {AGAIN}"]
    async with store.reading() as tx:
        [after] = await tx.fetch("select_file_of_samples")
        [samples] = await tx.fetch("select_is_held", name="pg_catalog.pg_statistic", horizon=horizon)
        left = [row["name"] for row in await tx.fetch("select_emptied_with_samples") if row["name"] in tables]
    problems = []
    if before == after:
        problems.append(
            "The planner's samples could hold keys of what was deleted until pg_statistic is written anew, which the "
            "database's owner may do: VACUUM FULL pg_statistic."
        )
    elif samples["held"]:
        problems.append(f"Keys of what was deleted may still be in the planner's samples{_HELD}")
    if left:
        problems.append(f"The planner's samples could hold keys of what was deleted from {', '.join(left)}.")
    return problems
