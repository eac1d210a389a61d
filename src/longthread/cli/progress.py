"""How far long work is, on a terminal, and what it has not taken along: damaged threads, waiting questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from longthread.cli.language import is_chinese, say, translate
from longthread.cli.screen import Console, echo
from longthread.errors import StoreDamaged


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
