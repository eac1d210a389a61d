"""`--read-only` stores: nothing is written to them, nor to files beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from longthread.errors import StoreError, StoreReadOnly, StoreUnavailable
from longthread.store.backends.migrate import pending
from longthread.store.backends.sqlite import (
    ERRORS,
    READERS,
    SqliteDriver,
    prepare,
    reason_of,
    require_store,
    schema_version,
)
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.driver import Driver, Transaction


class FileState(NamedTuple):
    """A SQLite file's identity and change stamp, and the size of its `-wal` file in bytes."""

    file: int
    changed: int
    size: int
    wal: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        path = path.resolve()  # the -wal file is beside the file itself, and not beside a link to it
        stat, wal = path.stat(), path.with_name(f"{path.name}-wal")
        return cls(stat.st_ino, stat.st_mtime_ns, stat.st_size, wal.stat().st_size if wal.exists() else 0)

    def uri(self, path: Path) -> str:
        """Return a read-only URI. With an empty `-wal` file it is immutable, so that SQLite creates no `-shm` file."""
        return f"file:{quote(str(path.absolute()))}?mode=ro" + "&immutable=1" * (not self.wal)


class ReadOnlyDriver:
    """Reads a store of either backend, and refuses writes.

    Args:
        immutable: a SQLite file that is opened as immutable, with its state at that moment.
    """

    def __init__(self, driver: Driver, immutable: tuple[Path, FileState] | None = None) -> None:
        self._driver = driver
        self._immutable = immutable
        self.dialect, self.where, self.found_version = driver.dialect, driver.where, driver.found_version

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        async with self._driver.reading() as tx:
            yield tx
        if self._immutable is not None and FileState.of(self._immutable[0]) != self._immutable[1]:
            raise StoreError(reason=CHANGED_MEANWHILE)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        raise StoreReadOnly(reason="it was opened with --read-only.")
        yield  # what makes it a block

    maintaining = writing

    async def close(self) -> None:
        await self._driver.close()


async def open_read_only(path: Path) -> ReadOnlyDriver:
    """Open a SQLite file without writing to it. Raises `StoreTooNew`, or `StoreUnavailable`, whose message says why it
    is no store or cannot be read."""
    wal = 0
    try:
        state = FileState.of(path)
        wal = state.wal
        uri = state.uri(path)
        async with AsyncExitStack() as opened:
            connections = []
            for _ in range(1 + READERS):
                connections.append(connection := await StoreConnection.open(uri, uri=True))
                opened.push_async_callback(connection.close)
                await prepare(connection)
            await require_store(connections[0], path)
            found = await schema_version(connections[0], str(path))
            opened.pop_all()  # they stay open
    except (*ERRORS, OSError) as error:
        raise StoreUnavailable(where=path, reason=_IN_WAL if wal else reason_of(error)) from error
    driver = SqliteDriver(path, connections[0], connections[1:], found)
    return ReadOnlyDriver(driver, None if wal else (path, state))


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
