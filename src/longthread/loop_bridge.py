"""Calls from other threads and event loops into the event loop of a store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import ExitStack, suppress
from contextvars import Context
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakMethod

from longthread.errors import CalledOnItsLoop, SaverClosed

T = TypeVar("T")
P = ParamSpec("P")
Closer = Callable[[], Coroutine[Any, Any, None]]

ALIVE_SECONDS = 1.0
"""How often who waits looks whether the loop that it waits for still runs."""
GRACE_SECONDS = 2.0
"""How long closing waits for what goes on in the background."""
_ENDED = "the event loop that it was opened on has ended."


class Portal:
    """The event loop on which a store was opened: its coroutines run only there.

    If no loop runs when the portal is created, the loop of the first coroutine awaited through it is used. A caller
    that is cancelled or interrupted cancels the work and waits for its end: it is stored by then, or never.
    """

    def __init__(self) -> None:
        self._loop = _running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._behind: set[asyncio.Task[None]] = set()
        self._closers: dict[WeakMethod[Closer], None] = {}
        self._closed = False
        self._closing = asyncio.Event()
        self._process = os.getpid()

    @property
    def here(self) -> bool:
        return self._loop is not None and _running_loop() is self._loop

    def require_open(self) -> None:
        """Raise SaverClosed if the portal was closed or belongs to another process."""
        if self._closed:
            raise SaverClosed(reason="its block has ended.")
        if os.getpid() != self._process:
            # The loop's thread was not forked with the rest.
            raise SaverClosed(reason="this process was forked off after it was opened. Open one in each process.")

    def require_callable(self, method: str) -> None:
        """Check that this thread can wait for the loop; `method` names the caller in the message.

        Raises:
            CalledOnItsLoop: the thread would wait for itself.
            SaverClosed: the portal was closed, or belongs to another process.
        """
        self.require_open()
        if self.here:
            owner, dot, name = method.rpartition(".")
            raise CalledOnItsLoop(method=method, twin=f"{owner}{dot}a{name}")

    async def run(self, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `work(…)` on the portal's loop, from any loop; SaverClosed if the portal or its loop is closed."""
        self.require_open()
        self._loop = self._loop or asyncio.get_running_loop()
        if self.here:
            task = self._track_task(self._loop.create_task(work(*args, **kwargs)))
            return await _to_its_end(task, task.cancel)
        sent = self._send(work(*args, **kwargs))
        return await _to_its_end(asyncio.wrap_future(sent.result), sent.cancel, sent.require_loop)

    def call(self, method: str, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work(…)` on the portal's loop and wait for it, from any thread but the loop's own.

        Raises:
            CalledOnItsLoop: the thread would wait for itself; `method` names the caller in the message.
            SaverClosed: the portal was closed, or its loop does not run.
        """
        self.require_callable(method)
        sent = self._send(work(*args, **kwargs))
        try:
            return sent.wait()
        finally:
            if not sent.result.done():  # KeyboardInterrupt, or what another signal's handler raises
                sent.cancel()
                with suppress(Exception):  # what interrupted the wait is raised, not how the work ended
                    sent.wait()

    def start(self, work: Callable[P, Coroutine[Any, Any, None]], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Start `work(…)` in the background on the portal's loop, from any thread; return whether it was started.

        Nobody waits for it, so `work` must handle its own errors. Closing the portal cancels it after `GRACE_SECONDS`.
        """
        if self._closed or self._loop is None or not self._loop.is_running() or os.getpid() != self._process:
            return False
        # No context of the caller: this work is not part of what it traces or streams.
        self._loop.call_soon_threadsafe(self._begin_behind, lambda: work(*args, **kwargs), context=Context())
        return True

    def at_close(self, closer: Closer) -> None:
        """Register a method that stops background work; it is awaited on the portal's loop at close.

        Its object is not kept alive: a program may make one for each request."""
        self._closers[WeakMethod(closer, lambda dead: self._closers.pop(dead, None))] = None

    async def pause(self, seconds: float, until: asyncio.Event | None = None) -> bool:
        """Sleep in the background, at most until the event is set; False when the portal is being closed and the caller
        must end."""
        waited = [asyncio.ensure_future(event.wait()) for event in (self._closing, until) if event is not None]
        try:
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waited:
                each.cancel()
        return not self._closed

    async def settle(self) -> None:
        """Wait for the background work. Await it on the portal's loop."""
        await asyncio.sleep(0)  # what has just been started begins
        while self._behind:
            await asyncio.wait(self._behind)

    async def close(self) -> None:
        """Accept no more work, and wait for what has begun. Await it on the portal's loop."""
        self._closed = True
        self._closing.set()
        await self._close_behind()
        for each in list(self._closers):
            if (closer := each()) is not None:
                await closer()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _send(self, work: Coroutine[Any, Any, T]) -> _Sent[T]:
        with ExitStack() as undoing:
            undoing.callback(work.close)
            if self._loop is None or not self._loop.is_running():
                raise SaverClosed(reason="the event loop that it was opened on does not run.")
            sent = _Sent(work, self._loop)
            self._loop.call_soon_threadsafe(self._begin, sent)
            undoing.pop_all()
        return sent

    def _begin(self, sent: _Sent[Any]) -> None:
        if self._closed:
            sent.refuse("its block has ended.")
        else:
            self._track_task(sent.begin())

    def _begin_behind(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if not self._closed:
            assert self._loop is not None
            task = self._loop.create_task(work())
            self._behind.add(task)
            task.add_done_callback(self._behind.discard)

    async def _close_behind(self) -> None:
        tasks = set(self._behind)
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _track_task(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Sent(Generic[T]):
    def __init__(self, work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self.result: Future[T] = Future()
        self._work = work
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        # Shielded: it ends when the work does.
        self.result.set_running_or_notify_cancel()

    def begin(self) -> asyncio.Task[T]:
        """Start the work. Called on the loop."""
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._finish)
        return self._task

    def cancel(self) -> None:
        """Cancel the work, from any thread. The result comes when it has ended."""
        with suppress(RuntimeError):  # the loop was closed, which whoever waits will find out
            self._loop.call_soon_threadsafe(self._cancel)

    def wait(self) -> T:
        """Wait for the result, from another thread."""
        while True:
            try:
                return self.result.result(timeout=ALIVE_SECONDS)
            except TimeoutError:
                if self.result.done():
                    return self.result.result()  # or the work's own error
                self.require_loop()

    def require_loop(self) -> None:
        """Set an error as the result if the loop has stopped: nothing else would ever finish it."""
        if not self._loop.is_running():
            self.refuse(_ENDED)

    def refuse(self, reason: str) -> None:
        if self._task is None:
            self._work.close()
        with suppress(InvalidStateError):  # it has come to its end meanwhile
            self.result.set_exception(SaverClosed(reason=reason))

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        with suppress(InvalidStateError):  # whoever waited was told that the loop does not run
            if task.cancelled():
                self.result.set_exception(SaverClosed(reason=_ENDED))
            elif error := task.exception():
                self.result.set_exception(error)
            else:
                self.result.set_result(task.result())


async def several(items: AsyncIterator[T], count: int) -> list[T]:
    """Return the next `count` items, fewer at the end, in one call through the portal."""
    found: list[T] = []
    async for item in items:
        found.append(item)
        if len(found) == count:
            break
    return found


async def until_done(future: asyncio.Future[Any], seconds: float | None = None) -> None:
    """Wait until a future is done, at most so many seconds. A caller that is cancelled does not cancel it.

    `asyncio.wait` does the same for any number, and takes several times as long for one.
    """
    loop = future.get_loop()
    waiter = loop.create_future()
    wake = partial(_wake, waiter)
    timer = loop.call_later(seconds, wake) if seconds is not None else None
    future.add_done_callback(wake)
    try:
        await waiter
    finally:
        future.remove_done_callback(wake)
        if timer is not None:
            timer.cancel()


def _wake(waiter: asyncio.Future[None], _future: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _to_its_end(
    result: asyncio.Future[T], cancel: Callable[[], Any], look: Callable[[], None] | None = None
) -> T:
    """Wait for the result. A cancelled caller cancels the work once, and still waits for its end."""
    cancelled: asyncio.CancelledError | None = None
    while not result.done():
        try:
            await until_done(result, ALIVE_SECONDS if look else None)
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancel()
            cancelled = cancelled or error
        if look:
            look()
    if cancelled is None:
        return result.result()
    if not result.cancelled():
        result.exception()  # has been looked at
    raise cancelled


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def to_the_end(work: Awaitable[T]) -> T:
    """Finish the work even if the awaiting task is cancelled; then raise its `CancelledError`, also if the work failed:
    who handles that error would go on."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError from (None if task.cancelled() else task.exception())
    return task.result()
