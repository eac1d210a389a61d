"""Serializes the writers of one process on one thread, in their order of arrival."""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakValueDictionary

RECENT = 64
"""Threads whose locks are kept for the next one: to make and to drop one takes three times as long as to have it."""


class ThreadLocks:
    """Locks of the threads being written.

    The database would serialize them too. But the next writer of the same process already has the thread's new state:
    LangGraph stores a task's writes and the next checkpoint side by side.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._recent: deque[asyncio.Lock] = deque(maxlen=RECENT)

    def of(self, thread_id: str) -> asyncio.Lock:
        """Return a thread's lock. It exists at least as long as somebody holds it."""
        lock = self._locks.get(thread_id)
        if lock is None:
            lock = self._locks[thread_id] = asyncio.Lock()
            self._recent.append(lock)
        return lock
