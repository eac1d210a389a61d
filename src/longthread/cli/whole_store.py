"""Work on a store as a whole, from the command line: how far it is, what it left out, and the file that it writes.

A file that holds something else is never lost for an export.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from longthread.cli.language import is_chinese, say, translate
from longthread.cli.terminal import Console, echo
from longthread.errors import InvalidInput, StoreDamaged, StoreUnavailable
from longthread.runs.worker import RunWorker, place_of
from longthread.settings import EMBEDDED, Settings
from longthread.store.driver import Driver
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.open import is_postgres, open_store, why_none

T = TypeVar("T")
_STOPPED = "Stopped. What was done is kept; give the command again to go on."
_MOST_SHOWN = 5
_LOOK_SECONDS = 0.5


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do what a command has to do; Ctrl-C and SIGTERM break it off.

    What is under way is rolled back, files that are not complete are deleted, and nothing else is lost by that.
    """
    terminated = False

    async def work_until_terminated() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def terminate() -> None:
            nonlocal terminated
            terminated = True
            if task is not None:
                task.cancel()

        with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            loop.add_signal_handler(signal.SIGTERM, terminate)
        return await work

    try:
        return asyncio.run(work_until_terminated())
    except KeyboardInterrupt:
        echo(_STOPPED, err=True)
        raise
    except asyncio.CancelledError as error:
        if not terminated:
            raise
        echo(_STOPPED, err=True)
        raise typer.Exit(128 + signal.SIGTERM) from error


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
            async with claims.claim(job) as ours:
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


class ProgressBar:
    """A bar that shows the progress that it gets."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def __call__(self, done: int, total: int, what: str) -> None:
        self._bar.update(self._task, completed=done, total=total, what=escape(what))

    def say(self, what: str) -> None:
        """Show what is being done, whatever part of the whole that is."""
        self._bar.update(self._task, what=escape(translate(what)))


@contextmanager
def show_progress(label: str) -> Iterator[ProgressBar]:
    """A bar on standard error while the block runs; on anything but a terminal nothing is shown."""
    console = Console(stderr=True)
    columns = (
        TextColumn(f"[dim]{escape(say(label))}[/dim]"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[what]}[/dim]"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield ProgressBar(bar, bar.add_task(label, total=None, what=""))


def bytes_text(count: int) -> str:
    """A number of bytes for people."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return say("{} bytes", count)


def count_noun(number: int, noun: str) -> str:
    """A number and its noun."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    # Chinese has one form, by which it is found.
    template = f"{{:,}} {noun if number == 1 and not is_chinese() else plural}"
    return say(template, number)


def leave_questions(count: int) -> None:
    """Say how many questions wait in the store, and are not taken along."""
    if count:
        echo("Not taken along: {} of the queue. This store asks them.", count_noun(count, "question"), err=True)


_REMEDY = (
    "Keep a copy of the store; then restore a backup, or take what can still be read with `longthread threads export`, "
    "and the rows as they are with `longthread db copy`. `longthread threads delete` deletes the thread."
)


def leave_damaged(done: str, damaged: Mapping[str, str], *, quiet: bool = False) -> None:
    """End a command that has passed over threads: print to standard error what is damaged of each.

    Args:
        done: what was done with the others.
        quiet: the command has already printed it.
    """
    if not damaged:
        return
    if not quiet:
        for thread_id, reason in damaged.items():
            echo("Not {}, for it is damaged: thread {}: {}", say(done), thread_id, translate(reason), err=True)
        echo(_REMEDY, err=True)
    raise typer.Exit(StoreDamaged.exit_code)


SQLITE = b"SQLite format 3\0"
"""What the file of a SQLite database begins with."""
_WAL = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
BESIDE = ("", "-wal", "-shm", "-journal")
"""The ends of the names of a SQLite database's files."""


@contextmanager
def output(to: Path | None, store: str, *, force: bool) -> Iterator[BinaryIO]:
    """Where an export goes: a file, or standard output. It gets the file's name when it is complete, and so one that is
    there stays until then.

    Args:
        store: the address of the store that is exported.
        force: a file that is there is replaced, unless it belongs to a store or is a database.

    Raises:
        InvalidInput: the file may not be written, or cannot; the message says why.
    """
    if to is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = to.resolve()  # what a link leads to is replaced, and the link stays
        _expect_writable(file, to, store, force=force)
        if file.exists() and not file.is_file():  # such as a pipe
            with file.open("wb") as pipe:
                yield pipe
            return
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as written:
                yield written
                written.flush()
                os.fsync(written.fileno())
            _expect_writable(file, to, store, force=force)  # it may be there by now
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(reason=f"{to} cannot be written: {error.strerror}.") from error


def _expect_writable(file: Path, to: Path, store: str, *, force: bool) -> None:
    if _is_of(file, store):
        raise InvalidInput(reason=f"{to} belongs to the store that is exported. Give another file.")
    if file.is_dir():
        raise InvalidInput(reason=f"{to} is a folder. Give the name of a file in it.")
    if not file.is_file():
        return
    # Here and not above: it comes with all that reads SQL, which takes time to load.
    from longthread.tools.analysis.engines.sqlite import is_sqlite

    # First of all by SQLite itself: what it has open here would lose its locks.
    if is_sqlite(file) or _begins_with(file, SQLITE, *_WAL):
        raise InvalidInput(reason=f"{to} is a SQLite database, and is not overwritten. Give another file.")
    if not force:
        raise InvalidInput(reason=f"{to} is there already. Give another file, or --force to replace it.")


def _begins_with(file: Path, *marks: bytes) -> bool:
    with file.open("rb") as there:
        return there.read(len(SQLITE)).startswith(marks)


def _is_of(file: Path, store: str) -> bool:
    """Whether a file is one of a store's, by whatever name."""
    if is_postgres(store):
        return False
    if store.startswith(f"{EMBEDDED}:"):
        return file.is_relative_to(Path(store.removeprefix(f"{EMBEDDED}:")).resolve())
    base = Path(store).resolve()
    own = [base.with_name(base.name + end) for end in BESIDE]
    return file in own or (file.exists() and any(each.exists() and each.samefile(file) for each in own))
