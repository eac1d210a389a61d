"""Runs that are cancelled or interrupted anywhere, and the next run of the thread: it finds all that is there."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph

from longthread.errors import SaverClosed
from longthread.langgraph import LongthreadSaver
from longthread.loop_bridge import to_the_end
from longthread.store.driver import Driver, Transaction
from longthread.testing.failpoints import Failpoints

DURABILITIES = ["sync", "async", "exit"]
OPENED = ["plain", "async"]
MODES = ["values", "updates"]


def on(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def asked(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def texts(state: Any) -> list[str]:
    values = state if isinstance(state, dict) else state.values
    return [message.text for message in values["messages"]]


def talker(saver: LongthreadSaver, answered: Callable[[], None] = lambda: None) -> Any:
    """A graph that answers with the number of messages it saw."""

    def answer(state: MessagesState) -> dict[str, Any]:
        answered()
        return {"messages": [("ai", str(len(state["messages"])))]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def stepper(saver: LongthreadSaver) -> Any:
    """The same three times, one after the other."""

    async def step(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", str(len(state["messages"])))]}

    builder = StateGraph(MessagesState)
    builder.add_sequence([("one", step), ("two", step), ("three", step)])
    builder.add_edge(START, "one")
    return builder.compile(checkpointer=saver)


async def turns(count: int) -> None:
    """Let the event loop turn so often."""
    for _ in range(count):
        await asyncio.sleep(0)


class Watched(LongthreadSaver):
    """Calls `reach` at each boundary of each write."""

    def __init__(self, store: Driver, **more: Any) -> None:
        self.reach: Callable[[str], None] = lambda boundary: None
        super().__init__(Failpoints(store, lambda boundary: self.reach(boundary)), **more)

    def count(self) -> list[str]:
        """The boundaries that are reached from now on."""
        reached: list[str] = []
        self.reach = reached.append
        return reached

    def once_at(self, number: int, do: Callable[[], object]) -> None:
        """Do something at the boundary of this number, the first is 0."""
        reached: list[str] = []

        def reach(boundary: str) -> None:
            reached.append(boundary)
            if len(reached) == number + 1:
                do()

        self.reach = reach

    def never(self) -> None:
        self.reach = lambda boundary: None


class Held:
    """A driver whose commits, while it holds, have been carried out and are not acknowledged.

    It `holds` when no transaction that has begun has still to be committed. LangGraph stores a checkpoint and what the
    step's tasks write side by side, the checkpoint first; on PostgreSQL the writes may be committed before it.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.free = threading.Event()
        self.free.set()
        self.holds = threading.Event()
        self.open = 0
        self._held = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def _wait(self) -> None:
        self.free.wait()

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self._driver.reading()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        self.open += 1
        try:
            async with self._driver.writing() as tx:
                yield tx
            if not self.free.is_set():
                await self._hold()
        finally:
            self.open -= 1
            self._look()

    async def _hold(self) -> None:
        self._held += 1
        try:
            self._look()
            await to_the_end(asyncio.to_thread(self._wait))
        finally:
            self._held -= 1

    def _look(self) -> None:
        if self._held and self._held == self.open and not self.free.is_set():
            self.holds.set()


class HeldSaver(LongthreadSaver):
    def __init__(self, store: Driver, **more: Any) -> None:
        self.held = Held(store)
        super().__init__(self.held, **more)

    async def until_it_holds(self) -> None:
        await asyncio.to_thread(self.held.holds.wait)


async def freed_when_cancelled(saver: HeldSaver) -> None:
    """Let the saver go on when the event loop ends, and all that runs on it has learnt of that."""
    try:
        await asyncio.Event().wait()
    finally:
        await turns(100)
        assert saver.held.open
        saver.held.free.set()


async def opened_as(how: str, kind: type[LongthreadSaver], address: str, stack: AsyncExitStack) -> Any:
    opening = kind.from_conn_string(address)
    return stack.enter_context(opening) if how == "plain" else await stack.enter_async_context(opening)


