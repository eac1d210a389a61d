"""One connection to a SQLite file, with a thread of its own, and SQLite's errors as a store's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

from longthread.errors import (
    RowDamaged,
    StoreClosed,
    StoreConflict,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    ValueRefused,
)
from longthread.loop_bridge import to_the_end
from longthread.store.driver import sentence

BUSY_SECONDS = 30.0
"""A writer's timeout for another process's transaction."""
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""A statement's errors; the latter where SQLite quotes damaged text in its message."""
_FAILURES: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
    sqlite3.SQLITE_CONSTRAINT: ValueRefused,
    sqlite3.SQLITE_MISMATCH: ValueRefused,
}
_NOT_UTF8 = "Could not decode to UTF-8"
_CLOSED = "closed database"
_NOT_UNIQUE = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID)


def failure(error: Exception) -> StoreError:
    """Return a statement's error as a store error."""
    if getattr(error, "sqlite_errorcode", None) in _NOT_UNIQUE:
        return StoreConflict(reason=reason_of(error))
    if isinstance(error, sqlite3.ProgrammingError) and _CLOSED in str(error):
        return StoreClosed()
    kind = _FAILURES.get(code_of(error), StoreError)
    # Text that is not UTF-8 has no code: only a broken disk writes it.
    damaged = isinstance(error, UnicodeDecodeError) or _NOT_UTF8 in str(error)
    return (RowDamaged if damaged else kind)(reason=reason_of(error))


def code_of(error: Exception) -> int:
    """Return SQLite's primary result code; 0 for Python's own errors."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def reason_of(error: Exception) -> str:
    """Return an error's meaning, for people."""
    text = str(error)
    if text.startswith(_NOT_UTF8):
        return sentence(text.partition(" with text ")[0])
    if isinstance(error, UnicodeDecodeError):
        return "the database disk image is malformed: the file was damaged by something else. Restore a backup."
    match code_of(error):
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


_Result = TypeVar("_Result")


class StoreConnection:
    """A connection, used by one task at a time."""

    def __init__(self, database: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self.database = database
        """SQLite's connection, for calls in its thread."""
        self._thread = thread
        self.broken_off = False
        """Whether a task was cancelled while it waited for the thread, which may still be at work."""

    @classmethod
    async def open(
        cls, path: Path | str, prepare: Callable[[sqlite3.Connection], None] = lambda _: None, *, uri: bool = False
    ) -> StoreConnection:
        """Open the file and call `prepare`, in the connection's thread; does not wait for other processes' locks.
        Raises `sqlite3.Error`."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="longthread-sqlite")

        def connect() -> sqlite3.Connection:
            with ExitStack() as opened:
                database = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False, uri=uri)
                opened.callback(database.close)
                prepare(database)
                opened.pop_all()  # it stays open
            return database

        with ExitStack() as opened:
            opened.callback(thread.shutdown, wait=False)
            database = await asyncio.get_running_loop().run_in_executor(thread, connect)
            opened.pop_all()  # it stays open
        return cls(database, thread)

    async def apart(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Do work in the connection's own thread, after its earlier work.

        Raises:
            sqlite3.ProgrammingError: the connection is closed.
            CancelledError: the task was cancelled; work that has begun is completed.
        """
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._thread, work, self.database)
        except RuntimeError as error:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database.") from error
        try:
            return await waiting
        except asyncio.CancelledError:
            self.broken_off = True
            raise

    async def execute(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Run a statement in the connection's own thread; return its rows."""
        return await self.apart(lambda database: database.execute(sql, values).fetchall())

    def interrupt(self) -> None:
        """Abort the running statement, if any. Its effect is undone."""
        with suppress(sqlite3.ProgrammingError):  # closed meanwhile
            self.database.interrupt()

    async def rollback(self) -> None:
        """Roll back the open transaction, if any, before the connection's next work. Only after a cancellation, wait
        for the running work."""
        with suppress(sqlite3.ProgrammingError, RuntimeError):  # closed meanwhile, which has rolled it back
            if self.broken_off:
                self.broken_off = False
                await to_the_end(self.apart(sqlite3.Connection.rollback))
            else:
                self._thread.submit(self.database.rollback)

    async def close(self) -> None:
        """Close after the running work. Idempotent."""
        try:
            await self.apart(sqlite3.Connection.close)
        except sqlite3.ProgrammingError:
            return  # it was closed before
        self._thread.shutdown(wait=False)
