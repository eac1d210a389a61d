"""Work on a store as a whole, from the command line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

from longthread.errors import StoreUnavailable
from longthread.settings import EMBEDDED
from longthread.store.driver import Driver
from longthread.store.open import is_postgres, open_store

T = TypeVar("T")
_MOST_SHOWN = 5


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do what a command has to do; Ctrl-C breaks it off.

    What is under way is rolled back, and nothing else is lost by that.
    """
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        typer.echo("Stopped. What was done is kept; give the command again to go on.", err=True)
        raise


@asynccontextmanager
async def existing(address: str, *, migrates: bool = True) -> AsyncIterator[Driver]:
    """A store that is there: none is made.

    Args:
        migrates: otherwise its schema stays as it is, too.

    Raises:
        StoreUnavailable: there is none, or it cannot be opened.
    """
    if reason := await asyncio.to_thread(_why_none, address):
        raise StoreUnavailable(where=address.removeprefix(_EMBEDDED), reason=reason)
    async with open_store(address, migrates=migrates) as store:
        yield store


_EMBEDDED = f"{EMBEDDED}:"


def _why_none(address: str) -> str | None:
    """Why there is no store at an address, as far as the files tell."""
    if is_postgres(address):
        return None
    path = Path(address.removeprefix(_EMBEDDED))
    if not path.exists():
        return "there is none yet."
    if address.startswith(_EMBEDDED):
        return "there is none yet." if path.is_dir() and not any(path.iterdir()) else None
    # One that another process makes just now may still be in its log alone.
    empty = path.is_file() and not path.stat().st_size and not path.with_name(f"{path.name}-wal").exists()
    return "the file is empty, and no store yet. `longthread db upgrade` makes it one." if empty else None


def some(items: Sequence[str]) -> str:
    """The first few of many, for a message."""
    more = len(items) - _MOST_SHOWN
    return ", ".join(items[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
