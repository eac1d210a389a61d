"""A store that is open on the event loop of a daemon thread, for synchronous callers."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import weakref
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from longthread.errors import LongthreadError
from longthread.loop_bridge import Portal
from longthread.store.driver import Driver
from longthread.store.open import open_store

_log = logging.getLogger(__name__)


class StoreThread:
    """Opens a store, and keeps it open until `close()`, or until nothing refers to this object, or the process ends.

    `store` is used on its own event loop alone, through `portal`. Raises what `open_store` does.
    """

    def __init__(self, address: str, *, read_only: bool) -> None:
        opened: Future[_Opened] = Future()
        self._thread = threading.Thread(
            target=_serve, args=(address, read_only, opened), name="longthread-states", daemon=True
        )
        self._thread.start()
        self._opened = opened.result()
        self.store, self.portal = self._opened.store, self._opened.portal
        self._end = weakref.finalize(self, self._opened.end)
        self._end.atexit = False  # the thread must not begin to close the store while Python ends

    def close(self) -> None:
        """Wait for what is under way, and close the store. Idempotent."""
        self._end()
        if os.getpid() == self._opened.process:
            self._thread.join()


@dataclass(frozen=True, slots=True)
class _Opened:
    """A store that is open on the event loop of a thread."""

    store: Driver
    portal: Portal
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    process: int

    def end(self) -> None:
        """Have the thread close the store and end; from any thread, any number of times."""
        if os.getpid() == self.process:  # a forked process shares the loop's socket, and not its thread
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self.stop.set)


def _serve(address: str, read_only: bool, opened: Future[_Opened]) -> None:
    """Keep a store open until it is told to stop. Runs in a thread."""
    try:
        # psycopg cannot run on the loop that Windows uses by default.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(_keep_open(address, read_only, opened))
    except LongthreadError as error:
        if opened.exception() is None:
            _log.warning("the store was not closed: %s", error)


async def _keep_open(address: str, read_only: bool, opened: Future[_Opened]) -> None:
    try:
        async with open_store(address, read_only=read_only) as store:
            stop, portal = asyncio.Event(), Portal()
            opened.set_result(_Opened(store, portal, asyncio.get_running_loop(), stop, os.getpid()))
            await stop.wait()
            await portal.close()
    finally:
        if not opened.done():  # whoever waits for the store learns why there is none
            opened.set_exception(sys.exception())
