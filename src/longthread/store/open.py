"""Open a store by its address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from longthread.errors import InvalidInput, StoreFull, StoreUnavailable
from longthread.settings import EMBEDDED, POSTGRES_URLS, Settings, shown_address, store_address
from longthread.store.backends.read_only_sqlite import FrozenSqliteDriver, is_frozen, lacks_room
from longthread.store.backends.sqlite import SqliteDriver
from longthread.store.completion import to_the_end
from longthread.store.driver import Driver


@asynccontextmanager
async def open_store(database: str | Path, *, creates: bool = True, migrates: bool = True) -> AsyncIterator[Driver]:
    """The store at an address, created and migrated when needed, closed at the end of the block.

    A store that this user may only read can be read, if its schema is up to date; what writes raises `StoreReadOnly`.
    So can one whose disk is full, where none is to be created; what writes raises `StoreFull`.

    Args:
        database: the path of a SQLite file, a `postgresql://` URL, or `embedded`, a PostgreSQL that starts with
            Longthread; its data is in the settings' data folder, or with `embedded:FOLDER` in another.
        creates: otherwise a store must be there already: none is made, and nothing that it would be in.
        migrates: otherwise a store must be there already, and its schema stays as it is: only what does not depend on
            the version can be read.

    Raises:
        InvalidInput: it is no such address.
        StoreUnavailable: it cannot be opened; the message says why.
        StoreFull: its disk is, and it may be created.
        StoreTooNew: a newer Longthread wrote it.
    """
    if not isinstance(database, str | Path):
        raise InvalidInput(reason=f"A store's address is a text or a path, and {database!r} is none.")
    address = _checked(str(database))
    creates = creates and migrates
    if not creates and (reason := await asyncio.to_thread(why_none, address)):
        raise StoreUnavailable(where=address.removeprefix(_EMBEDDED), reason=reason)
    if address.startswith(_EMBEDDED):
        from longthread.store.backends.embedded_postgres import embedded_server  # only here: psycopg is slow to import
        from longthread.store.backends.postgres import PostgresDriver

        async with (
            embedded_server(Path(address.removeprefix(_EMBEDDED))) as url,
            _closing(
                await PostgresDriver.open(url, where=described(address), creates=creates, migrates=migrates)
            ) as driver,
        ):
            yield driver
    else:
        async with _closing(await _opened(address, creates=creates, migrates=migrates)) as driver:
            yield driver


async def _opened(address: str, *, creates: bool, migrates: bool) -> Driver:
    if is_postgres(address):
        from longthread.store.backends.postgres import PostgresDriver

        return await PostgresDriver.open(address, creates=creates, migrates=migrates)
    path = Path(address)
    try:
        return await SqliteDriver.open(path, creates=creates, migrates=migrates)
    except StoreUnavailable as error:
        if await asyncio.to_thread(is_frozen, path):
            return await FrozenSqliteDriver.open(path, migrates=migrates)
        if not lacks_room(error.__cause__):
            raise
        if creates:
            raise StoreFull(reason=error.reason) from error
        with suppress(StoreUnavailable):  # what the user can do about it is to make room
            return await FrozenSqliteDriver.open(path, migrates=migrates, full=True)
        raise


def is_postgres(address: str) -> bool:
    """Whether an address is the URL of a PostgreSQL database."""
    return address.partition("://")[0] in POSTGRES_URLS and "://" in address


def described(address: str) -> str:
    """An address as people may see it, without a password.

    Raises:
        StoreUnavailable: it is a URL that cannot be read.
    """
    if address.startswith(_EMBEDDED):
        return f"{address.removeprefix(_EMBEDDED)} (embedded PostgreSQL)"
    if not is_postgres(address):
        return address
    from longthread.store.backends.postgres_address import shown

    return shown(address)


_EMBEDDED = f"{EMBEDDED}:"


def why_none(address: str) -> str | None:
    """Why there is no store at an address, as far as the files tell; None where there may be one."""
    if is_postgres(address):
        return None
    path = Path(address.removeprefix(_EMBEDDED))
    if not path.exists():
        return "there is none yet. The first question, or `longthread db upgrade`, makes one."
    if address.startswith(_EMBEDDED):
        return "there is none yet." if path.is_dir() and not any(path.iterdir()) else None
    # One that another process makes just now may still be in its log alone.
    empty = path.is_file() and not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists()
    return "the file is empty, and no store yet. `longthread db upgrade` makes it one." if empty else None


def _checked(address: str) -> str:
    try:
        return store_address(address, Settings.load().data_dir if address == EMBEDDED else Path())
    except ValueError as error:
        raise InvalidInput(
            reason=f"{shown_address(address)} is {error}. A store is the path of a SQLite file, a postgresql:// URL, "
            "or `embedded`."
        ) from None


@asynccontextmanager
async def _closing(driver: Driver) -> AsyncIterator[Driver]:
    try:
        yield driver
    finally:
        # A half-closed store would keep its threads, and the process, alive.
        await to_the_end(driver.close())
