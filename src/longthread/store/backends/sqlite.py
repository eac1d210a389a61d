"""The embedded backend: SQLite in WAL mode."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from longthread.errors import (
    NotAsExpected,
    RowDamaged,
    StoreClosed,
    StoreConflict,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    ValueRefused,
)
from longthread.store.backends.migrate import BUNDLED, pending
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.completion import to_the_end
from longthread.store.driver import CHANGED, QueryCall, Row, sentence, storable
from longthread.store.old_bundles import TAKE, insertion, unpacked
from longthread.store.queries import queries
from longthread.store.schema import schema

BUSY_SECONDS = 30.0
"""A writer's timeout for another process's transaction."""
LONGEST_PAUSE = 0.025
"""Longest interval in seconds between retries."""
READERS = 3
FEW = 16
"""Up to this many rows are written in the calling thread."""
MANY = 64
"""A query with a limit up to this many rows is quick."""
SMALL = 65_536
"""A statement is quick up to this many characters or bytes per value."""
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""A statement's errors; the latter where SQLite quotes damaged text in its message."""
_SETTLE = (
    # The first two are settled for good when something is in the file. Messages of one or two kilobytes fill smaller
    # pages so badly that a file of them is a quarter larger.
    "PRAGMA page_size=8192",
    "PRAGMA auto_vacuum=INCREMENTAL",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
)
_FAILED = "a statement of the transaction failed; nothing of it was written."
_PATIENCE = f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}"
QUICK_SECONDS = 0.0015
"""Average commit time up to which commits run in the calling thread."""
ALONE_SECONDS = 0.008
"""The same without other or waiting transactions: threads that wait for each other take longer."""
APPLICATION_ID = 0x4C4F4E47
"""Marks a file as Longthread's own: "LONG"."""

_Key = tuple[str, frozenset[tuple[str, Any]]]
"""A query and its values."""


class SqliteTransaction:
    """A transaction on one connection."""

    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection
        self._queries = queries("sqlite")
        self._asked: dict[_Key, tuple[str, Mapping[str, Any]]] = {}
        self._found: dict[_Key, list[Row]] = {}
        self.failed = False

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        sql, given = self._queries[query], storable(values)
        self._expect_sound()
        try:
            if self._is_quick(query, given):
                return _rows(self._connection.database, sql, given)
            if (key := _key(query, given)) in self._asked:
                await self._find_asked()
            if key in self._found:
                return self._found.pop(key)
            return await self._connection.apart(lambda database: _rows(database, sql, given))
        except ERRORS as error:
            raise self._told(error) from error

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        return [await self.fetch(query, **values) for query, values in asked]

    async def ahead(self, *asked: QueryCall) -> None:
        """Fetch all queries with the first one: each hand-over to the connection's thread costs a wait."""
        for query, values in asked:
            given = storable(values)
            if not self._is_quick(query, given):
                self._asked[_key(query, given)] = self._queries[query], given

    async def _find_asked(self) -> None:
        asked, self._asked = self._asked, {}
        found = await self._connection.apart(lambda database: [_rows(database, *each) for each in asked.values()])
        self._found |= zip(asked, found, strict=True)

    async def run(self, query: str, **values: Any) -> int:
        sql, given = self._queries[query], storable(values)
        self._expect_sound()
        self._found.clear()
        try:
            if self._is_quick(query, given):
                return self._connection.database.execute(sql, given).rowcount
            return await self._connection.apart(lambda database: database.execute(sql, given).rowcount)
        except ERRORS as error:
            raise self._told(error) from error

    async def later(self, query: str, **values: Any) -> None:
        await self.run(query, **values)

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        if len(await self.fetch(query, **values)) != rows:
            self.failed = True
            raise NotAsExpected(reason=CHANGED)

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = [storable(row) for row in rows]
        if len(given) <= FEW and all(self._is_quick(query, values) for values in given):
            for values in given:
                await self.run(query, **values)
            return
        sql = self._queries[query]
        self._expect_sound()
        self._found.clear()
        try:
            await self._connection.apart(lambda database: database.executemany(sql, given).close())
        except ERRORS as error:
            raise self._told(error) from error

    def _is_quick(self, query: str, values: Mapping[str, Any]) -> bool:
        if self._connection.broken_off or query not in self._queries.quick or values.get("limit", 0) > MANY:
            return False
        # A loop: this runs for each statement, and a generator would take most of the time.
        for value in values.values():
            kind = type(value)
            if (kind is str or kind is bytes) and len(value) > SMALL:
                return False
        return True

    def _expect_sound(self) -> None:
        if self.failed:
            raise StoreError(reason=_FAILED)

    def _told(self, error: Exception) -> StoreError:
        """Return a database error as a store error. SQLite may have ended the transaction already."""
        self.failed = True
        return failure(error)


