"""Tracks which run asked for each store in progress, whether that run may still be at work, and who waits for it.

LangGraph stores checkpoints in the background, one after the other. A run that is cancelled or interrupted while it
waits for them is over, but its checkpoints are stored all the same, and the thread's next run must continue from them.
So a caller that reads the newest checkpoint first waits for those stores. Each read leaves a mark with its task or
thread; LangGraph's background work inherits the mark.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from weakref import WeakValueDictionary, ref

from longthread.errors import ThreadConflict
from longthread.langgraph.saver.parent_ids import NamespaceKey
from longthread.model.lru import LRU

STEPS = 8
"""So many turns of the event loop after a store, LangGraph has begun the next one if it waited for that."""
PLACES = 8192
"""Threads, and namespaces of threads, whose last stores are remembered."""
CALLERS = 16
"""Runs of a thread that are remembered to have stored."""
_numbers = count(1)
LAST_PUTS = 1024
"""Namespaces of threads whose last put is remembered."""
NEXT_SECONDS = 0.01
"""So long after a put, the next one is handed in if it waited for nothing else."""
RECENT_LOCKS = 64
"""Threads whose locks are kept for the next one: to make and to drop one takes three times as long as to have it."""


class StoreCaller:
    """A task, or a thread without one, that has read; `number` orders the reads."""

    __slots__ = ("_task", "_thread", "number")

    def __init__(self) -> None:
        self.number = next(_numbers)
        task = _current_task()
        self._task = ref(task) if task is not None else None
        self._thread = threading.current_thread() if task is None else None

    def may_be_at_work(self) -> bool:
        """Whether its run may still go on: not while it reads again, nor after it was cancelled."""
        if self._thread is not None:
            return self._thread.is_alive() and self._thread is not threading.current_thread()
        task = self._task() if self._task is not None else None
        return task is not None and not task.done() and not task.cancelling() and task is not _current_task()

    def may_be_of_this_context(self) -> bool:
        """Whether its run can have called this. A program's thread may have read before it began an event loop: the
        loop's tasks inherit that mark, and are other runs."""
        return self._thread is None or _current_task() is None

    def comes_after(self, other: StoreCaller) -> bool:
        """Whether `other` is an earlier run of the same task or thread, which was over before this one read."""
        return self._task is other._task and self._thread is other._thread and self.number > other.number


_caller: ContextVar[StoreCaller | None] = ContextVar("longthread_caller", default=None)


def run_at_work() -> int | None:
    """Return the number of the run that calls; None outside of runs, and where a wire lies between."""
    caller = _caller.get()
    return caller.number if caller is not None and caller.may_be_of_this_context() else None


class _Store:
    """A store in progress."""

    __slots__ = ("_has_ended", "_waiters", "caller", "loop")

    def __init__(self, caller: StoreCaller) -> None:
        self.caller = caller
        self.loop = _running_loop()
        self._has_ended = False
        self._waiters: list[Future[None]] = []

    def make_end_future(self) -> Future[None]:
        """Return a future that is done when the store has ended. With the lock held."""
        waiter: Future[None] = Future()
        waiter.set_running_or_notify_cancel()  # who waits for it may stop, but not end it
        self._waiters.append(waiter)
        if self._has_ended:  # the garbage collector has ended it just now, on this thread
            _done(waiter)
        return waiter

    def end(self) -> None:
        self._has_ended = True
        for waiter in self._waiters:
            _done(waiter)


