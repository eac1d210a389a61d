"""How callers on other threads and other event loops reach what lives on one event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, ParamSpec, TypeVar

from longthread.errors import CalledOnItsLoop, SaverClosed

T = TypeVar("T")
P = ParamSpec("P")

ALIVE_SECONDS = 1.0
"""How often a waiting thread looks whether the loop that it waits for still runs."""


class Portal:
    """The event loop on which a store was opened: its coroutines run there and nowhere else.

    Without a running loop where the portal is made, it is the loop of the first coroutine that is awaited through it.
    """

    def __init__(self) -> None:
        self._loop = _running_loop()
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._closed = False
        self._process = os.getpid()

    @property
    def here(self) -> bool:
        """Whether the caller runs on the portal's loop."""
        return self._loop is not None and _running_loop() is self._loop

    def require_open(self) -> None:
        """Make sure that calls still get through.

        Raises:
            SaverClosed: the portal was closed, or is another process's.
        """
        if self._closed:
            raise SaverClosed(reason="its block has ended.")
        if os.getpid() != self._process:
            # The loop's thread was not forked with the rest.
            raise SaverClosed(reason="this process was forked off after it was opened. Open one in each process.")

    async def run(self, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `work(…)` on the portal's loop, from any loop.

        Raises:
            SaverClosed: the portal was closed, or its loop has ended.
        """
        self.require_open()
        self._loop = self._loop or asyncio.get_running_loop()
        if self.here:
            return await work(*args, **kwargs)
        return await asyncio.wrap_future(self._send(work(*args, **kwargs)))

    def call(self, method: str, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work(…)` on the portal's loop and wait for it, from any thread but the loop's own.

        Raises:
            CalledOnItsLoop: it would wait for itself; `method` is what the message calls it.
            SaverClosed: the portal was closed, or its loop does not run.
        """
        self.require_open()
        if self.here:
            raise CalledOnItsLoop(method=method)
        sent = self._send(work(*args, **kwargs))
        while True:
            try:
                return sent.result(timeout=ALIVE_SECONDS)
            except CancelledError:
                raise SaverClosed(reason="the event loop that it was opened on has ended.") from None
            except TimeoutError:
                if sent.done():
                    return sent.result()  # or the work's own error
                # On a loop that has stopped, nobody would ever finish it.
                self._running(self._loop)

    async def close(self) -> None:
        """Let what others have sent come to its end, and take nothing more. To be awaited on the portal's loop."""
        self._closed = True
        while tasks := {task for task in self._tasks if task is not None}:
            await asyncio.wait(tasks)

    def _send(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        tracked = self._tracked(work)
        try:
            return asyncio.run_coroutine_threadsafe(tracked, self._running(self._loop))
        except BaseException:
            tracked.close()
            work.close()
            raise

    async def _tracked(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        try:
            self.require_open()
            self._tasks.add(task)
            return await work
        finally:
            work.close()
            self._tasks.discard(task)

    @staticmethod
    def _running(loop: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        if loop is None or not loop.is_running():
            raise SaverClosed(reason="the event loop that it was opened on does not run.")
        return loop


async def several(items: AsyncIterator[T], count: int) -> list[T]:
    """The next `count` items, fewer at the end: one trip through the portal for all of them."""
    found: list[T] = []
    async for item in items:
        found.append(item)
        if len(found) == count:
            break
    return found


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