class SqliteDriver:
    """One writer connection and a few readers, each with its own thread."""

    dialect = "sqlite"

    def __init__(self, path: Path, writer: StoreConnection, readers: list[StoreConnection], found: int) -> None:
        self._path = path
        self.found_version = found
        self._writer = writer
        self._writing = asyncio.Lock()
        self._commit_seconds = QUICK_SECONDS
        self._users = 0
        self._readers: asyncio.Queue[StoreConnection] = asyncio.Queue()
        self._all = [writer, *readers]
        for reader in readers:
            self._readers.put_nowait(reader)

    @property
    def where(self) -> str:
        return str(self._path)

    @classmethod
    async def open(cls, path: Path, *, creates: bool = True, migrates: bool = True) -> SqliteDriver:
        """Open or create the database file and migrate its schema.

        Args:
            creates, migrates: see `open_store`.

        Raises:
            StoreUnavailable: the path cannot be used; the message says why.
            StoreTooNew: a newer Longthread wrote it.
        """
        if await asyncio.to_thread(path.is_dir):
            raise StoreUnavailable(where=path, reason="it is a folder. Name a file in it.")
        try:
            async with AsyncExitStack() as opened:
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = await _connect(path, opened, refuse_foreign if creates and migrates else require_store)
                found = await (_migrate if migrates else schema_version)(writer, str(path))
                _be_impatient(writer.database)
                readers = [await _connect_reader(path, opened) for _ in range(READERS)]
                opened.pop_all()  # they stay open
        except (*ERRORS, OSError) as error:
            remedy = _REMEDY if _code(error) in _UNWRITABLE and await asyncio.to_thread(path.is_file) else ""
            raise StoreUnavailable(where=path, reason=reason_of(error) + remedy) from error
        return cls(path, writer, readers, found)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[SqliteTransaction]:
        self._users += 1
        try:
            connection = await self._readers.get()
            try:
                try:
                    connection.database.execute("BEGIN")
                    yield SqliteTransaction(connection)
                finally:
                    await connection.rollback()
            finally:
                self._readers.put_nowait(connection)
        except sqlite3.Error as error:
            raise failure(error) from error
        finally:
            self._users -= 1

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[SqliteTransaction]:
        self._users += 1
        try:
            async with self._writing:
                try:
                    await self._begin()
                    tx = SqliteTransaction(self._writer)
                    yield tx
                    if tx.failed:
                        raise StoreError(reason=_FAILED)
                    await self._commit()
                finally:
                    await self._writer.rollback()  # what was not committed
        except sqlite3.Error as error:
            raise failure(error) from error
        finally:
            self._users -= 1

    @asynccontextmanager
    async def maintaining(self) -> AsyncIterator[SqliteTransaction]:
        async with self._writing:
            try:
                await self._writer.execute(_PATIENCE)
                try:
                    yield SqliteTransaction(self._writer)
                except asyncio.CancelledError:
                    self._writer.interrupt()  # it may take as long as the file is large
                    raise
                finally:
                    await self._writer.rollback()
                    await to_the_end(self._writer.apart(_be_impatient))
            except sqlite3.Error as error:
                raise failure(error) from error

    async def _commit(self) -> None:
        """Commit in this thread while commits are fast or nothing else could run: a commit waits for the disk."""
        if self._commit_seconds < (QUICK_SECONDS if self._users > 1 else ALONE_SECONDS):
            taken = _committed(self._writer.database)
        else:
            taken = await self._writer.apart(_committed)
        self._commit_seconds += (taken - self._commit_seconds) / 4

    async def _begin(self) -> None:
        """Begin to write. This is slow only while another process writes."""
        # IMMEDIATE: a transaction that reads before it writes must not find the database changed in between.
        until, pause = time.monotonic() + BUSY_SECONDS, 0.001
        while True:
            try:
                self._writer.database.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def close(self) -> None:
        await _close(self._all)
        self._all = []


def _key(query: str, values: Mapping[str, Any]) -> _Key:
    return query, frozenset(values.items())


