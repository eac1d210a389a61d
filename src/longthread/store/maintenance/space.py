"""A store's location, contents, size, and whether it can be written; deleted data removed, unused space given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from longthread.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from longthread.model.ids import new_id
from longthread.store import leases
from longthread.store.driver import Driver, Transaction, one
from longthread.store.queries import Sql, queries
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.tables import StoreTable, read_tables

MOSTLY_EMPTY = 2.5
"""Ratio of a table's size with indexes to its rows above which it is rewritten; a full table has up to 2."""
WORTH_IT = 100_000
"""Smaller tables, in bytes, are not rewritten."""
STEP_PAGES = 1000
"""Pages by which one transaction shrinks a SQLite file."""
_ROW_BYTES = 28
"""PostgreSQL's overhead per row."""

Say = Callable[[str], None]
"""Receives progress messages for people."""


def silently(what: str) -> None:
    """Report nothing."""


async def reclaim(store: Driver, say: Say) -> list[str]:
    """Shrink a store in use; return what could not be done, for people. Backends without such queries do nothing.
    Raises `StoreError`; no data is lost by it."""
    known = queries(store.dialect)
    if "vacuum_page" in known:
        return await _shrink_file(store, say)
    return await _vacuum_tables(store, say) if "select_primary_keys" in known else []


async def _shrink_file(store: Driver, say: Say) -> list[str]:
    problem = await _rewrite_file(store, say)
    if problem is not None:
        return [problem]
    before = None
    while (free := await _free_pages(store)) and free != before:
        before = free
        say(f"giving back {free:,} pages")
        # In steps: others use the file between two of them.
        async with store.writing() as tx:
            for _ in range(min(free, STEP_PAGES)):
                await tx.run("vacuum_page")
    async with store.maintaining() as tx:
        await tx.fetch("wait_briefly")
        try:
            [done] = await tx.fetch("shrink_file")
        finally:
            await tx.fetch("wait_as_before")
    return ["The file shrinks when those who read it now have finished."] if done["busy"] else []


async def _rewrite_file(store: Driver, say: Say) -> str | None:
    """Rewrite an old file so that it can shrink step by step."""
    async with store.reading() as tx:
        mode = await one(tx, "select_vacuum_mode")
    if mode and mode["mode"]:
        return None
    say("writing the file anew")
    try:
        async with store.maintaining() as tx:
            await tx.run("set_vacuum_mode")
            await tx.run("vacuum_all")
    except StoreError as error:
        return f"The file cannot shrink before it is written anew, and that failed. Prune again. {error}"
    return None


async def _free_pages(store: Driver) -> int:
    async with store.reading() as tx:
        [pages] = await tx.fetch("select_free_pages")
        return int(pages["free"])


async def _vacuum_tables(store: Driver, say: Say) -> list[str]:
    async with store.reading() as tx:
        tables = (await read_tables(tx)).all
        keys = {row["name"]: row["key"] for row in await tx.fetch("select_primary_keys")}
    problems: list[str] = []
    for table in tables:
        say(f"vacuuming {table.name}")
        await vacuum_table(store, table.name)
        async with store.reading() as tx:
            too_large = await _is_mostly_empty(tx, table)
        if not too_large:
            continue
        say(f"writing {table.name} anew")
        try:
            await write_table_anew(store, table.name, keys[table.name])
        except StoreError as error:
            problems.append(f"Table {table.name} is mostly empty and could not be written anew. Prune again. {error}")
        else:
            await vacuum_table(store, table.name)
    return problems


async def write_table_anew(store: Driver, name: str, key: str, horizon: str | None = None) -> bool:
    """Rewrite a PostgreSQL table in key order, without deleted rows that no transaction can see; return whether rows
    deleted before `horizon` may remain. Raises `StoreError`, also if the table is locked for too long."""
    async with store.writing() as tx:
        await tx.run("wait_briefly")
        # Like VACUUM FULL, but in a transaction: the lock timeout then works through a pooler too.
        await tx.run(Sql(f'CLUSTER "{name}" USING "{key}"'))
        if horizon is None:
            return False
        [table] = await tx.fetch("select_is_held", name=f'"{name}"', horizon=horizon)
        return bool(table["held"])


async def vacuum_table(store: Driver, name: str) -> None:
    """Let PostgreSQL reuse the space of deleted rows."""
    async with store.maintaining() as tx:
        await tx.run(Sql(f'VACUUM (ANALYZE) "{name}"'))


