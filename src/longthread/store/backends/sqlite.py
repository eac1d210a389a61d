"""The embedded backend: SQLite in WAL mode."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from longthread.errors import StoreUnavailable
from longthread.loop_bridge import to_the_end
from longthread.metrics import STORE_SECONDS
from longthread.store.backends.sqlite_connection import (
    BUSY_SECONDS,
    ERRORS,
    StoreConnection,
    code_of,
    failure,
    reason_of,
)
from longthread.store.backends.sqlite_transaction import READ, WRITE, SqliteTransaction
from longthread.store.schema import APPLICATION_ID, how_to_import, pending, schema

READERS = 3
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
_PATIENCE = f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}"
DEDICATED_SECONDS = 2.0
"""How long a statement of a dedicated connection waits for other processes that write."""


class SqliteDriver:
    """One writer connection and a few readers, each with its own thread."""

    dialect = "sqlite"

    signals = None

    def __init__(self, path: Path, writer: StoreConnection, readers: list[StoreConnection], found: int) -> None:
        self._path = path
        self.found_version = found
        self._writer = writer
        self._writing = asyncio.Lock()
        # The one that was used last comes first: another one would read the schema again, for as long as many queries.
        self._readers: asyncio.LifoQueue[StoreConnection] = asyncio.LifoQueue()
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
                await asyncio.to_thread(path.parent.mkdir, 0o700, parents=True, exist_ok=True)
                writer = await _connect(path, opened, refuse_foreign if creates and migrates else require_store)
                found = await (_migrate if migrates else schema_version)(writer, str(path))
                await writer.apart(_be_impatient)
                readers = [await _connect_reader(path, opened) for _ in range(READERS)]
                opened.pop_all()  # they stay open
        except (*ERRORS, OSError) as error:
            remedy = _REMEDY if code_of(error) in _UNWRITABLE and await asyncio.to_thread(path.is_file) else ""
            raise StoreUnavailable(where=path, reason=reason_of(error) + remedy) from error
        return cls(path, writer, readers, found)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[SqliteTransaction]:
        with STORE_SECONDS.time_block("read"):
            connection = await self._readers.get()
            try:
                tx = SqliteTransaction(connection, READ)
                try:
                    yield tx
                finally:
                    await tx.end()
            finally:
                self._readers.put_nowait(connection)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[SqliteTransaction]:
        with STORE_SECONDS.time_block("write"):
            async with self._writing:
                tx = SqliteTransaction(self._writer, WRITE)
                try:
                    yield tx
                    await tx.commit()
                finally:
                    await tx.end()

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

    @asynccontextmanager
    async def dedicated(self) -> AsyncIterator[SqliteTransaction]:
        try:
            connection = await StoreConnection.open(self._path, _prepare_dedicated)
            try:
                yield SqliteTransaction(connection)
            finally:
                await to_the_end(connection.close())
        except sqlite3.Error as error:
            raise failure(error) from error

    async def close(self) -> None:
        await _close(self._all)
        self._all = []


def _be_impatient(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA busy_timeout=0")


async def _connect(
    path: Path, opened: AsyncExitStack, first: Callable[[StoreConnection, Path], Awaitable[None]]
) -> StoreConnection:
    """Return a connection that may write; `first` looks at the file before anything is changed."""
    connection = await StoreConnection.open(path, prepare)
    opened.push_async_callback(connection.close)
    await first(connection, path)
    await _patiently(connection, _SETTLE)
    return connection


async def _connect_reader(path: Path, opened: AsyncExitStack) -> StoreConnection:
    """Return a connection that only reads. It reads the schema when it is first used."""
    connection = await StoreConnection.open(path, _prepare_reader)
    opened.push_async_callback(connection.close)
    return connection


def prepare(database: sqlite3.Connection) -> None:
    """Set what every connection needs. Neither statement reads the file."""
    database.execute(_PATIENCE)
    # SQLite's `lower` handles only ASCII; a search must fold its text and the columns alike.
    database.create_function("lower", 1, _lower, deterministic=True)


def _prepare_reader(database: sqlite3.Connection) -> None:
    prepare(database)
    database.execute("PRAGMA query_only=ON")


def _prepare_dedicated(database: sqlite3.Connection) -> None:
    prepare(database)
    database.execute(f"PRAGMA busy_timeout={DEDICATED_SECONDS * 1000:.0f}")
    database.execute("PRAGMA foreign_keys=ON")
    database.execute("PRAGMA synchronous=NORMAL")  # it does not wait for the disk


async def _patiently(connection: StoreConnection, statements: Iterable[str]) -> None:
    """Retry statements that SQLite refuses at once while another process has the file, such as the switch to WAL."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            await connection.apart(lambda database: [database.execute(sql).fetchall() for sql in statements])
            return
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        await asyncio.sleep(0.01)


def _lower(value: Any) -> str | None:
    """SQL's `lower` for all of Unicode."""
    return None if value is None else str(value).lower()


async def refuse_foreign(connection: StoreConnection, path: Path) -> None:
    """Raise `StoreUnavailable` for another program's database, and what `schema_version` raises: even the switch to WAL
    would change the file."""
    mark = await _scalar(connection, "PRAGMA application_id")
    tables = await _scalar(connection, "SELECT count(*) FROM sqlite_master")
    if tables and mark != APPLICATION_ID:
        rows = await connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        raise StoreUnavailable(
            where=path, reason=f"it is another program's database.{how_to_import(row[0] for row in rows)}"
        )
    await schema_version(connection, str(path))


async def require_store(connection: StoreConnection, path: Path) -> None:
    """Raise if the file is not yet a store."""
    await refuse_foreign(connection, path)
    if not await _scalar(connection, "PRAGMA user_version"):
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
            await connection.apart(partial(_run_script, script=schema("sqlite", part)))
            await connection.execute(f"PRAGMA user_version = {reached}")
        await connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        await connection.apart(sqlite3.Connection.commit)
        return version
    finally:
        await connection.rollback()  # what was not committed


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