def _rows(database: sqlite3.Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
    cursor = database.execute(sql, values)
    names = [column[0] for column in cursor.description or ()]
    return list(map(dict, map(zip, repeat(names), cursor.fetchall())))  # in one go: there may be thousands


def _committed(database: sqlite3.Connection) -> float:
    """Commit; return the seconds it took."""
    started = time.perf_counter()
    database.commit()
    return time.perf_counter() - started


def _be_impatient(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA busy_timeout=0")


async def _connect(
    path: Path, opened: AsyncExitStack, first: Callable[[StoreConnection, Path], Awaitable[None]]
) -> StoreConnection:
    """Return a connection that may write; `first` looks at the file before anything is changed."""
    connection = await StoreConnection.open(path)
    opened.push_async_callback(connection.close)
    await prepare(connection)
    await first(connection, path)
    await _patiently(connection, _SETTLE)
    return connection


async def _connect_reader(path: Path, opened: AsyncExitStack) -> StoreConnection:
    """Return a connection that only reads. It reads the schema when it is first used."""
    connection = await StoreConnection.open(path)
    opened.push_async_callback(connection.close)
    await prepare(connection)
    connection.database.execute("PRAGMA query_only=ON")
    return connection


async def prepare(connection: StoreConnection) -> None:
    """Set what every connection needs. Neither statement reads the file."""
    connection.database.execute(_PATIENCE)
    # SQLite's `lower` handles only ASCII; a search must fold its text and the columns alike.
    connection.database.create_function("lower", 1, _lower, deterministic=True)


async def _patiently(connection: StoreConnection, statements: Iterable[str]) -> None:
    """Retry statements that SQLite refuses at once while another process has the file, such as the switch to WAL."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            await connection.apart(lambda database: [database.execute(sql).fetchall() for sql in statements])
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        await asyncio.sleep(0.01)


def _lower(value: Any) -> str | None:
    """SQL's `lower` for all of Unicode."""
    return None if value is None else str(value).lower()


async def refuse_foreign(connection: StoreConnection, path: Path) -> None:
    """Raise `StoreUnavailable` for another program's database: even the switch to WAL would change it."""
    mark = await _scalar(connection, "PRAGMA application_id")
    tables = await _scalar(connection, "SELECT count(*) FROM sqlite_master")
    if tables and mark != APPLICATION_ID:
        raise StoreUnavailable(where=path, reason="it is another program's database.")


async def require_store(connection: StoreConnection, path: Path) -> None:
    """Raise if the file is not yet a store."""
    await refuse_foreign(connection, path)
    if not await schema_version(connection, str(path)):
        raise StoreUnavailable(where=path, reason="there is none yet. `longthread db upgrade` makes one.")


async def schema_version(connection: StoreConnection, where: str) -> int:
    """Return the schema version, 0 if there is none. Raises `StoreTooNew`, or `StoreUnavailable` if too old."""
    version = await _scalar(connection, "PRAGMA user_version")
    pending(version, where)
    return version


async def _scalar(connection: StoreConnection, sql: str) -> int:
    [row] = await connection.execute(sql)
    return int(row[0])


async def _migrate(connection: StoreConnection, where: str) -> int:
    """Migrate the schema; return the version found."""
    version = await schema_version(connection, where)
    if not pending(version, where):
        return version
    await connection.execute("BEGIN IMMEDIATE")
    try:
        version = await _scalar(connection, "PRAGMA user_version")
        for reached, part in pending(version, where):
            if part == BUNDLED:
                await connection.apart(_unpack_bundles)
            await connection.apart(partial(_run_script, script=schema("sqlite", part)))
            await connection.execute(f"PRAGMA user_version = {reached}")
        await connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        await connection.apart(sqlite3.Connection.commit)
        return version
    finally:
        await connection.rollback()  # what was not committed


def _unpack_bundles(database: sqlite3.Connection) -> None:
    while bundles := _rows(database, TAKE, {}):
        for row in chain.from_iterable(map(unpacked, bundles)):
            database.execute(insertion(row, ":{}"), row)


def _run_script(database: sqlite3.Connection, script: str) -> None:
    for statement in _statements(script):
        database.execute(statement).fetchall()


def _statements(script: str) -> Iterable[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


async def _close(connections: Iterable[StoreConnection]) -> None:
    for connection in connections:
        await connection.close()


_FAILURES: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
    sqlite3.SQLITE_CONSTRAINT: ValueRefused,
    sqlite3.SQLITE_MISMATCH: ValueRefused,
}


_UNWRITABLE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
_REMEDY = " To read it as it is, use --read-only (LONGTHREAD_READ_ONLY=1)."
_NOT_UTF8 = "Could not decode to UTF-8"
_CLOSED = "closed database"
_NOT_UNIQUE = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID)


def failure(error: Exception) -> StoreError:
    """Return a statement's error as a store error."""
    if getattr(error, "sqlite_errorcode", None) in _NOT_UNIQUE:
        return StoreConflict(reason=reason_of(error))
    if isinstance(error, sqlite3.ProgrammingError) and _CLOSED in str(error):
        return StoreClosed()
    kind = _FAILURES.get(_code(error), StoreError)
    # Text that is not UTF-8 has no code: only a broken disk writes it.
    damaged = isinstance(error, UnicodeDecodeError) or _NOT_UTF8 in str(error)
    return (RowDamaged if damaged else kind)(reason=reason_of(error))


def _code(error: Exception) -> int:
    """Return SQLite's primary result code; 0 for Python's own errors."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def reason_of(error: Exception) -> str:
    """Return an error's meaning, for people."""
    text = str(error)
    if text.startswith(_NOT_UTF8):
        return sentence(text.partition(" with text ")[0])
    if isinstance(error, UnicodeDecodeError):
        return "the database disk image is malformed: the file was damaged by something else. Restore a backup."
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"another process held its lock for more than {BUSY_SECONDS:.0f} seconds."
        case sqlite3.SQLITE_NOTADB:
            return "the file is not a Longthread database."
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return f"{text}: this user may not write to the file or to its folder."
        case sqlite3.SQLITE_IOERR:
            return f"{text}: its disk is full or failing. Nothing of this was written."
        case sqlite3.SQLITE_CORRUPT:
            return f"{text}: the file was damaged by something else. Restore a backup."
    return sentence(text)
