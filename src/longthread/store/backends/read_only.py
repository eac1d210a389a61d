"""`--read-only` stores: nothing is written to them.

SQLite creates a `-shm` file next to a `-wal` file that no process has open, and leaves it. Nothing else is written next
to a store.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from longthread.errors import StoreError, StoreReadOnly, StoreUnavailable
from longthread.loop_bridge import to_the_end
from longthread.store.backends.sqlite import prepare, require_store, schema_version
from longthread.store.backends.sqlite_connection import ERRORS, StoreConnection, failure, reason_of
from longthread.store.backends.sqlite_transaction import SqliteTransaction
from longthread.store.driver import Driver, Transaction
from longthread.store.schema import pending


class FileState(NamedTuple):
    """A SQLite file's identity and change stamp, and the size of its `-wal` file in bytes."""

    file: int
    changed: int
    size: int
    wal: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        path = path.resolve()  # the -wal file is next to the file itself, and not next to a link to it
        stat, wal = path.stat(), path.with_name(f"{path.name}-wal")
        return cls(stat.st_ino, stat.st_mtime_ns, stat.st_size, wal.stat().st_size if wal.exists() else 0)

    def is_of(self, path: Path) -> bool:
        """Return whether a file still has this state."""
        try:
            return self == FileState.of(path)
        except OSError:  # it is gone
            return False

    def uri(self, path: Path) -> str:
        """Return a read-only URI. With an empty `-wal` file it is immutable, so that SQLite creates no `-shm` file."""
        return f"file:{quote(str(path.absolute()))}?mode=ro" + "&immutable=1" * (not self.wal)


class RefusesWrites:
    """The part of a driver that writes, for a store that is only read."""

    signals = None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        raise StoreReadOnly(reason="it was opened to be read only.")
        yield  # what makes it a block

    maintaining = dedicated = writing


class ReadOnlyDriver(RefusesWrites):
    """Reads a store of either backend as its driver does."""

    def __init__(self, driver: Driver) -> None:
        self.dialect, self.where, self.found_version = driver.dialect, driver.where, driver.found_version
        self.reading, self.close = driver.reading, driver.close


class ReadOnlySqliteDriver(RefusesWrites):
    """Reads a SQLite file, each time on a connection of its own: an immutable one sees no later commit."""

    dialect = "sqlite"

    def __init__(self, path: Path, found: int) -> None:
        self._path = path.absolute()
        self.where, self.found_version = str(path), found

    @classmethod
    async def open(cls, path: Path) -> ReadOnlySqliteDriver:
        """Open a SQLite file without writing to it. Raises `StoreTooNew`, or `StoreUnavailable`, whose message says why
        it is no store or cannot be read."""
        try:
            async with _connect(path) as (connection, _):
                await require_store(connection, path)
                return cls(path, await schema_version(connection, str(path)))
        except ERRORS as error:
            raise StoreUnavailable(where=path, reason=reason_of(error)) from error

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        try:
            async with _connect(self._path) as (connection, state):
                yield SqliteTransaction(connection)
        except sqlite3.Error as error:
            raise failure(error) from error
        if not state.wal and not state.is_of(self._path):
            raise StoreError(reason=CHANGED_MEANWHILE)

    async def close(self) -> None:
        """Nothing is open between two readings."""


@asynccontextmanager
async def _connect(path: Path) -> AsyncIterator[tuple[StoreConnection, FileState]]:
    """Begin a snapshot of a file, and return the file's state before it. Raises `StoreUnavailable`."""
    wal = 0
    async with AsyncExitStack() as stack:
        try:
            state = FileState.of(path)
            wal = state.wal
            connection = await StoreConnection.open(state.uri(path), prepare, uri=True)
            stack.push_async_callback(lambda: to_the_end(connection.close()))
            await connection.execute("BEGIN")
            await connection.execute("SELECT count(*) FROM sqlite_master")  # the snapshot begins, if it is a database
        except (*ERRORS, OSError) as error:
            raise StoreUnavailable(where=path, reason=_IN_WAL if wal else reason_of(error)) from error
        yield connection, state


def require_current(driver: Driver) -> None:
    """Raise `StoreUnavailable` for an older schema: upgrading it would write."""
    if pending(driver.found_version, driver.where):
        raise StoreUnavailable(where=driver.where, reason=_TOO_OLD.format(driver.found_version))


CHANGED_MEANWHILE = "somebody wrote to it while it was being read. Repeat."
_IN_WAL = (
    "what was written last is in its -wal file, and to read that one must be allowed to write to its folder. Let a "
    "user who may open it once (`longthread db status`), or copy both files to a folder of your own."
)
_TOO_OLD = (
    "its schema has version {}, and --read-only does not bring it up to date. Let a user who may write to it run "
    "`longthread db upgrade`, or copy it to a folder of your own."
)
