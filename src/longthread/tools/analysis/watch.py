"""Stops work that takes too long, from another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

_AGAIN = 0.1
"""Seconds between interrupts: one between two statements has no effect, so it is repeated."""

GRACE = 2.0
"""Seconds after which work that ignores interrupts is abandoned."""


class Interrupted(Exception):
    """The engine stopped a statement on request."""


class Watch:
    """Interrupts a connection at a timeout or on `stop`, repeatedly, until the work has ended. After `GRACE` seconds
    more it calls `overdue` once, in its own thread."""

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
        """Interrupts now. Thread-safe, also before the work has begun."""
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
