"""`Portal`: work on another loop, which may stop at any time."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from longthread.errors import CalledOnItsLoop, SaverClosed
from longthread.loop_bridge import Portal


class Home:
    """An event loop on a thread of its own, with a portal to it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.began, self.broken_off = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.portal = asyncio.run_coroutine_threadsafe(self._made(), self.loop).result()

    async def _made(self) -> Portal:
        return Portal()

    async def hang(self) -> None:
        """Work that has no end."""
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.broken_off.set()
            raise

    async def fail(self) -> None:
        raise ZeroDivisionError

    def stop(self) -> None:
        """The loop stops as it is."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def stop_when_it_is_busy(self) -> None:
        self.began.wait()
        self.stop()

    def end(self) -> None:
        """The loop ends as `asyncio.run` does."""
        if self._thread.is_alive():
            self.stop()
        for task in (left := asyncio.all_tasks(self.loop)):
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.wait(left))
        self.loop.close()


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home()
    yield made
    made.end()


def test_a_loop_that_stops_under_a_thread_that_waits(home: Home) -> None:
    threading.Thread(target=home.stop_when_it_is_busy).start()
    with pytest.raises(SaverClosed, match="has ended"):
        home.portal.call("get_tuple", home.hang)
    with pytest.raises(SaverClosed, match="does not run"):
        home.portal.call("get_tuple", home.hang)


async def test_a_loop_that_stops_under_a_task_that_waits(home: Home) -> None:
    threading.Thread(target=home.stop_when_it_is_busy).start()
    with pytest.raises(SaverClosed, match="has ended"):
        await home.portal.run(home.hang)


async def test_who_is_cancelled_breaks_the_work_off_and_waits_for_its_end(home: Home) -> None:
    waiting = asyncio.create_task(home.portal.run(home.hang))
    await asyncio.to_thread(home.began.wait)
    waiting.cancel("enough")
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await waiting
    assert home.broken_off.is_set()


async def test_who_is_cancelled_on_the_loop_itself(home: Home) -> None:
    portal = Portal()
    waiting = asyncio.create_task(portal.run(home.hang))
    await asyncio.to_thread(home.began.wait)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert home.broken_off.is_set()
    await portal.close()


async def test_errors_of_the_work_come_out(home: Home) -> None:
    with pytest.raises(ZeroDivisionError):
        await home.portal.run(home.fail)
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(home.portal.call, "put", home.fail)
    with pytest.raises(ZeroDivisionError):
        await Portal().run(home.fail)


async def test_a_call_that_would_wait_for_itself() -> None:
    portal = Portal()
    with pytest.raises(CalledOnItsLoop):
        portal.require_callable("put")
    await asyncio.to_thread(portal.require_callable, "put")


async def test_nothing_is_taken_after_the_end(home: Home) -> None:
    portal = Portal()
    waiting = asyncio.create_task(portal.run(home.hang))
    await asyncio.to_thread(home.began.wait)
    closing = asyncio.create_task(portal.close())
    await asyncio.sleep(0)
    with pytest.raises(SaverClosed, match="its block has ended"):
        await portal.run(home.fail)
    assert not closing.done()
    waiting.cancel()
    await closing


async def test_closing_stops_what_is_still_used_and_keeps_nothing_else() -> None:
    closed = []

    class Worker:
        def __init__(self, name: str) -> None:
            self.name = name

        async def close(self) -> None:
            closed.append(self.name)

    portal, used = Portal(), Worker("used")
    gone = weakref.ref(unused := Worker("unused"))
    portal.at_close(used.close)
    portal.at_close(unused.close)
    del unused
    gc.collect()
    assert gone() is None
    await portal.close()
    assert closed == ["used"]
