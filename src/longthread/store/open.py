"""Open a store by its address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from longthread.store.completion import to_the_end
from longthread.store.driver import Driver
from longthread.store.sqlite import SqliteDriver


@asynccontextmanager
async def open_store(database: str | Path) -> AsyncIterator[Driver]:
    """The store at a file path, created and migrated when needed, closed at the end of the block.

    Raises:
        StoreUnavailable: it cannot be opened; the message says why.
        StoreTooNew: a newer Longthread wrote it.
    """
    driver = await SqliteDriver.open(Path(database))
    try:
        yield driver
    finally:
        # A half-closed store would keep its threads, and the process, alive.
        await to_the_end(driver.close())
