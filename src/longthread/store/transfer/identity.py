"""Detection that two addresses or stores are the same."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from longthread.errors import InvalidInput
from longthread.settings import EMBEDDED
from longthread.store.driver import Driver, Row, one
from longthread.store.open import described, is_postgres


def refuse_same_place(source: str, target: str) -> None:
    """Raise `InvalidInput` if two addresses lead to one file or folder, through any links. Check before opening: a
    SQLite file opened under two names is damaged, since each name has its own log."""
    if is_postgres(source) or is_postgres(target):
        return
    paths = [Path(address.removeprefix(f"{EMBEDDED}:")) for address in (source, target)]
    with suppress(OSError):  # one of them is not there
        if paths[0].samefile(paths[1]):
            raise _same(described(source), described(target))


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
