"""Make sure that what was deleted is not left in the files of a store."""

from __future__ import annotations

from collections.abc import Collection

from longthread.errors import StoreError
from longthread.store.driver import Driver
from longthread.store.queries import queries
from longthread.store.space import vacuum_table, write_table_anew


async def scrub(store: Driver, tables: Collection[str], *, anew: bool = False) -> list[str]:
    """Take out of the files what was deleted from these tables; what could not be done, for people.

    SQLite overwrites what is deleted, and here its log goes to the file and is emptied; PostgreSQL frees the rows'
    places. With `anew` the file, or each of the tables, is written anew, which takes as long as it is large: only then
    is it certain that no copy is left that the database once made of a row to move it.

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
    for name in sorted(tables):
        try:
            if anew and name in keys:
                await write_table_anew(store, name, keys[name])
            await vacuum_table(store, name)
        except StoreError as error:
            problems.append(f"Table {name} could not be written anew. Forget again. {error}")
    return problems
