"""A backup: one consistent copy of a whole store in a SQLite file, with the counts and hashes that prove it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from longthread.errors import BackupDamaged, InvalidInput, StoreError
from longthread.model.catalog import BUILTIN
from longthread.store.driver import Driver, Row, Transaction, one
from longthread.store.leases import left
from longthread.store.log import now
from longthread.store.queries import Sql
from longthread.store.tables import ENTRIES, RUNS, THREADS, StoreColumn, StoreTable, Tables, canonical, read_tables
from longthread.store.transfer.threads import (
    PAGE_BYTES,
    TableRow,
    TransferProgress,
    count_rows,
    count_threads,
    read_rows,
    size_of,
    thread_ids,
    write_rows,
)

_LEARNED = frozenset({"gateway_salt", "context_windows", "model_protocols"})
"""Tables that a server fills before anybody has asked: a restored store has the backup's rows of them."""
_BUILT_IN = frozenset((f"{kind}s", id_) for kind, id_ in BUILTIN)


@dataclass(frozen=True, slots=True)
class TableDigest:
    """How many rows a table of a backup has, and the SHA-256 of their values in order."""

    rows: int
    sha256: str


Digests = Mapping[str, TableDigest]
"""By table. Empty tables are left out."""


@dataclass(frozen=True, slots=True)
class BackupContents:
    """What a backup holds."""

    made_at: str
    threads: int
    tables: Digests

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


async def write_backup(source: Driver, file: Driver, progress: TransferProgress) -> BackupContents:
    """Copy one snapshot of `source` into `file`, a new SQLite store; read it back, and note its counts and hashes.

    The source may be written to meanwhile. Raises `StoreError`: `file` is of no use then.
    """
    made_at = now()
    async with source.reading() as here, file.writing() as there:
        tables = await _read_pair(here, there, source, file)
        threads = await count_threads(here)
        read = await _copy(here, there, tables, progress)
        await _expect_all(here, read.digests, source.where)
    async with file.reading() as there:
        written, noted = _Digester(tables.judge), _Digester()
        async for name, row in _each_row(there, tables.written, _silent):
            written.add(name, row)
            noted.add(name, row)
        await _expect_all(there, noted.digests, file.where)
    _expect_equal(read.digests, written.digests, file.where)
    contents = BackupContents(made_at, threads, noted.digests)
    async with file.writing() as there:
        await there.run("create_backup")
        await there.run("create_backup_tables")
        await there.run("insert_backup", made_at=made_at, threads=threads)
        for name, table in contents.tables.items():
            await there.run("insert_backup_table", name=name, rows=table.rows, sha256=table.sha256)
    return contents


async def check_backup(file: Driver) -> BackupContents:
    """Compare a backup with the counts and hashes that it was written with, and return what it holds.

    Raises:
        InvalidInput: the file is a store, and no backup.
        BackupDamaged: it is not as it was written.
    """
    async with file.reading() as tx:
        if not await tx.fetch("select_backup_is_there"):
            raise InvalidInput(
                reason=f"{file.where} is no backup. `longthread db copy {file.where} TO` copies any store."
            )
        about = await one(tx, "select_backup")
        noted = {row["name"]: TableDigest(row["rows"], row["sha256"]) for row in await tx.fetch("select_backup_tables")}
        found = _Digester()
        async for name, row in _each_row(tx, await read_tables(tx, whole=True), _silent):
            found.add(name, row)
        differing = {*_differing(noted, found.digests), *await _missed(tx, found.digests)}
        if about is None or about["threads"] != await count_threads(tx):
            differing.add(THREADS)
    if about is None or differing:
        raise BackupDamaged(where=file.where, tables=", ".join(sorted(differing)))
    return BackupContents(about["made_at"], about["threads"], noted)


async def restore_backup(file: Driver, target: Driver, progress: TransferProgress) -> None:
    """Write a backup that was checked to `target`, which nothing was stored in, and compare both, in one transaction:
    all of it is there afterwards, or nothing.

    Raises:
        InvalidInput: something is stored in `target`.
        StoreError: a database failed, or the target has not become what the backup is.
    """
    async with file.reading() as here, target.writing() as there:
        tables = await _read_pair(here, there, file, target)
        await _empty(there, tables.written, target.where)
        read = await _copy(here, there, tables, progress)
        await _expect_all(here, read.digests, file.where)
        written = _Digester(tables.judge)
        async for name, row in _each_row(there, tables.written, _silent):
            written.add(name, row)
        await _expect_all(there, written.digests, target.where)
        _expect_equal(read.digests, written.digests, target.where)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The tables of the store that is read and of the one that is written, each in its own SQL. `judge` says which
    values are equal, by its columns: PostgreSQL's, which knows all types, where there is one."""

    read: Tables
    written: Tables
    judge: Tables


async def _read_pair(here: Transaction, there: Transaction, source: Driver, target: Driver) -> _Pair:
    """Raises `StoreError` if the stores do not have the same tables and columns."""
    read, written = await read_tables(here, whole=True), await read_tables(there, whole=True)
    if read.shape != written.shape:
        raise StoreError(reason=f"{source.where} and {target.where} do not have the same tables.")
    return _Pair(read, written, written if target.dialect == "postgres" else read)


async def _copy(here: Transaction, there: Transaction, tables: _Pair, progress: TransferProgress) -> _Digester:
    """Write all rows that are read, and return their digests."""
    digester, batch, size, current = _Digester(tables.judge), list[Row](), 0, ""
    async for name, row in _each_row(here, tables.read, progress):
        if name != current or size > PAGE_BYTES:
            await _write(there, tables.written, current, batch)
            batch, size, current = [], 0, name
        digester.add(name, row)
        batch.append(row)
        size += size_of(row)
    await _write(there, tables.written, current, batch)
    return digester


