"""The threads of one open store that are to be read once they are quiet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from longthread.errors import LongthreadError, StoreClosed, ThreadNotFound
from longthread.langgraph.backend import Backend

_logger = logging.getLogger(__name__)
_Key = tuple[str, str]


@dataclass(slots=True)
class _Submitted:
    """A thread that waits or is read. `is_due`: it is to be read, again if it is being read."""

    backing: Backend
    thread_id: str
    loop: Any = None
    is_due: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def set(self, loop: Any, *, is_due: bool) -> None:
        self.loop, self.is_due = loop, is_due
        self.changed.set()


class Submissions:
    """Reads each thread once it was quiet for some seconds, with one task for each. Used on the store's loop alone."""

    def __init__(
        self, seconds: float, read: Callable[[Backend, str, Any], Awaitable[Any]], *, at_end: Callable[[], Any]
    ) -> None:
        """`read` reads a thread, given the loop to ask the model on. `at_end` is called when the store is closed."""
        self._seconds = seconds
        self._read = read
        self._at_end = at_end
        self._threads: dict[_Key, _Submitted] = {}
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    def lock(self, user_id: str, thread_id: str) -> asyncio.Lock:
        """Return the lock of who reads a thread: what one call reads, another one need not."""
        return self._locks.setdefault((user_id, thread_id), asyncio.Lock())

    async def submit(self, backing: Backend, thread_id: str, loop: Any) -> None:
        """Read a thread once it is quiet from now on, and after it was read if it is being read."""
        there = self._threads.setdefault((backing.user_id, thread_id), _Submitted(backing, thread_id))
        there.set(loop, is_due=True)
        if there.task is None:
            self._begin(there)

    async def cancel(self, backing: Backend, thread_id: str) -> None:
        """Do not read a thread that waits. What is being read is read to its end."""
        there = self._threads.get((backing.user_id, thread_id))
        if there is not None:
            there.set(there.loop, is_due=False)

    async def settle(self) -> None:
        await asyncio.sleep(0)  # what has just been submitted begins
        while tasks := {each.task for each in self._threads.values() if each.task is not None}:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    async def close(self) -> None:
        self._at_end()
        tasks = [each.task for each in self._threads.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, there: _Submitted) -> None:
        there.task = asyncio.get_running_loop().create_task(self._quiet(there))
        there.task.add_done_callback(lambda task: self._done(there, task))

    async def _quiet(self, there: _Submitted) -> None:
        while there.is_due:
            there.changed.clear()
            if not await there.backing.home.pause(self._seconds, until=there.changed):
                there.is_due = False  # the store is being closed
            elif not there.changed.is_set():
                there.is_due = False
                await self._read(there.backing, there.thread_id, there.loop)

    def _done(self, there: _Submitted, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StoreClosed | ThreadNotFound):
            _logger.warning(
                "No memories could be taken from thread %s; it is tried again after its next turn: %s",
                there.thread_id,
                error,
                exc_info=None if isinstance(error, LongthreadError) else error,
            )
        if there.is_due and not task.cancelled():
            self._begin(there)
        else:
            del self._threads[there.backing.user_id, there.thread_id]