class InflightWrites:
    """The stores in progress by thread, and their callers. Used from all threads and event loops."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may end a broken-off store on a thread that holds it
        self._stores: dict[str, set[_Store]] = {}
        self._stored = LRU[str, LRU[StoreCaller, ref[asyncio.AbstractEventLoop]]](PLACES)
        """Whose stores in a thread have ended, and on which loop, until a reader there has waited for more of them."""
        self._last_puts = LRU[tuple[str, str], tuple[int, StoreCaller]](PLACES)

    @contextmanager
    def one(self, thread_id: str) -> Iterator[None]:
        """Mark a store of the thread as in progress for the block."""
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
            self._end(thread_id, store)

    async def asettle(self, thread_id: str) -> None:
        """Wait for the stores of runs that are over, and for what LangGraph stores next; register the caller."""
        steps = STEPS
        while steps:
            if left := self._of_interest(thread_id):
                await _wait_for_ends(left)
                steps = STEPS
            elif self._has_more(thread_id):
                await asyncio.sleep(0)
                steps -= 1
            else:
                break
        self._has_waited(thread_id)
        _caller.set(StoreCaller())

    def settle(self, thread_id: str) -> None:
        """Wait for the stores of runs that are over, blocking; register the caller."""
        while left := self._of_interest(thread_id):
            wait(left)
        _caller.set(StoreCaller())

    async def aovertake(self, thread_id: str, ns: str) -> bool:
        """Whether a run that is over has stored a checkpoint since the caller read. Call it before a put.

        Such a run may: a reader cannot know what LangGraph has not handed in yet. After this call it may not.

        Raises:
            ThreadConflict: the caller itself is over, and a later run has stored a checkpoint here.
        """
        before, overtakes = self._take_over(thread_id, ns)
        if before:
            await _wait_for_ends(before)
        return overtakes

    def overtake(self, thread_id: str, ns: str) -> bool:
        """The same as `aovertake`, blocking."""
        before, overtakes = self._take_over(thread_id, ns)
        wait(before)
        return overtakes

    def _take_over(self, thread_id: str, ns: str) -> tuple[list[Future[None]], bool]:
        """Return what to wait for, and whether the put becomes a fork."""
        caller = _caller.get()
        if caller is None:
            return [], False
        with self._lock:
            number, last = self._last_puts.get((thread_id, ns)) or (0, caller)
            if last.comes_after(caller):
                raise ThreadConflict(thread=thread_id)
            self._last_puts.put((thread_id, ns), (next(_numbers), caller))
            stores = self._in_progress(thread_id)
            before = [store.make_end_future() for store in stores if caller.comes_after(store.caller)]
        return before, caller.comes_after(last) and number > caller.number

    def _end(self, thread_id: str, store: _Store) -> None:
        with self._lock:
            self._drop(thread_id, store)
            if store.loop is not None:
                stored = self._stored.peek(thread_id)
                if stored is None:
                    self._stored.put(thread_id, stored := LRU(CALLERS))
                stored.put(store.caller, ref(store.loop))
        store.end()

    def _of_interest(self, thread_id: str) -> list[Future[None]]:
        """Return the ends of the stores that the thread's next run waits for."""
        with self._lock:
            stores = self._in_progress(thread_id)
            return [store.make_end_future() for store in stores if not store.caller.may_be_at_work()]

    def _in_progress(self, thread_id: str) -> list[_Store]:
        """Return the thread's stores, without those on closed loops: they never end. With the lock held."""
        for store in list(self._stores.get(thread_id, ())):
            if store.loop is not None and store.loop.is_closed():
                self._drop(thread_id, store)
        return list(self._stores.get(thread_id, ()))

    def _has_more(self, thread_id: str) -> bool:
        """Return whether a finished run of this loop may still store in the thread: it has stored, and no caller has
        waited."""
        with self._lock:
            return bool(self._over(thread_id))

    def _has_waited(self, thread_id: str) -> None:
        with self._lock:
            stored = self._stored.peek(thread_id)
            if stored is None:
                return
            for caller in self._over(thread_id):
                stored.pop(caller)
            if not len(stored):
                self._stored.pop(thread_id)

    def _over(self, thread_id: str) -> list[StoreCaller]:
        """Return who has stored in the thread, on this loop, in a run that is over. With the lock held."""
        loop, stored = _running_loop(), self._stored.peek(thread_id)
        callers = stored.items() if stored is not None else ()
        return [caller for caller, on in callers if on() is loop and not caller.may_be_at_work()]

    def _drop(self, thread_id: str, store: _Store) -> None:
        others = self._stores.get(thread_id, set())
        others.discard(store)
        if not others:
            self._stores.pop(thread_id, None)


def _done(waiter: Future[None]) -> None:
    with suppress(InvalidStateError):
        waiter.set_result(None)


async def _wait_for_ends(stores: Iterable[Future[None]]) -> None:
    waited = [asyncio.wrap_future(store) for store in stores]
    try:
        await asyncio.wait(waited)
    finally:
        for each in waited:
            each.cancel()  # who stops waiting needs no signal, maybe on a loop that is closed by then


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


@dataclass(slots=True)
class LastPut:
    """A put: the checkpoint's id, its end, and the loop's time until which the next one is near."""

    id: str
    ended: asyncio.Future[None]
    near: float = 0

    def end(self) -> None:
        self.near = self.ended.get_loop().time() + NEXT_SECONDS
        self.ended.set_result(None)

    @property
    def is_near(self) -> bool:
        """Whether it goes on, or has ended so recently that the next one may not have been handed in yet."""
        return not self.ended.done() or self.ended.get_loop().time() < self.near

    def is_before(self, checkpoint_id: str | None) -> bool:
        """Return whether the checkpoint, or the one after it, is handed in when this put has ended."""
        return not self.ended.done() or (self.id != checkpoint_id and self.is_near)


class Puts:
    """The puts of a saver, on its event loop."""

    def __init__(self) -> None:
        self._last = LRU[NamespaceKey, LastPut](LAST_PUTS)
        self._watched: dict[NamespaceKey, set[asyncio.Event]] = {}

    @contextmanager
    def going_on(self, place: NamespaceKey, checkpoint_id: str) -> Iterator[None]:
        """Mark a checkpoint as being put for the block."""
        this = LastPut(checkpoint_id, asyncio.get_running_loop().create_future())
        self._last.put(place, this)
        try:
            yield
        finally:
            this.end()
            for event in self._watched.get(place, ()):
                event.set()

    def last(self, place: NamespaceKey) -> LastPut | None:
        return self._last.peek(place)

    @contextmanager
    def watch(self, place: NamespaceKey) -> Iterator[asyncio.Event]:
        """Return an event that each end of a put there sets, for the block."""
        event = asyncio.Event()
        self._watched.setdefault(place, set()).add(event)
        try:
            yield event
        finally:
            others = self._watched[place]
            others.discard(event)
            if not others:
                del self._watched[place]


class ThreadLocks:
    """Locks of the threads being written.

    The database would serialize them too. But the next writer of the same process already has the thread's new state:
    LangGraph stores a task's writes and the next checkpoint side by side.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._recent: deque[asyncio.Lock] = deque(maxlen=RECENT_LOCKS)

    def of(self, thread_id: str) -> asyncio.Lock:
        """Return a thread's lock. It exists at least as long as somebody holds it."""
        lock = self._locks.get(thread_id)
        if lock is None:
            lock = self._locks[thread_id] = asyncio.Lock()
            self._recent.append(lock)
        return lock
