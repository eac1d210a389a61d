"""Writers of one process on one thread: one after the other, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakValueDictionary

RECENT = 64
"""Threads whose locks are kept for the next one: to make and to drop one takes three times as long as to have it."""


class ThreadLocks:
    """The threads that are being written to.

    The database would have them wait as well. But who comes after another of the same process knows what has become of
    the thread, and need not look: LangGraph stores what a task has written and the checkpoint behind it side by side.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._recent: deque[asyncio.Lock] = deque(maxlen=RECENT)

    def of(self, thread_id: str) -> asyncio.Lock:
        """The lock of a thread. There is one at least as long as somebody has it."""
        lock = self._locks.get(thread_id)
        if lock is None:
            lock = self._locks[thread_id] = asyncio.Lock()
            self._recent.append(lock)
        return lock