def _cancel(turn: asyncio.Task[Any], after: int, twice: bool) -> None:
    """Cancel a task after so many turns of its loop, and at the next turn again."""
    if after:
        asyncio.get_running_loop().call_soon(_cancel, turn, after - 1, twice)
    elif turn.cancel() and twice:
        asyncio.get_running_loop().call_soon(turn.cancel)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("opened", OPENED)
async def test_a_call_that_is_broken_off_harms_nothing(opened: str, durability: Any, store_address: str) -> None:
    """Cancelled at each boundary of what it stores, and at some of the turns of its loop after that; once or twice."""
    async with AsyncExitStack() as stack:
        saver = await opened_as(opened, Watched, store_address, stack)
        graph = talker(saver)
        loop = asyncio.get_running_loop()
        await graph.ainvoke(asked("first"), on("a"), durability=durability)
        boundaries = saver.count()
        await graph.ainvoke(asked("second"), on("a"), durability=durability)
        step = 1 if durability == "async" else 3
        for number in range(0, len(boundaries), step):
            turn = asyncio.create_task(graph.ainvoke(asked("hi"), on("a"), durability=durability))
            cancel = partial(_cancel, turn, after=number // step % 4, twice=bool(number // step % 2))
            saver.once_at(number, partial(loop.call_soon_threadsafe, cancel))
            await asyncio.wait([turn])
            assert turn.cancelled() or not turn.exception()
            found = texts(await graph.ainvoke(asked(f"next {number}"), on("a"), durability=durability))
            assert found[-2:] == [f"next {number}", str(len(found) - 1)]
            saver.never()
            assert texts(await graph.aget_state(on("a"))) == found
        async with LongthreadSaver.from_conn_string(store_address) as other:
            assert texts(await talker(other).aget_state(on("a"))) == found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_run_that_was_broken_off_is_resumed(durability: Any, store_address: str) -> None:
    """Its tasks run again where their results were not stored, with other results than the first time."""
    async with Watched.from_conn_string(store_address) as saver:
        assert isinstance(saver, Watched)
        graph = stepper(saver)
        boundaries = saver.count()
        await graph.ainvoke(asked("first"), on("a"), durability=durability)
        for number in range(0, len(boundaries), 4):
            turn = asyncio.create_task(graph.ainvoke(asked("hi"), on("a"), durability=durability))
            saver.once_at(number, partial(_cancel, turn, after=number // 4 % 4, twice=bool(number // 4 % 2)))
            await asyncio.wait([turn])
            found = texts(await graph.ainvoke(None, on("a"), durability=durability))
            saver.never()
            assert found[-1] == str(len(found) - 1)
            state = await graph.aget_state(on("a"))
            assert (texts(state), state.next) == (found, ())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("opened", OPENED)
async def test_a_stream_that_is_left_harms_nothing(opened: str, durability: Any, store_address: str) -> None:
    """Left without being closed, which the event loop does while the next run goes on already."""
    async with AsyncExitStack() as stack:
        saver = await opened_as(opened, LongthreadSaver, store_address, stack)
        graph = stepper(saver)
        for thread, parts in (("a", range(9)), *((f"new {parts}", [parts]) for parts in range(4))):
            for left in parts:
                async for _ in graph.astream(asked("hi"), on(thread), durability=durability, stream_mode=MODES):
                    if not left:
                        break
                    left -= 1
                found = texts(await graph.ainvoke(asked("next"), on(thread), durability=durability))
                assert found[-4:] == ["next", *(str(len(found) - behind) for behind in (3, 2, 1))]
                assert texts(await graph.aget_state(on(thread))) == found


async def test_the_next_run_of_a_task_whose_time_was_up(store_address: str) -> None:
    async def twice() -> list[str]:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                await graph.ainvoke(asked("hi"), on("a"), durability="async")
        return texts(await graph.ainvoke(asked("next"), on("a")))

    limits: list[asyncio.Timeout] = []
    async with HeldSaver.from_conn_string(store_address) as saver:
        assert isinstance(saver, HeldSaver)
        graph = talker(saver)
        saver.held.free.clear()
        both = asyncio.create_task(twice())
        await saver.until_it_holds()
        await turns(100)
        limits[0].reschedule(asyncio.get_running_loop().time())
        while not limits[0].expired():
            await turns(1)
        await turns(100)
        saver.held.free.set()
        assert await both == ["hi", "1", "next", "3"]


@pytest.mark.parametrize("thread", ["new", "old"])
@pytest.mark.parametrize("opened", OPENED)
async def test_the_next_run_finds_what_the_one_before_has_handed_in(
    opened: str, thread: str, store_address: str
) -> None:
    """A run that is over but for its stores, which are put off, is cancelled while it waits for them."""
    async with AsyncExitStack() as stack:
        saver = await opened_as(opened, HeldSaver, store_address, stack)
        answered = asyncio.Event()
        graph = talker(saver, answered.set)
        before: list[str] = []
        if thread == "old":
            before = texts(await graph.ainvoke(asked("before"), on("a")))
        answered.clear()
        saver.held.free.clear()
        turn = asyncio.create_task(graph.ainvoke(asked("hi"), on("a"), durability="async"))
        await answered.wait()
        await saver.until_it_holds()
        await turns(100)  # nothing is left for it to do
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()
        assert saver.held.open
        following = asyncio.create_task(graph.ainvoke(asked("next"), on("a")))
        await turns(100)
        saver.held.free.set()
        assert texts(await following)[len(before) :] == ["hi", str(len(before) + 1), "next", str(len(before) + 3)]


@pytest.mark.parametrize("opened", OPENED)
async def test_runs_that_go_on_are_not_waited_for(opened: str, store_address: str) -> None:
    async with AsyncExitStack() as stack:
        saver = await opened_as(opened, HeldSaver, store_address, stack)
        graph = talker(saver)
        await graph.ainvoke(asked("before"), on("a"))
        saver.held.free.clear()
        turn = asyncio.create_task(graph.ainvoke(asked("hi"), on("a")))
        await saver.until_it_holds()
        assert "before" in texts(await graph.aget_state(on("a")))
        saver.held.free.set()
        assert len(texts(await turn)) == 4


@pytest.mark.parametrize("opened", OPENED)
async def test_who_is_cancelled_goes_on_when_the_store_has_ended(opened: str, store_address: str) -> None:
    async with AsyncExitStack() as stack:
        saver = await opened_as(opened, HeldSaver, store_address, stack)
        saver.held.free.clear()
        put = asyncio.create_task(saver.aput(on("a"), empty_checkpoint(), {}, {}))
        await saver.until_it_holds()
        for _ in range(3):
            put.cancel()
            await turns(20)
        assert not put.done()
        saver.held.free.set()
        await asyncio.wait([put])
        assert put.cancelled()
        assert not saver.held.open
        assert await saver.aget_tuple(on("a")) is not None


async def test_a_timeout_is_one_and_leaves_nothing_under_way(store_address: str) -> None:
    async with HeldSaver.from_conn_string(store_address) as saver:
        assert isinstance(saver, HeldSaver)
        saver.held.free.clear()

        def let_go() -> None:
            saver.held.holds.wait()
            saver.held.free.set()

        threading.Thread(target=let_go).start()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as timeout:
                put = saver.aput(on("a"), empty_checkpoint(), {}, {})
                asyncio.get_running_loop().call_soon(timeout.reschedule, 0)
                await put
        assert not saver.held.open
        await saver.aput(on("b"), empty_checkpoint(), {}, {})
        assert await saver.aget_tuple(on("b")) is not None


@contextmanager
def collecting_by_hand() -> Iterator[None]:
    """What an interrupt leaves is collected where the test says so. LangGraph's generators wait then for their threads
    to end, for ever where the collector comes by while a thread is being made: Python holds a lock there that a thread
    needs to end."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def interrupted_by_hand() -> Iterator[None]:
    """SIGINT interrupts, also where tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# An interrupt may come while a generator of LangGraph's is being closed, which can only warn of it.
@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("every", [7, pytest.param(3, marks=pytest.mark.slow)])
def test_a_run_that_is_interrupted_from_the_keyboard_harms_nothing(
    every: int, durability: Any, store_address: str
) -> None:
    with collecting_by_hand(), interrupted_by_hand(), Watched.from_conn_string(store_address) as saver:
        assert isinstance(saver, Watched)
        graph = talker(saver)
        graph.invoke(asked("first"), on("a"), durability=durability)
        boundaries = saver.count()
        graph.invoke(asked("second"), on("a"), durability=durability)
        interrupted = 0
        for number in range(0, len(boundaries), every):
            saver.once_at(number, lambda: os.kill(os.getpid(), signal.SIGINT))
            try:
                graph.invoke(asked("hi"), on("a"), durability=durability)
            except KeyboardInterrupt:
                interrupted += 1
            saver.never()
            gc.collect()
            found = texts(graph.invoke(asked(f"next {number}"), on("a"), durability=durability))
            assert found[-2:] == [f"next {number}", str(len(found) - 1)]
            assert texts(graph.get_state(on("a"))) == found
        assert interrupted


@pytest.mark.sampled(2)
def test_a_loop_that_ends_while_something_is_stored(store_address: str) -> None:
    """The next loop goes on; nothing is said on the way, and no task is forgotten."""
    code = f"""
import asyncio, logging
from tests.langgraph.test_saver_broken_off import HeldSaver, asked, freed_when_cancelled, on, talker, texts

# How long a turn of the loop takes is the machine's affair.
logging.getLogger("asyncio").addFilter(lambda record: not record.msg.startswith("Executing "))

with HeldSaver.from_conn_string({store_address!r}) as saver:
    graph = talker(saver)

    async def leave(durability):
        saver.held.free.clear()
        saver.held.holds.clear()
        turn = asyncio.create_task(graph.ainvoke(asked("hi"), on("a"), durability=durability))
        await saver.until_it_holds()
        return turn, asyncio.create_task(freed_when_cancelled(saver))

    for durability in ("sync", "async"):
        turn, freed = asyncio.run(leave(durability))
        assert turn.cancelled() and freed.cancelled()
        found = texts(asyncio.run(graph.ainvoke(asked("next"), on("a"))))
        assert found[-2:] == ["next", str(len(found) - 1)], found
    stored = [(item.metadata["source"], item.metadata["step"]) for item in saver.list(on("a"))][::-1]
    run = [("input", 0), ("loop", 1), ("loop", 2)]
    assert stored == [("input", -1), *run, ("input", 3), ("input", 4), ("loop", 5), ("loop", 6)], stored
    assert not saver.held.open
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


# The task that is left there can only warn.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine:RuntimeWarning")
def test_a_loop_that_is_closed_under_a_cancelled_run(store_address: str) -> None:
    """Its calls never come to an end there, and nobody waits for them."""
    with HeldSaver.from_conn_string(store_address) as saver:
        assert isinstance(saver, HeldSaver)
        graph = talker(saver)
        saver.held.free.clear()
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # it would tell of each task that is left
        turn = loop.create_task(graph.ainvoke(asked("hi"), on("a"), durability="sync"))
        loop.run_until_complete(saver.until_it_holds())
        turn.cancel()
        loop.close()
        saver.held.free.set()
        found: list[str] = []
        following = threading.Thread(target=lambda: found.extend(texts(graph.invoke(asked("next"), on("a")))))
        following.daemon = True
        following.start()
        following.join(60)
        assert found[-2:] == ["next", str(len(found) - 1)]
        del turn
        gc.collect()


async def test_a_block_that_ends_while_something_is_stored(store_address: str) -> None:
    async with HeldSaver.from_conn_string(store_address) as saver:
        assert isinstance(saver, HeldSaver)
        saver.held.free.clear()
        turn = asyncio.create_task(talker(saver).ainvoke(asked("hi"), on("a"), durability="sync"))
        await saver.until_it_holds()
        asyncio.get_running_loop().call_soon(saver.held.free.set)
    with pytest.raises(SaverClosed):
        await turn
    async with LongthreadSaver.from_conn_string(store_address) as again:
        assert [item.metadata["source"] async for item in again.alist(on("a"))] == ["input"]
        assert texts(await talker(again).ainvoke(asked("next"), on("a"))) == ["next", "1"]