async def _is_mostly_empty(tx: Transaction, table: StoreTable) -> bool:
    # Sizes of stored rows and of long values outside of the table, without reading these.
    [held] = await tx.fetch(
        Sql(
            f"SELECT coalesce(sum({table.size} + {_ROW_BYTES}), 0) AS bytes, "
            f"pg_total_relation_size('\"{table.name}\"') AS size "
            f'FROM "{table.name}"'
        )
    )
    return int(held["size"]) > WORTH_IT and float(held["size"]) > MOSTLY_EMPTY * float(held["bytes"])


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
    return await (_rewrite_tables(store, sorted(tables), say) if anew else _free_places(store, sorted(tables)))


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


async def _rewrite_tables(store: Driver, tables: Sequence[str], say: Say) -> list[str]:
    held: list[str] = []
    failed: dict[str, list[str]] = {}
    async with store.reading() as tx:
        keys = {row["name"]: row["key"] for row in await tx.fetch("select_primary_keys")}
    horizon = await _wait_for_readers(store, say)
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


async def _wait_for_readers(store: Driver, say: Say) -> str:
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


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """A store at one moment. `schema` is its schema version, `latest` this Longthread's. `bytes` is its size on disk;
    `free` of these bytes are unused. `tables` are sizes with indexes, in bytes; empty if SQLite cannot measure them.
    `rows` are row counts; `live` are running runs."""

    where: str
    dialect: str
    server: str
    schema: int
    latest: int
    bytes: int
    free: int
    tables: Mapping[str, int]
    rows: Mapping[str, int]
    live: int


async def status_of(store: Driver) -> StoreStatus:
    """Inspect a store, also of an older schema: counts every row and measures every table."""
    async with store.reading() as tx:
        tables = (await read_tables(tx)).all
        [server], [size] = await tx.fetch("select_server"), await tx.fetch("select_size")
        [schema] = await tx.fetch("select_schema")
        return StoreStatus(
            where=store.where,
            dialect=store.dialect,
            server=server["server"],
            schema=int(schema["version"]),
            latest=SCHEMA_VERSION,
            bytes=int(size["bytes"]),
            free=int(size["free"]),
            tables=await _sizes(tx),
            rows=await _rows(tx, tables),
            live=await _live(tx),
        )


async def size_of(store: Driver) -> int:
    """Return a store's size on disk, in bytes."""
    async with store.reading() as tx:
        [size] = await tx.fetch("select_size")
        return int(size["bytes"])


async def _live(tx: Transaction) -> int:
    [runs] = await tx.fetch("count_runs")
    return int(runs["live"])


async def _sizes(tx: Transaction) -> dict[str, int]:
    [can] = await tx.fetch("select_can_measure")
    if not can["can"]:
        return {}
    try:
        return {row["name"]: int(row["bytes"]) for row in await tx.fetch("select_table_sizes")}
    except StoreFull as error:  # so SQLite says of a page that cannot be measured: to read them nothing is written
        raise StoreDamaged(reason="a page of its file is not what SQLite writes.") from error


async def _rows(tx: Transaction, tables: Iterable[StoreTable]) -> dict[str, int]:
    return {table.name: await _count(tx, table) for table in tables}


async def _count(tx: Transaction, table: StoreTable) -> int:
    [row] = await tx.fetch(Sql(f'SELECT count(*) AS rows FROM "{table.name}"'))
    return int(row["rows"])


FRESH_SECONDS = 2.0
"""So long one look serves all who ask."""
_MOST_SECONDS = 5.0


class WriteCheck:
    """Writes a row and deletes it, in one transaction that is committed; at most every two seconds."""

    def __init__(self, store: Driver) -> None:
        self._store = store
        self._looking = asyncio.Lock()
        self._found: tuple[float, StoreError | None] | None = None

    async def expect(self) -> None:
        """Raise StoreError, which says why, if nothing can be written now."""
        async with self._looking:
            if self._found is None or time.monotonic() - self._found[0] > FRESH_SECONDS:
                self._found = time.monotonic(), await self._problem()
            problem = self._found[1]
        if problem is not None:
            raise problem

    async def _problem(self) -> StoreError | None:
        mark = f"ready/{new_id()}"
        try:
            async with asyncio.timeout(_MOST_SECONDS), self._store.writing() as tx:
                await leases.register(tx, mark)
                await leases.remove(tx, mark)
        except TimeoutError:
            return StoreBusy(seconds=f"{_MOST_SECONDS:g}")
        except StoreError as error:
            return error
        return None
