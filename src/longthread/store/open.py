"""Opening of stores by address, and detection that two addresses are the same store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from longthread.errors import InvalidInput, StoreUnavailable
from longthread.loop_bridge import to_the_end
from longthread.settings import EMBEDDED, POSTGRES_URLS, data_folder, shown_address, store_address
from longthread.store.backends.read_only import ReadOnlyDriver, ReadOnlySqliteDriver, require_current
from longthread.store.backends.sqlite import SqliteDriver
from longthread.store.driver import LEAST_CONNECTIONS, Driver, Row, one
from longthread.store.queries import queries


@asynccontextmanager
async def open_store(
    database: str | Path,
    *,
    creates: bool = True,
    migrates: bool = True,
    read_only: bool = False,
    pool_size: int | None = None,
) -> AsyncIterator[Driver]:
    """Open the store at an address, create and migrate it when needed, and close it at the end of the block.

    Args:
        database: a SQLite file's path, a `postgresql://` URL, or `embedded`: a PostgreSQL that runs with Longthread,
            with its data in the settings' data folder, or, as `embedded:FOLDER`, in another.
        creates: if False, the store must exist; nothing is created.
        migrates: if False, the store must exist and keeps its schema: read only what all versions share.
        read_only: the store must exist, with the current schema if `migrates`; writes raise `StoreReadOnly`. The server
            of `embedded` still writes its own files.
        pool_size: how many connections to PostgreSQL it has at most, from 2 on; None: 16. A SQLite file needs none.

    Raises:
        InvalidInput: it is no such address, or the pool is too small.
        StoreUnavailable: it cannot be opened; the message says why.
        StoreTooNew: a newer Longthread wrote it.
    """
    if not isinstance(database, str | Path):
        raise InvalidInput(reason=f"A store's address is a text or a path, and {database!r} is none.")
    address = _check_address(str(database))
    _expect_size(pool_size)
    changes = migrates and not read_only
    creates = creates and changes
    if not creates and (reason := await asyncio.to_thread(why_none, address)):
        raise StoreUnavailable(where=address.removeprefix(_EMBEDDED), reason=reason)
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(queries, "sqlite" if _is_file(address) else "postgres")  # it reads files
        url, where = address, describe_address(address)
        if address.startswith(_EMBEDDED):
            from longthread.store.backends.embedded_postgres import embedded_server  # only here: slow to import

            url = await stack.enter_async_context(embedded_server(Path(address.removeprefix(_EMBEDDED))))
        driver = await _open_driver(url, where, creates=creates, migrates=changes, read_only=read_only, size=pool_size)
        stack.push_async_callback(_close, driver)
        if read_only and migrates:
            require_current(driver)
        yield driver


@asynccontextmanager
async def store_over(pool: Any) -> AsyncIterator[Driver]:
    """Open the store in the database of an application's `psycopg_pool.AsyncConnectionPool`, which stays open.

    Raises as `open_store` does.
    """
    from longthread.store.backends.postgres import PostgresDriver

    await asyncio.to_thread(queries, "postgres")
    driver = await PostgresDriver.over(pool)
    try:
        yield driver
    finally:
        await _close(driver)


def _expect_size(pool_size: Any) -> None:
    is_number = isinstance(pool_size, int) and not isinstance(pool_size, bool)
    if pool_size is not None and not (is_number and pool_size >= LEAST_CONNECTIONS):
        raise InvalidInput(
            reason=f"pool_size is {pool_size!r}; give a whole number from {LEAST_CONNECTIONS} on: who writes may read "
            "beside it."
        )


async def _open_driver(
    url: str, where: str, *, creates: bool, migrates: bool, read_only: bool, size: int | None
) -> Driver:
    if is_postgres(url):
        from longthread.store.backends.postgres import PostgresDriver

        driver = await PostgresDriver.open(url, where=where, creates=creates, migrates=migrates, pool_size=size)
        return ReadOnlyDriver(driver) if read_only else driver
    if read_only:
        return await ReadOnlySqliteDriver.open(Path(url))
    return await SqliteDriver.open(Path(url), creates=creates, migrates=migrates)


async def _close(driver: Driver) -> None:
    # The threads of a half-closed store would keep the process alive.
    await to_the_end(driver.close())


def is_postgres(address: str) -> bool:
    return address.partition("://")[0] in POSTGRES_URLS and "://" in address


def _is_file(address: str) -> bool:
    return not is_postgres(address) and not address.startswith(_EMBEDDED)


def describe_address(address: str) -> str:
    """Return an address for people, without a password. Raises `StoreUnavailable` for a malformed URL."""
    if address.startswith(_EMBEDDED):
        return f"{address.removeprefix(_EMBEDDED)} (embedded PostgreSQL)"
    if not is_postgres(address):
        return address
    from longthread.store.backends.postgres import show_address

    return show_address(address)


_EMBEDDED = f"{EMBEDDED}:"


def why_none(address: str) -> str | None:
    """Return why there is no store at an address, as far as files show; None: there may be one."""
    if is_postgres(address):
        return None
    path = Path(address.removeprefix(_EMBEDDED))
    if not path.exists():
        return "there is none yet. The first question, or `longthread db upgrade`, makes one."
    if address.startswith(_EMBEDDED):
        return "there is none yet." if path.is_dir() and not any(path.iterdir()) else None
    # A store that another process is creating may still be only in its log.
    empty = path.is_file() and not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists()
    return "the file is empty, and no store yet. `longthread db upgrade` makes it one." if empty else None


def _check_address(address: str) -> str:
    try:
        return store_address(address, data_folder() if address == EMBEDDED else Path())
    except ValueError as error:
        raise InvalidInput(
            reason=f"{shown_address(address)} is {error}. A store is the path of a SQLite file, a postgresql:// URL, "
            "or `embedded`."
        ) from None


def refuse_same_place(source: str, target: str) -> None:
    """Raise `InvalidInput` if two addresses lead to one file or folder, through any links. Check before opening: a
    SQLite file opened under two names is damaged, since each name has its own log."""
    if is_postgres(source) or is_postgres(target):
        return
    paths = [Path(address.removeprefix(f"{EMBEDDED}:")) for address in (source, target)]
    with suppress(OSError):  # one of them is not there
        if paths[0].samefile(paths[1]):
            raise _same(describe_address(source), describe_address(target))


async def refuse_same(source: Driver, target: Driver) -> None:
    """Raise `InvalidInput` if two open stores are one."""
    if source.dialect == target.dialect == "postgres":
        same = await _database(source) == await _database(target)
    else:
        same = source.where == target.where
    if same:
        raise _same(source.where, target.where)


async def _database(store: Driver) -> Row | None:
    async with store.reading() as tx:
        return await one(tx, "select_database")


def _same(source: str, target: str) -> InvalidInput:
    named = source if source == target else f"{source} is the same store as {target}, and"
    return InvalidInput(reason=f"{named} cannot be copied to itself. Name another file or database as TO.")
