"""Runs that are taken back: all of their checkpoints go and nothing else, whatever others do meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.model.entry import Draft
from longthread.store import checkpoints, log
from longthread.store.driver import Driver, Transaction
from longthread.testing.failpoints import DriverWrapper

pytestmark = pytest.mark.one_backend

LARGE = "x" * 5000


class State(MessagesState):
    large: str


@dataclass
class Pausing(DriverWrapper):
    """Lets something else happen once, between the next snapshot and what is done with what was found in it."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        async with self.driver.reading() as tx:
            yield tx
        if (happens := self.meanwhile) is not None:
            self.meanwhile = None
            await happens()


def on(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def graph_of(saver: AsyncLongthreadSaver) -> Any:
    def answer(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage(f"re: {state['messages'][-1].text}")]}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


async def ask(
    saver: AsyncLongthreadSaver,
    text: str,
    run_id: str,
    *,
    thread_id: str = "t",
    metadata: dict[str, str] | None = None,
    **more: Any,
) -> None:
    at: RunnableConfig = {**on(thread_id), "metadata": {"run_id": run_id, **(metadata or {})}}
    await graph_of(saver).ainvoke({"messages": [("user", text)], **more}, at)


async def said(store: Driver) -> list[str]:
    """The conversation, as a process reads it that remembers nothing."""
    state = await graph_of(AsyncLongthreadSaver(store)).aget_state(on("t"))
    return [message.text for message in state.values.get("messages", ())]


async def runs_in(store: Driver, thread_id: str = "t", *, user_id: str = "default") -> list[str]:
    """The runs whose checkpoints are there, the oldest first."""
    saver = AsyncLongthreadSaver(store, user_id=user_id)
    listed = [item.metadata["run_id"] async for item in saver.alist(on(thread_id))]  # type: ignore[typeddict-item]
    return list(dict.fromkeys(reversed(listed)))


async def on_branch(store: Driver, thread_id: str = "t") -> list[str]:
    """What the thread's conversation says."""
    async with store.reading() as tx:
        tip, size = await log.position(tx, thread_id)
        return [entry.text for entry in await log.branch(tx, thread_id, tip, limit=size)]


class TestMeanwhile:
    """Between the search for a run's checkpoints and their deletion. Numbers of checkpoints are given out again."""

    async def test_what_was_stored_since_another_took_the_run_back_stays(self, store: Driver, second: Driver) -> None:
        paused, other = Pausing(store), AsyncLongthreadSaver(second)
        await ask(other, "first", "r0")
        await ask(other, "regretted", "r1")

        async def meanwhile() -> None:
            await other.adelete_for_runs(["r1"])
            await ask(other, "important", "r2")

        paused.meanwhile = meanwhile
        await AsyncLongthreadSaver(paused).adelete_for_runs(["r1"])
        assert paused.meanwhile is None
        assert await runs_in(store) == ["r0", "r2"]
        assert await said(store) == ["first", "re: first", "important", "re: important"]
        assert await on_branch(store) == await said(store)

    @pytest.mark.parametrize("again", [False, True])
    async def test_a_thread_that_was_begun_anew_loses_only_what_is_the_runs(
        self, store: Driver, second: Driver, again: bool
    ) -> None:
        paused, other = Pausing(store), AsyncLongthreadSaver(second)
        await ask(other, "first", "r0")
        await ask(other, "regretted", "r1")

        async def meanwhile() -> None:
            await other.adelete_thread("t")
            await ask(other, "another", "r8")
            await ask(other, "important", "r2")
            if again:
                await ask(other, "regretted too", "r1")

        paused.meanwhile = meanwhile
        await AsyncLongthreadSaver(paused).adelete_for_runs(["r1"])
        assert paused.meanwhile is None
        assert await runs_in(store) == ["r8", "r2"]
        assert await said(store) == ["another", "re: another", "important", "re: important"]
        assert await on_branch(store) == await said(store)

    async def test_what_the_run_has_stored_since_goes_too(self, store: Driver, second: Driver) -> None:
        paused, other = Pausing(store), AsyncLongthreadSaver(second)
        await ask(other, "first", "r0")
        await ask(other, "regretted", "r1")
        paused.meanwhile = lambda: ask(other, "regretted too", "r1")
        await AsyncLongthreadSaver(paused).adelete_for_runs(["r1"])
        assert paused.meanwhile is None
        assert await runs_in(store) == ["r0"]
        assert await on_branch(store) == await said(store) == ["first", "re: first"]

    async def test_a_row_that_was_read_before_is_no_other_of_its_number(self, store: Driver) -> None:
        saver = AsyncLongthreadSaver(store)
        await ask(saver, "regretted", "r1")
        async with store.reading() as tx:
            rows = await checkpoints.of_run(tx, "t", "r1")
        await saver.adelete_for_runs(["r1"])
        await ask(saver, "important", "r2")
        async with store.writing() as tx:
            await checkpoints.delete(tx, rows)
        assert len(rows) == 3
        assert await runs_in(store) == ["r2"]

    async def test_a_thread_that_is_gone(self, store: Driver, second: Driver) -> None:
        paused, other = Pausing(store), AsyncLongthreadSaver(second)
        await ask(other, "regretted", "r1")
        paused.meanwhile = lambda: other.adelete_thread("t")
        await AsyncLongthreadSaver(paused).adelete_for_runs(["r1"])
        assert paused.meanwhile is None
        assert await runs_in(store) == []


