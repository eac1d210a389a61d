"""Open a store by its address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

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
        await _to_the_end(driver.close())


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> None:
    """Close whole, also when the task is cancelled meanwhile: a half-closed store keeps its threads running."""
    task = asyncio.ensure_future(closing)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError
