"""Another program's database, read as one snapshot and never changed."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import AsyncConnection, IsolationLevel
from psycopg.rows import dict_row

from longthread.errors import ExportFailed, ImportedUnreadable, StoreDamaged, StoreError
from longthread.store.backends.postgres_address import shown
from longthread.store.backends.postgres_transaction import PostgresTransaction
from longthread.store.backends.read_only import CHANGED_MEANWHILE, FileState
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.backends.sqlite_transaction import SqliteTransaction
from longthread.store.driver import Transaction, sentence
from longthread.store.tables import Tables, read_tables

_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://")


@dataclass(frozen=True, slots=True)
class Foreign:
    """An open source database. `connection` is that of sqlite3 or psycopg."""

    dialect: Literal["sqlite", "postgres"]
    connection: Any
    tx: Transaction
    tables: Tables


@asynccontextmanager
async def open_foreign(address: str) -> AsyncIterator[Foreign]:
    """Open a SQLite file or a `postgresql://` URL; the block reads one snapshot. Raises `StoreError`."""
    async with AsyncExitStack() as stack:
        with import_errors():
            opening = _open_postgres(address) if _POSTGRES.match(address) else _open_sqlite(_file(address))
            foreign = await stack.enter_async_context(opening)
        yield foreign


@asynccontextmanager
async def change_foreign(address: str) -> AsyncIterator[Foreign]:
    """Open a SQLite file or a `postgresql://` URL to write to; the block is one transaction. Raises `StoreError`."""
    async with AsyncExitStack() as stack:
        with export_errors():
            opening = _change_postgres(address) if _POSTGRES.match(address) else _change_sqlite(_file(address))
            foreign = await stack.enter_async_context(opening)
        yield foreign


@contextmanager
def import_errors() -> Iterator[None]:
    """Raise database errors as errors of the source: they would otherwise be taken for this store's."""
    try:
        yield
    except StoreDamaged as error:
        raise ImportedUnreadable(reason=error.reason) from error
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        raise ImportedUnreadable(reason=_reason(error)) from error


@contextmanager
def export_errors() -> Iterator[None]:
    """Raise database errors as errors of the other database. Those of this store are Longthread's own by then."""
    try:
        yield
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        raise ExportFailed(reason=_reason(error)) from error


def _file(address: str) -> Path:
    if "://" in address:
        raise StoreError(reason="it is neither a file nor a postgresql:// address.")
    path = Path(address).expanduser()
    if not path.is_file():
        raise StoreError(reason="it is not a file." if path.exists() else "there is no such file.")
    # SQLite would not say that it may not be read. To open it here by other means would drop the locks of this
    # process's SQLite connections to it.
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return path.resolve()


@asynccontextmanager
async def _open_sqlite(path: Path) -> AsyncIterator[Foreign]:
    state = FileState.of(path)
    connection, as_it_stands = await _snapshot(path, state)
    try:
        tx = SqliteTransaction(connection)
        yield Foreign("sqlite", connection.database, tx, await read_tables(tx))
    finally:
        await connection.close()
    if as_it_stands and not state.is_of(path):
        raise StoreError(reason=f"{path}: {CHANGED_MEANWHILE}")


@asynccontextmanager
async def _change_sqlite(path: Path) -> AsyncIterator[Foreign]:
    connection = await StoreConnection.open(path)
    try:
        await connection.execute("PRAGMA busy_timeout = 10000")
        await connection.execute("BEGIN IMMEDIATE")
        tx = SqliteTransaction(connection)
        yield Foreign("sqlite", connection.database, tx, await read_tables(tx))
        await connection.execute("COMMIT")
    finally:
        await connection.close()  # which rolls back what was not committed


async def _snapshot(path: Path, state: FileState) -> tuple[StoreConnection, bool]:
    """Begin a snapshot; return its connection, and whether the file is opened as immutable."""
    uri = f"{path.as_uri()}?mode=ro"
    try:
        return await _begun(uri), False
    except sqlite3.OperationalError as error:
        # Not where it is locked, or in the middle of a change that a journal would undo.
        if error.sqlite_errorcode not in _NO_SHM:
            raise
        if state.wal:
            raise StoreError(reason=_IN_WAL) from error
    return await _begun(f"{uri}&immutable=1"), True


async def _begun(uri: str) -> StoreConnection:
    async with AsyncExitStack() as opened:
        connection = await StoreConnection.open(uri, uri=True)
        opened.push_async_callback(connection.close)
        await connection.execute("BEGIN")
        await connection.execute("SELECT count(*) FROM sqlite_master")  # the snapshot begins, if it is a database
        opened.pop_all()  # it stays open
    return connection


_NO_SHM = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY_CANTINIT,
    sqlite3.SQLITE_READONLY_DIRECTORY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_WRITE,
)
"""SQLite's errors in WAL mode if it cannot create or extend a file next to the database, also for lack of space."""
_IN_WAL = (
    "what was written last is in its -wal file, and to read that one must be able to write to its folder. Copy both "
    "files to a folder of your own."
)


@asynccontextmanager
async def _open_postgres(url: str) -> AsyncIterator[Foreign]:
    async with await _connected(url) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await connection.set_read_only(True)
        async with connection.transaction():
            tx = PostgresTransaction(connection, reads=True)
            yield Foreign("postgres", connection, tx, await read_tables(tx))


@asynccontextmanager
async def _change_postgres(url: str) -> AsyncIterator[Foreign]:
    async with await _connected(url) as connection, connection.transaction():
        tx = PostgresTransaction(connection, reads=False, alone=True)
        yield Foreign("postgres", connection, tx, await read_tables(tx))


async def _connected(url: str) -> AsyncConnection[dict[str, Any]]:
    # Through a pooler too: nothing is prepared, and everything is one transaction.
    plain = _POSTGRES.sub("postgresql://", url, count=1)
    return await AsyncConnection.connect(
        plain, autocommit=True, prepare_threshold=None, row_factory=dict_row, connect_timeout=10
    )


def shown_address(address: str) -> str:
    """Return an address for people: a URL without its password."""
    try:
        if _POSTGRES.match(address):
            return shown(address)
    except StoreError:
        pass
    scheme, separator, _ = address.partition("://")
    return f"{scheme}://…" if separator else address


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if "not a database" in text:
        text = "it is not a SQLite database"
    return sentence(text)
