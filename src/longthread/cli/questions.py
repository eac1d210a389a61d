"""Questions that wait in a store that is exported or copied."""

from __future__ import annotations

from longthread.cli.progress import counted
from longthread.cli.screen import echo


def leave_questions(count: int) -> None:
    """Say how many questions wait in the store, and are not taken along."""
    if count:
        echo("Not taken along: {} of the queue. This store asks them.", counted(count, "question"), err=True)