async def _write(tx: Transaction, tables: Tables, name: str, rows: list[Row]) -> None:
    if rows:
        await write_rows(tx, tables[name], rows)


async def _each_row(tx: Transaction, tables: Tables, progress: TransferProgress) -> AsyncIterator[TableRow]:
    """Yield all rows of a backup or for one, each after the rows that it refers to, in the same order on every
    backend."""
    of_threads = [table for table in tables.of_backups if table.thread]
    shared = [table for table in tables.of_backups if not table.thread]
    for table in (each for each in shared if THREADS not in each.needs):
        async for row in _rows_of(tx, table):
            yield table.name, row
    done, total, last = 0, await count_threads(tx), None
    while page := await thread_ids(tx, after=last):
        for thread_id in page:
            progress(done, total, thread_id)
            filled = await count_rows(tx, of_threads, thread_id)
            for table in (each for each in of_threads if each.name in filled):
                async for row in _rows_of(tx, table, thread_id):
                    yield table.name, row
            done += 1
        last = page[-1]
    progress(done, total, "")
    for table in (each for each in shared if THREADS in each.needs):
        async for row in _rows_of(tx, table):
            yield table.name, row


async def _rows_of(tx: Transaction, table: StoreTable, thread_id: str | None = None) -> AsyncIterator[Row]:
    """Yield a table's rows, without leases of runs and without what every store has."""
    async for row in read_rows(tx, table, thread_id):
        if not _is_built_in(table.name, row):
            yield left(row) if table.name == RUNS else row


def _is_built_in(name: str, row: Row) -> bool:
    return (name, row.get("id")) in _BUILT_IN


async def _empty(tx: Transaction, tables: Tables, where: str) -> None:
    """Delete what a server has learned. Raises `InvalidInput` if anything else is stored."""
    for table in (each for each in tables.of_backups if not each.thread or each.name == THREADS):
        if table.name in _LEARNED:
            await tx.run(Sql(f'DELETE FROM "{table.name}"'))
        elif await _is_used(tx, table):
            raise InvalidInput(
                reason=f"{where} already has rows of {table.name}. A backup is restored to a new store: give another "
                "one with --database, or `longthread db copy` adds what that one lacks."
            )


async def _is_used(tx: Transaction, table: StoreTable) -> bool:
    if table.name == THREADS:
        return await count_threads(tx) > 0
    return await anext(_rows_of(tx, table), None) is not None


class _Digester:
    """Hashes rows by table. With `judge`, two spellings of one value hash alike."""

    def __init__(self, judge: Tables | None = None) -> None:
        self._columns = {table.name: table.by_name for table in judge.all} if judge else {}
        self._found: dict[str, tuple[int, Any]] = {}

    def add(self, name: str, row: Row) -> None:
        rows, sha256 = self._found.get(name) or (0, hashlib.sha256())
        columns = self._columns.get(name)
        for column, value in row.items():
            sha256.update(_encode(_spell(columns[column], value) if columns else value))
        self._found[name] = rows + 1, sha256

    @property
    def digests(self) -> Digests:
        return {name: TableDigest(rows, sha256.hexdigest()) for name, (rows, sha256) in sorted(self._found.items())}


def _encode(value: Any) -> bytes:
    """Return a value as bytes, with its kind and length, so that no two rows have the same."""
    given = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
    return b"%d:%d:" % (isinstance(value, bytes), len(given)) + given


def _spell(column: StoreColumn, value: Any) -> Any:
    """Return the one spelling that all equal values share; PostgreSQL writes JSON's 1e2 as 100."""
    if column.form != "json" or value is None:
        return canonical(column, value)
    try:
        read = json.loads(value, parse_float=_spell_number, parse_int=_spell_number)
        return json.dumps(read, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (ValueError, RecursionError, ArithmeticError):
        return value


def _spell_number(text: str) -> list[str]:
    return [str(Decimal(text).normalize())]


def _expect_equal(read: Digests, written: Digests, where: str) -> None:
    if differing := _differing(read, written):
        raise StoreError(reason=f"what was written to {where} differs from what was read: {', '.join(differing)}.")


async def _expect_all(tx: Transaction, read: Digests, where: str) -> None:
    """Raise `StoreError` if the store has more threads or entries than were read thread by thread."""
    for name, stored in (await _missed(tx, read)).items():
        raise StoreError(reason=f"{where} has {stored} rows of {name}, and {_count(read, name)} of them can be read.")


async def _missed(tx: Transaction, read: Digests) -> dict[str, int]:
    """Return how many threads and entries are stored, where that is not as many as were read."""
    stored = {name: await _count_stored(tx, name) for name in (THREADS, ENTRIES)}
    return {name: count for name, count in stored.items() if count != _count(read, name)}


async def _count_stored(tx: Transaction, name: str) -> int:
    [row] = await tx.fetch(Sql(f'SELECT count(*) AS stored FROM "{name}"'))
    return int(row["stored"])


def _count(digests: Digests, name: str) -> int:
    return digests[name].rows if name in digests else 0


def _differing(one_side: Digests, other: Digests) -> list[str]:
    return sorted(name for name in {*one_side, *other} if one_side.get(name) != other.get(name))


def _silent(done: int, total: int, what: str) -> None:
    """Take progress that is not shown."""
