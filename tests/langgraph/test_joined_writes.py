"""What tasks have written goes into the transaction of the checkpoint behind it, or into one of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import INTERRUPT, empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from tests.langgraph.counting import Counting

from longthread.errors import StoreError, ThreadConflict
from longthread.langgraph.saver import inflight
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store import checkpoints
from longthread.store.driver import Driver

AT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


async def put(saver: AsyncLongthreadSaver, config: RunnableConfig, version: int, *messages: Any) -> RunnableConfig:
    given: Any = {"channel_values": {"messages": list(messages)}, "channel_versions": {"messages": version}}
    return await saver.aput(config, empty_checkpoint() | given, {}, {"messages": version})


async def pending(saver: AsyncLongthreadSaver, config: RunnableConfig) -> list[Any]:
    found = await saver.aget_tuple({"configurable": dict(config["configurable"])})
    assert found is not None and found.pending_writes is not None
    return sorted((task_id, channel, str(value)) for task_id, channel, value in found.pending_writes)


QUESTION, ANSWER = HumanMessage("q", id="q"), AIMessage("a", id="a")


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes wait as long as it takes for the checkpoint behind them, on a busy machine too."""
    monkeypatch.setattr(inflight, "NEXT_SECONDS", 600)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_turn_is_one_transaction_for_each_checkpoint(store: Driver, durability: Any) -> None:
    counting = Counting(store)
    builder = StateGraph(MessagesState)
    builder.add_node("one", lambda state: {"messages": [AIMessage("one")]})
    builder.add_node("two", lambda state: {"messages": [AIMessage("two")]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    graph = builder.compile(checkpointer=AsyncLongthreadSaver(counting))
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"messages": [QUESTION]}, thread, durability=durability)
    counting.reset()
    await graph.ainvoke({"messages": [("user", "again")]}, thread, durability=durability)
    assert counting.writes == 4
    states = [state async for state in graph.aget_state_history(thread)]
    written = [sum(len(task.result or {}) for task in state.tasks) for state in states]
    assert len(states) == 8
    assert written[1:4] == [1, 1, 1]


async def test_several_tasks_and_the_checkpoint_behind_them_are_one(store: Driver) -> None:
    counting = Counting(store)
    saver = AsyncLongthreadSaver(counting)
    first = await put(saver, AT, 1, QUESTION)
    counting.reset()
    one = saver.aput_writes(first, [("messages", [ANSWER]), ("x", 1)], "one")
    two = saver.aput_writes(first, [("y", {"deep": [2]})], "two")
    _, _, last = await asyncio.gather(one, two, put(saver, first, 2, QUESTION, ANSWER))
    assert counting.writes == 1
    for reader in (saver, AsyncLongthreadSaver(store)):
        found = await pending(reader, first)
        assert [each[:2] for each in found] == [("one", "messages"), ("one", "x"), ("two", "y")]
        again = await reader.aget_tuple(last)
        assert again is not None and again.checkpoint["channel_values"]["messages"] == [QUESTION, ANSWER]


