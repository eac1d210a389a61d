"""A SQLite file that this user may read and not write, or whose folder is so, or whose disk is full: it is read as it
stands.

SQLite in WAL mode reads by way of a `-shm` file, and cannot make one here. Where no `-wal` file holds anything, all
that was committed is in the file itself. That may be read as one that nobody changes; whether somebody did is looked at
behind every reading. While somebody has the store open, its `-shm` is there, and all is as usual.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from longthread.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from longthread.store.backends.migrate import pending
from longthread.store.backends.sqlite import (
    ERRORS,
    SqliteTransaction,
    failure,
    prepare,
    reason_of,
    require_store,
    schema_version,
)
from longthread.store.backends.sqlite_connection import StoreConnection


def is_frozen(path: Path) -> bool:
    """Whether a file is there, and this user may not write to it or beside it."""
    path = path.resolve()
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def lacks_room(error: BaseException | None) -> bool:
    """Whether SQLite could not make its `-shm` file, or write to one, for its disk is full."""
    return isinstance(error, sqlite3.Error) and error.sqlite_errorcode in _NO_ROOM


_NO_ROOM = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_WRITE,
)


class FileState(NamedTuple):
    """What tells whether a file was written to, and how much there is beside it."""

    file: int
    changed: int
    size: int
    wal: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        path = path.resolve()  # the -wal file is beside the file itself, and not beside a link to it
        stat, wal = path.stat(), path.with_name(f"{path.name}-wal")
        return cls(stat.st_ino, stat.st_mtime_ns, stat.st_size, wal.stat().st_size if wal.exists() else 0)


class FrozenSqliteDriver:
    """Reads a file, each time on a connection of its own. What would write is refused."""

    dialect = "sqlite"

    def __init__(self, path: Path, found: int = 0, *, full: bool = False) -> None:
        self.found_version = found
        self._path = path
        self.is_full = full

    @property
    def where(self) -> str:
        return str(self._path)

    @property
    def refusal(self) -> StoreError:
        """Why nothing can be written."""
        if self.is_full:
            return StoreFull(reason="its disk has no room, and it can only be read as it stands.")
        return StoreReadOnly(reason="this user may not write to the file or to its folder.")

    @classmethod
    async def open(cls, path: Path, *, migrates: bool = True, full: bool = False) -> FrozenSqliteDriver:
        """Look whether it is a store that can be read as it is.

        Args:
            migrates: its schema must be up to date, for nobody here can bring it up to date.
            full: that it cannot be written to is for want of room on its disk.

        Raises:
            StoreUnavailable: it cannot; the message says why.
            StoreTooNew: a newer Longthread wrote it.
        """
        driver = cls(path)
        state = FileState.of(path)
        try:
            async with driver._connection(state) as connection:
                await require_store(connection, path)
                found = await schema_version(connection, str(path))
        except (*ERRORS, OSError) as error:
            raise StoreUnavailable(where=path, reason=_IN_WAL if state.wal else reason_of(error)) from error
        if migrates and pending(found, str(path)):
            raise StoreUnavailable(where=path, reason=_TOO_OLD.format(found))
        return cls(path, found, full=full)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[SqliteTransaction]:
        try:
            state = FileState.of(self._path)
            async with self._connection(state) as connection:
                await connection.execute("BEGIN")
                yield SqliteTransaction(connection)
            changed = not state.wal and FileState.of(self._path) != state
        except (sqlite3.Error, OSError) as error:
            raise failure(error) from error
        if changed:
            raise StoreError(reason=CHANGED_MEANWHILE)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[SqliteTransaction]:
        raise self.refusal
        yield  # what makes it a block

    maintaining = writing

    async def close(self) -> None:
        """Nothing is held between two readings."""

    @asynccontextmanager
    async def _connection(self, state: FileState) -> AsyncIterator[StoreConnection]:
        mode = "mode=ro" if state.wal else "mode=ro&immutable=1"
        connection = await StoreConnection.open(f"file:{quote(str(self._path.absolute()))}?{mode}", uri=True)
        try:
            await prepare(connection)
            yield connection
        finally:
            await connection.close()


CHANGED_MEANWHILE = "somebody wrote to it while it was being read. Repeat."
_IN_WAL = (
    "what was written last is in its -wal file, and to read that one must be allowed to write to its folder. Let a "
    "user who may open it once (`longthread db status`), or copy both files to a folder of your own."
)
_TOO_OLD = (
    "its schema has version {}, and this user may not bring it up to date. Let a user who may write to it run "
    "`longthread db upgrade`, or copy it to a folder of your own."
)
