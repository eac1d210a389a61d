"""Threads that a command has passed over, for something of them is damaged."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from longthread.cli.language import say, translate
from longthread.cli.screen import echo
from longthread.errors import StoreDamaged

_REMEDY = (
    "Keep a copy of the store; then restore a backup, or take what can still be read with `longthread threads export`, "
    "and the rows as they are with `longthread db copy`. `longthread threads delete` deletes the thread."
)


def leave_damaged(done: str, damaged: Mapping[str, str], *, quiet: bool = False) -> None:
    """End a command that has passed over threads: what is damaged of each goes to standard error.

    Args:
        done: what was done with the others.
        quiet: it was told already.
    """
    if not damaged:
        return
    if not quiet:
        for thread_id, reason in damaged.items():
            echo("Not {}, for it is damaged: thread {}: {}", say(done), thread_id, translate(reason), err=True)
        echo(_REMEDY, err=True)
    raise typer.Exit(StoreDamaged.exit_code)
