"""Work on a store as a whole, from the command line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from longthread.cli.language import say, translate
from longthread.cli.screen import echo
from longthread.errors import StoreUnavailable
from longthread.runs.worker import RunWorker, place_of
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.open import is_postgres, open_store, why_none

T = TypeVar("T")
_MOST_SHOWN = 5
_LOOK_SECONDS = 0.5


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do what a command has to do; Ctrl-C breaks it off.

    What is under way is rolled back, and nothing else is lost by that.
    """
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        echo("Stopped. What was done is kept; give the command again to go on.", err=True)
        raise


@asynccontextmanager
async def existing(settings: Settings, *, migrates: bool = True) -> AsyncIterator[Driver]:
    """The store that the settings name, which is there: none is made.

    Args:
        migrates: otherwise its schema stays as it is, too.

    Raises:
        StoreUnavailable: there is none, or it cannot be opened.
    """
    database, read_only = settings.database, settings.read_only
    async with open_store(database, creates=False, migrates=migrates, read_only=read_only) as store:
        yield store


@asynccontextmanager
async def alone(store: Driver, job: Job, doing: str) -> AsyncIterator[JobClaims]:
    """Claim a job of the whole store while the block runs. If another process does it, say so, and wait for its end."""
    worker, told = RunWorker(store), False
    claims = JobClaims(store, worker)
    try:
        while True:
            async with claims.claimed(job) as ours:
                if ours:
                    yield claims
                    return
            async with store.reading() as tx:
                owner = await job.owner(tx)
            if owner is not None:  # the worker's renewal finds out whether it is dead
                if not told:
                    echo(
                        "{} is {} this store: waiting until it has finished.",
                        translate(place_of(owner)),
                        say(doing),
                        err=True,
                    )
                told = True
                await asyncio.sleep(_LOOK_SECONDS)
    finally:
        await worker.close()


async def is_there(address: str) -> bool:
    """Return whether there is a store, as far as this can be checked without making one."""
    if not is_postgres(address):
        return why_none(address) is None
    try:
        async with open_store(address, creates=False, migrates=False):
            return True
    except StoreUnavailable:
        return False


def some(items: Sequence[str]) -> str:
    """The first few of many, for a message."""
    more = len(items) - _MOST_SHOWN
    return ", ".join(items[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