class TestWhatStays:
    async def test_each_thread_loses_the_run_and_those_of_other_users_stay(self, store: Driver) -> None:
        mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(store, user_id="v")
        for saver, threads in ((mine, ("s", "t")), (theirs, ("r", "u"))):
            for thread_id in threads:
                await ask(saver, "first", "r0", thread_id=thread_id)
                await ask(saver, "regretted", "r1", thread_id=thread_id)
        await mine.adelete_for_runs(["r1"])
        for thread_id in ("s", "t"):
            assert await runs_in(store, thread_id) == ["r0"]
            assert await on_branch(store, thread_id) == ["first", "re: first"]
        for thread_id in ("r", "u"):
            assert await runs_in(store, thread_id, user_id="v") == ["r0", "r1"]
            assert len(await on_branch(store, thread_id)) == 4

    async def test_the_conversation_does_not_go_back_behind_what_was_added_since(self, store: Driver) -> None:
        saver = AsyncLongthreadSaver(store)
        await ask(saver, "first", "r0")
        await ask(saver, "regretted", "r1")
        async with store.writing() as tx:
            await log.extend(tx, "t", [Draft("added", "user", "added")])
        await saver.adelete_for_runs(["r1"])
        assert await said(store) == ["first", "re: first"]
        assert await on_branch(store) == ["first", "re: first", "regretted", "re: regretted", "added"]

    async def test_large_values_stay_that_others_have(self, store: Driver) -> None:
        saver = AsyncLongthreadSaver(store)
        await ask(saver, "first", "r0", large=LARGE + "0")
        await ask(saver, "regretted", "r1", large=LARGE + "1")
        await ask(saver, "second", "r2")
        await ask(saver, "third", "r3", large=LARGE + "3")
        before = [each.values.get("large") async for each in graph_of(saver).aget_state_history(on("t"))]
        await saver.adelete_for_runs(["r1"])
        after = [
            each.values.get("large") async for each in graph_of(AsyncLongthreadSaver(store)).aget_state_history(on("t"))
        ]
        assert len(before) == 12
        assert after == [*before[:6], *before[9:]]
        assert {LARGE + number for number in "013"} <= set(after), "one from the run itself, which r2 has taken over"

    async def test_large_values_go_that_no_other_has(self, store: Driver) -> None:
        saver = AsyncLongthreadSaver(store)
        await ask(saver, "first", "r0", large=LARGE + "0")
        async with store.reading() as tx:
            before = await tx.fetch("select_blob_names", thread_id="t", ns="")
        await ask(saver, "regretted", "r1", large=LARGE + "1")
        await saver.adelete_for_runs(["r1"])
        async with store.reading() as tx:
            assert await tx.fetch("select_blob_names", thread_id="t", ns="") == before != []

    async def test_runs_whose_metadata_only_holds_the_id(self, store: Driver) -> None:
        saver = AsyncLongthreadSaver(store)
        await ask(saver, "first", "r0", metadata={"instead_of": "r1"})
        await ask(saver, "second", "R1")
        await ask(saver, "third", "r2", metadata={"r1": "no id"})
        await ask(saver, "regretted", "r1")
        await saver.adelete_for_runs(["r1"])
        assert await runs_in(store) == ["r0", "R1", "r2"]
        await saver.adelete_for_runs(["r1", "r1"])
        assert await runs_in(store) == ["r0", "R1", "r2"]
        assert len(await said(store)) == 6


async def test_a_saver_that_goes_on_knows_nothing_of_what_was_deleted(store: Driver, second: Driver) -> None:
    """A checkpoint may be stored again by who has kept it, and hold other values then."""
    ours, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    first = await ours.aput(on("t"), {**empty_checkpoint(), "id": "c1"}, {"run_id": "r0"}, {})  # type: ignore[typeddict-unknown-key]

    async def stored(
        saver: AsyncLongthreadSaver, checkpoint_id: str, value: str, *, parent: RunnableConfig, new: bool
    ) -> Any:
        channels: Any = {"channel_values": {"large": value}, "channel_versions": {"large": 1}}
        checkpoint: Any = {**empty_checkpoint(), "id": checkpoint_id, **channels}
        return await saver.aput(parent, checkpoint, {"run_id": "r1"}, {"large": 1} if new else {})  # type: ignore[typeddict-unknown-key]

    await stored(ours, "c2", LARGE, parent=first, new=True)
    await ours.adelete_for_runs(["r1"])
    again = await stored(theirs, "c2", "small", parent=first, new=True)
    await stored(ours, "c3", "small", parent=again, new=False)
    found = await AsyncLongthreadSaver(second).aget_tuple(on("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"large": "small"}
