"""Who asked for what is being stored, and whether that one may still be at work.

LangGraph stores in the background, one checkpoint after the other. A run that is broken off while it waits for that
(cancelled at its end or twice, interrupted from the keyboard) is over, and what it has handed in is stored all the
same. The next run of the thread must go on from there. So whoever looks for where to go on waits for those stores.

Each look leaves a mark with the task or thread that looked; LangGraph's background work inherits the mark.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from weakref import ref

from longthread.errors import ThreadConflict
from longthread.model.lru import LRU

STEPS = 8
"""So many turns of its event loop after a store, LangGraph has begun the next one if it waited for that."""


PLACES = 8192
"""Namespaces of threads whose last put is remembered."""
_numbers = count(1)


class StoreCaller:
    """A task, or a thread without one, that has looked; `number` says when."""

    __slots__ = ("_task", "_thread", "number")

    def __init__(self) -> None:
        self.number = next(_numbers)
        task = _current_task()
        self._task = ref(task) if task is not None else None
        self._thread = threading.current_thread() if task is None else None

    def may_be_at_work(self) -> bool:
        """Whether its run may still go on. Not while it asks for something else, nor when it was broken off."""
        if self._thread is not None:
            return self._thread.is_alive() and self._thread is not threading.current_thread()
        task = self._task() if self._task is not None else None
        return task is not None and not task.done() and not task.cancelling() and task is not _current_task()

    def comes_after(self, other: StoreCaller) -> bool:
        """Whether the other is an earlier run of the same task or thread: it was over when this one looked."""
        return self._task is other._task and self._thread is other._thread and self.number > other.number


_caller: ContextVar[StoreCaller | None] = ContextVar("longthread_caller", default=None)


class _Store:
    """Something of a thread that is being stored; for some turns of its loop it is remembered after its end."""

    __slots__ = ("caller", "ended", "loop")

    def __init__(self, caller: StoreCaller) -> None:
        self.caller = caller
        self.loop = _running_loop()
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()  # who waits for it may stop, but not end it

    def is_of_interest(self) -> bool:
        """Whether who goes on with the thread waits for it, and for what LangGraph stores next."""
        waits = not self.ended.done() or self.loop is _running_loop()
        return waits and not self.caller.may_be_at_work()


class InflightWrites:
    """What is being stored of each thread, on behalf of whom. Used from all threads and event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[str, set[_Store]] = {}
        self._last_puts = LRU[tuple[str, str], tuple[int, StoreCaller]](PLACES)

    @contextmanager
    def one(self, thread_id: str) -> Iterator[None]:
        """While this is open, something of a thread is being stored."""
        caller = _caller.get()
        if caller is None:
            yield  # not by a run: those look first
            return
        store = _Store(caller)
        with self._lock:
            self._stores.setdefault(thread_id, set()).add(store)
        try:
            yield
        finally:
            store.ended.set_result(None)
            if store.loop is None:
                self._drop(thread_id, store)
            else:
                store.loop.call_soon(self._fade, thread_id, store, STEPS)

    async def asettle(self, thread_id: str) -> None:
        """Wait for the stores of runs that are over. The one that asks is known from now on."""
        while found := self._of_interest(thread_id):
            left = [store.ended for store in found if not store.ended.done()]
            await (_ended(left) if left else asyncio.sleep(0))
        _caller.set(StoreCaller())

    def settle(self, thread_id: str) -> None:
        """The same, without `await`."""
        while left := [store.ended for store in self._of_interest(thread_id) if not store.ended.done()]:
            wait(left)
        _caller.set(StoreCaller())

    async def aovertake(self, thread_id: str, ns: str) -> bool:
        """To be asked before a put: whether a run that is over has put something here since this one looked.

        It may, for who looks cannot know what LangGraph has not handed in yet. From now on it may not.

        Raises:
            ThreadConflict: this run is over itself, and a later one has put something here.
        """
        before, overtakes = self._take_over(thread_id, ns)
        if before:
            await _ended(before)
        return overtakes

    def overtake(self, thread_id: str, ns: str) -> bool:
        """The same, without `await`."""
        before, overtakes = self._take_over(thread_id, ns)
        wait(before)
        return overtakes

    def _take_over(self, thread_id: str, ns: str) -> tuple[list[Future[None]], bool]:
        """What still is to be waited for, and whether it is to be left aside."""
        caller = _caller.get()
        if caller is None:
            return [], False
        with self._lock:
            number, last = self._last_puts.get((thread_id, ns)) or (0, caller)
            if last.comes_after(caller):
                raise ThreadConflict(thread=thread_id)
            self._last_puts.put((thread_id, ns), (next(_numbers), caller))
            stores = [store for store in self._stores.get(thread_id, ()) if caller.comes_after(store.caller)]
        before = [store.ended for store in stores if not store.ended.done()]
        return before, caller.comes_after(last) and number > caller.number

    def _of_interest(self, thread_id: str) -> list[_Store]:
        with self._lock:
            stores = list(self._stores.get(thread_id, ()))
        for store in stores:
            if store.loop is not None and store.loop.is_closed():
                self._drop(thread_id, store)
        return [store for store in stores if store.is_of_interest()]

    def _fade(self, thread_id: str, store: _Store, steps: int) -> None:
        assert store.loop is not None
        if steps:
            store.loop.call_soon(self._fade, thread_id, store, steps - 1)
        else:
            self._drop(thread_id, store)

    def _drop(self, thread_id: str, store: _Store) -> None:
        with self._lock:
            others = self._stores.get(thread_id, set())
            others.discard(store)
            if not others:
                self._stores.pop(thread_id, None)


async def _ended(stores: Iterable[Future[None]]) -> None:
    waited = [asyncio.wrap_future(store) for store in stores]
    try:
        await asyncio.wait(waited)
    finally:
        for each in waited:
            each.cancel()  # who stops waiting need not be told, maybe on a loop that is closed by then


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