class Held:
    """Holds the next puts until they are let go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached, self.go, self.error = asyncio.Event(), asyncio.Event(), None
        original = checkpoints.put

        async def held(*args: Any) -> None:
            self.reached.set()
            await self.go.wait()
            if self.error is not None:
                raise self.error
            await original(*args)

        patch.setattr(checkpoints, "put", held)

    error: Exception | None


async def begun(held: Held, saver: AsyncLongthreadSaver, config: RunnableConfig) -> tuple[Any, RunnableConfig]:
    """Begin a put that is held; return it, and the config of its checkpoint."""
    checkpoint: Any = empty_checkpoint() | {
        "channel_values": {"messages": [QUESTION, ANSWER]},
        "channel_versions": {"messages": 2},
    }
    putting = asyncio.create_task(saver.aput(config, checkpoint, {}, {"messages": 2}))
    await held.reached.wait()
    return putting, {"configurable": {**AT["configurable"], "checkpoint_id": checkpoint["id"]}}


@pytest.mark.usefixtures("unhurried")
async def test_writes_on_a_checkpoint_that_is_being_put_go_with_the_next_one(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(store)
    saver = AsyncLongthreadSaver(counting)
    first = await put(saver, AT, 1, QUESTION)
    held = Held(monkeypatch)
    counting.reset()
    putting, at = await begun(held, saver, first)
    later = HumanMessage("later", id="later")
    written = asyncio.create_task(saver.aput_writes(at, [("messages", [later])], "one"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    held.go.set()
    last = await put(saver, await putting, 3, QUESTION, ANSWER, later)
    await written
    assert counting.writes == 2
    assert saver._pending._waiting == {}
    for reader in (saver, AsyncLongthreadSaver(store)):
        assert [each[:2] for each in await pending(reader, at)] == [("one", "messages")]
        found = await reader.aget_tuple(last)
        assert found is not None and found.checkpoint["channel_values"]["messages"] == [QUESTION, ANSWER, later]


@pytest.mark.parametrize("fails", [None, StoreError(reason="the disk is gone.")])
async def test_writes_on_a_checkpoint_that_is_being_put_are_stored_without_a_next_one(
    store: Driver, fails: StoreError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    with monkeypatch.context() as patch:
        held = Held(patch)
        held.error = fails
        putting, at = await begun(held, saver, first)
        written = asyncio.create_task(saver.aput_writes(at, [("x", 1)], "one"))
        held.go.set()
        assert isinstance((await asyncio.gather(putting, return_exceptions=True))[0], type(fails) if fails else dict)
        await written
    assert saver._pending._waiting == {}
    async with store.reading() as tx:
        rows = await checkpoints.writes(tx, "t", "", at["configurable"]["checkpoint_id"])
    if fails:
        assert [row.task_id for row in rows] == ["one"]
    else:
        assert await pending(AsyncLongthreadSaver(store), at) == [("one", "x", "1")]


async def test_writes_of_a_run_whose_put_is_refused_meanwhile_are_refused(
    store: Driver, second: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = AsyncLongthreadSaver(store)
    await put(saver, AT, 1, QUESTION)
    found = await saver.aget_tuple(AT)
    assert found is not None
    await put(AsyncLongthreadSaver(second), found.config, 2, QUESTION, HumanMessage("theirs", id="b"))
    asked = saver._parents.check
    written: list[Any] = []

    def check(*args: Any, **named: Any) -> None:
        at: RunnableConfig = {"configurable": {**AT["configurable"], "checkpoint_id": args[3]}}
        written.append(asyncio.create_task(saver.aput_writes(at, [("x", 1)], "one")))
        asked(*args, **named)

    monkeypatch.setattr(saver._parents, "check", check)
    with pytest.raises(ThreadConflict):
        await put(saver, found.config, 2, QUESTION, ANSWER)
    results = await asyncio.gather(*written, return_exceptions=True)
    assert results and all(isinstance(each, ThreadConflict) for each in results)


@pytest.mark.usefixtures("unhurried")
async def test_writes_that_are_cancelled_while_they_wait_for_a_next_checkpoint_leave_nothing_behind(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    held = Held(monkeypatch)
    putting, at = await begun(held, saver, first)
    written = [asyncio.create_task(saver.aput_writes(at, [("x", n)], f"task {n}")) for n in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    written[0].cancel()
    held.go.set()
    await putting
    written[1].cancel()
    assert [type(each) for each in await asyncio.gather(*written, return_exceptions=True)] == 2 * [
        asyncio.CancelledError
    ]
    assert saver._pending._waiting == {}
    assert await pending(AsyncLongthreadSaver(store), at) == []


async def test_writes_without_a_checkpoint_behind_them_are_stored_alone(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    await saver.aput_writes(first, [(INTERRUPT, "wait")], "one")
    assert await pending(AsyncLongthreadSaver(store), first) == [("one", INTERRUPT, "wait")]
    assert saver._pending._waiting == {}


async def test_a_task_that_has_written_before_is_looked_at_alone(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    await saver.aput_writes(first, [("x", 1)], "one")
    same = saver.aput_writes(first, [("x", 1), ("y", 2)], "one")
    await asyncio.gather(same, put(saver, first, 2, QUESTION, ANSWER))
    assert await pending(AsyncLongthreadSaver(store), first) == [("one", "x", "1"), ("one", "y", "2")]


async def test_writes_of_a_rival_are_refused_with_its_checkpoint(store: Driver, second: Driver) -> None:
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, AT, 1, QUESTION)
    found = [await saver.aget_tuple(AT) for saver in (mine, theirs)]
    here, there = (each.config for each in found if each is not None)
    await theirs.aput_writes(there, [("x", "theirs")], "task")
    results = await asyncio.gather(
        mine.aput_writes(here, [("x", "mine")], "task"), put(mine, here, 2, QUESTION, ANSWER), return_exceptions=True
    )
    assert isinstance(results[0], ThreadConflict)
    assert await pending(AsyncLongthreadSaver(second), there) == [("task", "x", "theirs")]


@pytest.mark.parametrize("fails", ["cancelled", "broken"])
async def test_writes_are_stored_where_the_checkpoint_is_not(
    store: Driver, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    reached, never = asyncio.Event(), asyncio.Event()

    async def stopped(*_: Any) -> None:
        reached.set()
        if fails == "broken":
            raise StoreError(reason="the disk is gone.")
        await never.wait()

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "put", stopped)
        written = asyncio.create_task(saver.aput_writes(first, [("x", 1)], "one"))
        storing = asyncio.create_task(put(saver, first, 2, QUESTION, ANSWER))
        await reached.wait()
        storing.cancel()
        with pytest.raises((asyncio.CancelledError, StoreError)):
            await storing
        await written
    assert await pending(AsyncLongthreadSaver(store), first) == [("one", "x", "1")]
    last = await put(saver, first, 2, QUESTION, ANSWER)
    again = await AsyncLongthreadSaver(store).aget_tuple(last)
    assert again is not None and again.checkpoint["channel_values"]["messages"] == [QUESTION, ANSWER]


async def test_writes_that_are_cancelled_end_when_their_transaction_has(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    written = asyncio.create_task(saver.aput_writes(first, [("x", 1)], "one"))
    storing = asyncio.create_task(put(saver, first, 2, QUESTION, ANSWER))
    await asyncio.sleep(0)
    written.cancel()
    with pytest.raises(asyncio.CancelledError):
        await written
    await storing
    assert await pending(AsyncLongthreadSaver(store), first) in ([("one", "x", "1")], [])
    assert saver._pending._waiting == {}


async def test_writes_of_many_tasks_that_wait_at_once_are_few_transactions(store: Driver) -> None:
    counting = Counting(store)
    saver = AsyncLongthreadSaver(counting)
    first = await put(saver, AT, 1, QUESTION)
    counting.reset()
    tasks = [f"task {number:03d}" for number in range(200)]
    await asyncio.gather(*(saver.aput_writes(first, [("x", task), ("y", "long " * 40)], task) for task in tasks))
    assert counting.writes <= 4
    assert saver._pending._waiting == {}
    for reader in (saver, AsyncLongthreadSaver(store)):
        found = await pending(reader, first)
        assert [(task, value) for task, channel, value in found if channel == "x"] == [(task, task) for task in tasks]
    # They write once more: what stands there stays, and what is new is added to it.
    await asyncio.gather(
        *(saver.aput_writes(first, [("x", task), ("y", "long " * 40), ("z", 1)], task) for task in tasks)
    )
    assert len(await pending(AsyncLongthreadSaver(store), first)) == 600


async def test_of_many_tasks_only_the_one_with_a_rival_is_refused(store: Driver, second: Driver) -> None:
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, AT, 1, QUESTION)
    found = [await saver.aget_tuple(AT) for saver in (mine, theirs)]
    here, there = (each.config for each in found if each is not None)
    await theirs.aput_writes(there, [("x", "theirs")], "task 1")
    writes = [mine.aput_writes(here, [("x", f"mine {n}")], f"task {n}") for n in range(4)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(each, ThreadConflict) for each in results] == [False, True, False, False]
    values = [value for *_, value in await pending(AsyncLongthreadSaver(second), there)]
    assert values == ["mine 0", "theirs", "mine 2", "mine 3"]


async def test_a_cancelled_task_takes_no_others_writes_along(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    writes = [asyncio.create_task(saver.aput_writes(first, [("x", n)], f"task {n}")) for n in range(5)]
    for _ in range(3):
        await asyncio.sleep(0)
    writes[0].cancel()
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert results[1:] == [None] * 4
    assert {f"task {n}" for n in range(1, 5)} <= {
        task for task, *_ in await pending(AsyncLongthreadSaver(store), first)
    }


async def test_puts_on_another_branch_do_not_hold_writes_up(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    first = await put(saver, AT, 1, QUESTION)
    puts_done, writing = 0, None
    at = first
    while writing is None or not writing.done():
        assert puts_done < 5_000  # for ever, if they held it up
        checkpoint = empty_checkpoint()
        at = await saver.aput(at, checkpoint, {"source": "fork"}, {})
        puts_done += 1
        if puts_done == 5:
            writing = asyncio.create_task(saver.aput_writes(first, [("x", 1)], "one"))
    assert await pending(saver, first) == [("one", "x", "1")]
