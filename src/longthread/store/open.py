"""Open a store by its address."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from longthread.errors import StoreUnavailable
from longthread.settings import Settings
from longthread.store.completion import to_the_end
from longthread.store.driver import Driver
from longthread.store.embedded import embedded_server
from longthread.store.postgres import PostgresDriver
from longthread.store.sqlite import SqliteDriver

_EMBEDDED = "embedded"
_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+psycopg)?://")


@asynccontextmanager
async def open_store(database: str | Path) -> AsyncIterator[Driver]:
    """The store at an address, created and migrated when needed, closed at the end of the block.

    Args:
        database: the path of a SQLite file, a `postgresql://` URL, or `embedded:FOLDER`, a PostgreSQL that starts with
            Longthread and keeps its data in the folder; `embedded` alone has it in the settings' data folder.

    Raises:
        StoreUnavailable: it cannot be opened; the message says why.
        StoreTooNew: a newer Longthread wrote it.
    """
    address = str(database)
    if address == _EMBEDDED:
        address = f"{_EMBEDDED}:{Settings.load().data_dir / 'postgres'}"
    if address.startswith(f"{_EMBEDDED}:"):
        async with (
            embedded_server(Path(address.removeprefix(f"{_EMBEDDED}:"))) as url,
            _closing(await PostgresDriver.open(url)) as driver,
        ):
            yield driver
    elif _POSTGRES.match(address):
        async with _closing(await PostgresDriver.open(address)) as driver:
            yield driver
    elif "://" in address:
        scheme = address.partition("://")[0]
        raise StoreUnavailable(
            where=f"{scheme}://…", reason="it is neither the path of a SQLite file nor a postgresql:// URL."
        )
    else:
        async with _closing(await SqliteDriver.open(Path(database))) as driver:
            yield driver


@asynccontextmanager
async def _closing(driver: Driver) -> AsyncIterator[Driver]:
    try:
        yield driver
    finally:
        # A half-closed store would keep its threads, and the process, alive.
        await to_the_end(driver.close())
