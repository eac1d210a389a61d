"""Workers that wait, between two runs, for the next source over the same data."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longthread.tools.analysis.isolation.remote import Worker

_IDLE_SECONDS = 60.0


@dataclass(frozen=True)
class _Waiting:
    worker: Worker
    key: object
    since: float


class IdleWorkers:
    """At most `most` workers without a connection, for `seconds` each. Thread-safe.

    A worker is handed out once, to whoever has an equal key. The one that has waited longest ends when there are too
    many.
    """

    def __init__(self, most: int, seconds: float = _IDLE_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        """The one that has waited longest first."""
        self._timer: threading.Timer | None = None
        self._closed = False

    def take(self, key: object) -> Worker | None:
        """The worker that was kept last under an equal key, and lives."""
        while True:
            with self._lock:
                found = next((each for each in reversed(self._waiting) if each.key == key), None)
                if found is None:
                    return None
                self._waiting.remove(found)
            if found.worker.lives():
                return found.worker
            found.worker.end()

    def keep(self, key: object, worker: Worker) -> None:
        """Keeps a worker, or ends it if none may wait."""
        with self._lock:
            dropped = [_Waiting(worker, key, time.monotonic())]
            if not self._closed:
                self._waiting += dropped
                over = max(0, len(self._waiting) - self._most)
                dropped, self._waiting = self._waiting[:over], self._waiting[over:]
                self._watch()
        _end(dropped)

    def _expire(self) -> None:
        """Ends those that have waited too long."""
        with self._lock:
            until = time.monotonic() - self._seconds
            dropped = [each for each in self._waiting if each.since <= until]
            self._waiting = [each for each in self._waiting if each.since > until]
            self._timer = None
            self._watch()
        _end(dropped)

    def close(self) -> None:
        """Ends all that wait. Those that are kept later end at once."""
        with self._lock:
            self._closed = True
            dropped, self._waiting = self._waiting, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        _end(dropped)

    def _watch(self) -> None:
        """Has `_expire` called when the first has waited long enough."""
        if self._waiting and self._timer is None:
            left = self._waiting[0].since + self._seconds - time.monotonic()
            self._timer = threading.Timer(max(0.0, left), self._expire)
            self._timer.daemon = True
            self._timer.start()


def _end(dropped: list[_Waiting]) -> None:
    for each in dropped:
        each.worker.end()
