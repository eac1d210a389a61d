"""Make sure that what was deleted is not left in the files of a store."""

from __future__ import annotations

from collections.abc import Collection

from longthread.errors import StoreError
from longthread.store.driver import Driver
from longthread.store.queries import Sql, queries
from longthread.store.space import vacuum_table, write_table_anew


async def scrub(store: Driver, tables: Collection[str], *, anew: bool = False) -> list[str]:
    """Take out of the files what was deleted from these tables; what could not be done, for people.

    SQLite overwrites what is deleted, and here its log goes to the file and is emptied; PostgreSQL frees the rows'
    places. With `anew` the file, or each of the tables, is written anew, which takes as long as it is large: only then
    is it certain that no copy is left that the database once made of a row to move it, and no sample of its keys that
    PostgreSQL's planner has taken.

    A backend that has no queries for it looks after itself.
    """
    known = queries(store.dialect)
    if "shrink_file" in known:
        return await _empty_log(store, anew=anew)
    return await _free_places(store, tables, anew=anew) if "select_primary_keys" in known else []


async def _empty_log(store: Driver, *, anew: bool) -> list[str]:
    problems = []
    async with store.maintaining() as tx:
        if anew:
            try:
                await tx.run("vacuum_all")
            except StoreError as error:
                problems.append(f"The file could not be written anew. Forget again. {error}")
    async with store.maintaining() as tx:
        await tx.fetch("wait_briefly" if anew else "wait_a_moment")
        try:
            [done] = await tx.fetch("shrink_file")
        finally:
            await tx.fetch("wait_as_before")
    if done["busy"]:
        problems.append("What was deleted leaves the file's log when those who read it now have finished.")
    return problems


async def _free_places(store: Driver, tables: Collection[str], *, anew: bool) -> list[str]:
    problems = []
    async with store.reading() as tx:
        keys = {row["name"]: row["key"] for row in await tx.fetch("select_primary_keys")}
        clears = anew and bool((await tx.fetch("select_clears_samples"))[0]["clears"])
    for name in sorted(tables):
        try:
            if anew and name in keys:
                await write_table_anew(store, name, keys[name])
            if clears:
                await _clear_samples(store, name)
            await vacuum_table(store, name)
        except StoreError as error:
            problems.append(f"Table {name} could not be written anew. Forget again. {error}")
    return problems + (await _write_samples_anew(store, tables) if anew else [])


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


async def _write_samples_anew(store: Driver, tables: Collection[str]) -> list[str]:
    """Write the table of samples anew: those of before stay in its file otherwise."""
    async with store.reading() as tx:
        [before] = await tx.fetch("select_file_of_samples")
    async with store.maintaining() as tx:
        await tx.run(Sql("VACUUM FULL pg_statistic"))
    async with store.reading() as tx:
        [after] = await tx.fetch("select_file_of_samples")
        left = [row["name"] for row in await tx.fetch("select_emptied_with_samples") if row["name"] in tables]
    problems = []
    if before == after:
        problems.append(
            "The planner's samples could hold keys of what was deleted until pg_statistic is written anew, which the "
            "database's owner may do: VACUUM FULL pg_statistic."
        )
    if left:
        problems.append(f"The planner's samples could hold keys of what was deleted from {', '.join(left)}.")
    return problems
