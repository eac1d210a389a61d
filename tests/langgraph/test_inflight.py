"""Stores in progress, and who waits for them."""

from __future__ import annotations

import asyncio
import threading

from longthread.langgraph.saver.inflight import CALLERS, InflightWrites


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def read_and_store(writes: InflightWrites, place: str = "a") -> None:
    """What a run does, as a task of its own."""
    await writes.asettle("a")
    with writes.one(place):
        await asyncio.sleep(0)


async def is_waited_for(writes: InflightWrites, after: int) -> bool:
    """Whether a reader waits for what a run that is over stores so many turns after its last store."""
    stores, stored = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        await writes.asettle("a")
        background = asyncio.create_task(store())
        with writes.one("a"):
            pass
        stores.set()
        behind.append(background)

    async def store() -> None:
        await stores.wait()
        await turns(after)
        with writes.one("a"):
            await turns(20)
            stored.set()

    behind: list[asyncio.Task[None]] = []
    await asyncio.create_task(run())
    await writes.asettle("a")
    waited = stored.is_set()
    await asyncio.gather(*behind)
    return waited


async def test_a_reader_waits_for_what_a_run_that_is_over_stores_next() -> None:
    writes = InflightWrites()
    assert await is_waited_for(writes, 4)
    assert not await is_waited_for(writes, 40)


async def test_a_reader_on_another_loop_leaves_the_wait_to_those_of_the_runs_loop() -> None:
    writes = InflightWrites()
    await asyncio.create_task(read_and_store(writes))
    await asyncio.to_thread(lambda: asyncio.run(writes.asettle("a")))
    seen: list[int] = []

    async def count() -> None:
        while True:
            seen.append(1)
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await writes.asettle("a")
    assert len(seen) > 4
    seen.clear()
    await writes.asettle("a")
    assert not seen  # somebody has waited
    counting.cancel()


async def test_a_thread_that_is_stored_to_and_never_read_is_remembered_within_bounds() -> None:
    writes = InflightWrites()
    for _ in range(3 * CALLERS):
        await asyncio.create_task(read_and_store(writes, "b"))
    stored = writes._stored.peek("b")
    assert stored is not None and len(stored) == CALLERS
    await writes.asettle("b")
    assert writes._stored.peek("b") is None


def test_a_put_does_not_wait_for_a_store_on_a_loop_that_is_closed() -> None:
    writes, there, over = InflightWrites(), list[asyncio.Task[None]](), threading.Event()

    async def store() -> None:
        with writes.one("a"):
            await asyncio.Event().wait()

    def program() -> None:
        writes.settle("b")
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # it would tell of the task that is left
        there.append(loop.create_task(store()))
        loop.run_until_complete(turns(2))
        loop.close()
        writes.settle("b")
        writes.overtake("a", "")
        over.set()

    threading.Thread(target=program, daemon=True).start()
    assert over.wait(60)
    there[0].get_coro().close()
