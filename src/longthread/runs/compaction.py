"""Ended runs are put together behind a thread's turns."""

from __future__ import annotations

from collections.abc import Sequence

from longthread.context.window import Spot
from longthread.memory.background import Background
from longthread.model.thread import Thread
from longthread.store.bundling import BEHIND_A_TURN, bundle_some
from longthread.store.driver import Driver

EVERY = 2 * BEHIND_A_TURN
"""A thread is looked at each time that it has so many more entries: a question and an answer for each run."""


def keep_together(store: Driver, background: Background, thread: Thread, spots: Sequence[Spot]) -> None:
    """Have a thread's runs put together in the background, if there may be enough of them by now.

    Args:
        thread: as it was when its last run began.
        spots: its window as that run has left it.
    """
    if thread.entry_count // EVERY == spots[-1].entry.seq // EVERY:
        return

    async def bundle() -> None:
        await bundle_some(store, thread.id)

    background.start(f"bundle {thread.id}", bundle, failing=f"The runs of thread {thread.id} could not be put together")
