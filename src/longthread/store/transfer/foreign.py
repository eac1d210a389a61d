"""Another program's database, read as one snapshot and never changed, and what an import takes from its tables."""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import psycopg
from psycopg import AsyncConnection, IsolationLevel
from psycopg.rows import dict_row

from longthread.errors import ExportFailed, ImportedUnreadable, LongthreadError, StoreDamaged, StoreError
from longthread.model.entry import Draft
from longthread.store.backends.postgres import show_address
from longthread.store.backends.postgres_transaction import PostgresTransaction
from longthread.store.backends.read_only import CHANGED_MEANWHILE, FileState
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.backends.sqlite_transaction import SqliteTransaction
from longthread.store.driver import Row, Transaction, sentence
from longthread.store.queries import Sql
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
async def open_foreign(address: str, refusal: Callable[..., LongthreadError] | None = None) -> AsyncIterator[Foreign]:
    """Open a SQLite file or a `postgresql://` URL; the block reads one snapshot. Raises `StoreError`, or the `refusal`
    with the address and the reason if it cannot be opened."""
    async with AsyncExitStack() as stack:
        try:
            with import_errors():
                opening = _open_postgres(address) if _POSTGRES.match(address) else _open_sqlite(_file(address))
                foreign = await stack.enter_async_context(opening)
        except StoreError as error:
            if refusal is None:
                raise
            raise refusal(where=shown_address(address), reason=error.reason) from error
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
    async with await _connect(url) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await connection.set_read_only(True)
        async with connection.transaction():
            tx = PostgresTransaction(connection, reads=True)
            yield Foreign("postgres", connection, tx, await read_tables(tx))


@asynccontextmanager
async def _change_postgres(url: str) -> AsyncIterator[Foreign]:
    async with await _connect(url) as connection, connection.transaction():
        tx = PostgresTransaction(connection, reads=False, alone=True)
        yield Foreign("postgres", connection, tx, await read_tables(tx))


async def _connect(url: str) -> AsyncConnection[dict[str, Any]]:
    # Through a pooler too: nothing is prepared, and everything is one transaction.
    plain = _POSTGRES.sub("postgresql://", url, count=1)
    return await AsyncConnection.connect(
        plain, autocommit=True, prepare_threshold=None, row_factory=dict_row, connect_timeout=10
    )


def shown_address(address: str) -> str:
    """Return an address for people: a URL without its password."""
    try:
        if _POSTGRES.match(address):
            return show_address(address)
    except StoreError:
        pass
    scheme, separator, _ = address.partition("://")
    return f"{scheme}://…" if separator else address


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if "not a database" in text:
        text = "it is not a SQLite database"
    return sentence(text)


_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")
_BEGINNING = "1970-01-01T00:00:00.000000+00:00"
"""The time of what has none."""


def has(foreign: Foreign, name: str, *columns: str) -> bool:
    return name in foreign.tables and set(columns) <= foreign.tables[name].by_name.keys()


async def rows(foreign: Foreign, name: str, *, order: str = "", **where: str) -> list[Row]:
    """Return a table's rows, ordered by `order` if that column exists; `where` filters columns by text. Times are ISO
    8601 in UTC; JSON and arrays are text. Raises `StoreError` if the database fails or a value is no text."""
    columns = ", ".join(f'{column.read} AS "{column.name}"' for column in foreign.tables[name].columns)
    with import_errors():
        return await foreign.tx.fetch(
            Sql(f'SELECT {columns} FROM "{name}"{_where(foreign, name, where)}{_by(foreign, name, order)}'), **where
        )


async def values(foreign: Foreign, name: str, column: str, *, order: str = "") -> list[str]:
    """Return a column's distinct values as text, without NULL, in the order of another column."""
    table = foreign.tables[name]
    if order in table.by_name:
        by = f'GROUP BY "{column}" ORDER BY min("{order}"), CAST("{column}" AS TEXT)'
    else:
        by = f'GROUP BY "{column}" ORDER BY CAST("{column}" AS TEXT)'
    with import_errors():
        found = await foreign.tx.fetch(
            Sql(f'SELECT CAST("{column}" AS TEXT) AS value FROM "{name}" WHERE "{column}" IS NOT NULL {by}')
        )
    return [row["value"] for row in found]


