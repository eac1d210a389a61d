"""Stops work that takes too long, from another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

_AGAIN = 0.1
"""Seconds between two interrupts: one that falls between two statements stops nothing, so it is repeated."""

GRACE = 2.0
"""Seconds after which nobody waits any more for work that does not heed its interrupts."""


class Interrupted(Exception):
    """The engine stopped a statement because it was told to. Who told it knows why."""


class Watch:
    """Interrupts a connection when time is up or when told to stop, and repeats it until the work has ended.

    `overdue` is called once, in the watch's thread, when the work goes on for `GRACE` seconds in spite of that.
    """

    def __init__(
        self, interrupt: Callable[[], None], seconds: float, overdue: Callable[[], None] | None = None
    ) -> None:
        self._interrupt = interrupt
        self._seconds = seconds
        self._overdue = overdue
        self._wake = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._guard, name="longthread-watch", daemon=True)
        self.stopped = False
        self.expired = False

    def stop(self) -> None:
        """Interrupts now. May be called from any thread, before the work has begun too."""
        self.stopped = True
        self._wake.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._wake.set()
        self._thread.join()

    def _guard(self) -> None:
        self._wake.wait(self._seconds)
        until = time.monotonic() + GRACE
        while not self._done.is_set():
            self.expired = not self.stopped
            self._interrupt()
            if self._done.wait(_AGAIN) or self._overdue is None or time.monotonic() < until:
                continue
            self._overdue()
            self._overdue = None