async def count(foreign: Foreign, name: str) -> int:
    with import_errors():
        [row] = await foreign.tx.fetch(Sql(f'SELECT count(*) AS rows FROM "{name}"'))
    return int(row["rows"])


def _where(foreign: Foreign, name: str, where: dict[str, str]) -> str:
    # In the column's own type, so that its index is used.
    conditions = [f'"{each}" = {foreign.tables[name].by_name[each].write}' for each in where]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _by(foreign: Foreign, name: str, order: str) -> str:
    if order not in foreign.tables[name].by_name:
        return ""
    # Rows of equal time, those of one transaction, in the order of writing.
    return f' ORDER BY "{order}"' + (", ctid" if foreign.dialect == "postgres" else "")


def storable(value: Any) -> Any:
    """Replace what no database takes as text: NULs and halves of surrogate pairs."""
    if isinstance(value, str):
        return value if value.isascii() and "\x00" not in value else _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def decode_json(text: Any) -> Any:
    """Parse a JSON column, also if it was encoded twice; NaN and infinities become text. Raises `ValueError`."""
    if text is None or not isinstance(text, str | bytes):
        return text
    try:
        value = json.loads(text, parse_constant=str)
        return json.loads(value, parse_constant=str) if isinstance(value, str) and value[:1] in ("{", "[") else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def moment(value: Any, default: str | None = None) -> str:
    """Return a time as stored; without a zone it is UTC. What is no time is `default`, or the epoch."""
    found = moment_or_none(value)
    return found if found is not None else default or _BEGINNING


def moment_or_none(value: Any) -> str | None:
    """Return a time as `moment` does; None for what is no time."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > 10**11 else value
            found = datetime.fromtimestamp(seconds, UTC)
        else:
            found = datetime.fromisoformat(str(value).strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return None


def floats(value: Any) -> bytes | None:
    """Return a vector as stored. PostgreSQL sends two 16-bit counts, then big-endian numbers."""
    if isinstance(value, memoryview | bytearray):
        value = bytes(value)
    if not isinstance(value, bytes) or len(value) < 8:
        return None
    numbers: Sequence[float] = struct.unpack_from(f">{(len(value) - 4) // 4}f", value, 4)
    return struct.pack(f"<{len(numbers)}f", *numbers)


@dataclass(frozen=True, slots=True)
class ExtractedEntry:
    """An entry. `parent` is an earlier index in the conversation; None begins a branch. `at` is ISO 8601 in UTC."""

    draft: Draft
    parent: int | None
    at: str


@dataclass(slots=True)
class Conversation:
    """A conversation. `tip` is the index of its last entry; -1 if there is none. `user_id`: None if the source names no
    user. `holds` counts items by the names of `ImportReport.there`. `rows` are rows of other tables, by table, without
    thread ids."""

    id: str
    user_id: str | None
    title: str | None
    created_at: str
    updated_at: str
    entries: list[ExtractedEntry] = field(default_factory=list)
    tip: int = -1
    agent_id: str | None = None
    status: str = "active"
    metadata: dict[str, Any] = field(default_factory=dict)
    tool_categories: Sequence[Any] = ()
    tags: Sequence[Any] = ()
    ended_at: str | None = None
    expires_at: str | None = None
    holds: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass(slots=True)
class ImportReport:
    """The result of an import, for people. `there`, `here` and `already` count by name: items of the source, items here
    now, and items that were here before. `left` says what was left out, and why; `notes` what was changed."""

    there: Counter[str] = field(default_factory=Counter)
    here: Counter[str] = field(default_factory=Counter)
    already: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


class ImportSource(Protocol):
    """A kind of database. `kind` and `noun` name it and its conversations for people; `tables` are imported."""

    kind: str
    noun: str
    tables: frozenset[str]

    def fits(self, foreign: Foreign) -> bool:
        """Return whether the database has these tables, in this form."""
        ...

    async def ids(self, foreign: Foreign) -> list[str]:
        """Return the conversation ids, oldest first."""
        ...

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        """Return a conversation; None if it cannot be imported: the report says why."""
        ...

    def yield_shared(self, foreign: Foreign, report: ImportReport) -> AsyncIterator[tuple[str, Row]]:
        """Yield rows of tables that threads share, with the table's name, referenced rows first. By default none."""
        return _yield_none()


async def _yield_none() -> AsyncIterator[tuple[str, Row]]:
    for _ in ():
        yield _
