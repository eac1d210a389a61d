"""A thread that somebody else has deleted, or that never came to be, is begun by whoever knows nothing of one."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from longthread.errors import ThreadBegunAnew, ThreadNotFound
from longthread.langgraph.saver import thread_cache
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store import checkpoints
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.testing.failpoints import Failpoints

AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
FIRST: Any = {"configurable": {**AT["configurable"], "checkpoint_id": "1f000000-0000-6000-8000-000000000001"}}


class Broken(Exception):
    """What ends a transaction in these tests."""


class Commits:
    """Ends transactions before their commit as long as they are to fail."""

    fail = False

    def reach(self, boundary: str) -> None:
        if self.fail and boundary == "before COMMIT":
            raise Broken


class State(TypedDict):
    x: int


def adding(saver: AsyncLongthreadSaver | InMemorySaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("add", lambda state: {"x": state.get("x", 0) + 1})
    graph.add_edge(START, "add")
    return graph.compile(checkpointer=saver)


async def written(store: Driver, checkpoint_id: str) -> list[str]:
    async with store.reading() as tx:
        return [row.task_id for row in await checkpoints.writes(tx, "t", "", checkpoint_id)]


@pytest.mark.parametrize("begun_anew", [False, True])
async def test_a_command_begins_a_thread_that_another_has_deleted(
    store: Driver, second: Driver, begun_anew: bool
) -> None:
    graph = adding(AsyncLongthreadSaver(store))
    await graph.ainvoke({"x": 1}, AT)
    await AsyncLongthreadSaver(second).adelete_thread("t")
    if begun_anew:
        async with second.writing() as tx:
            await checkpoints.lock(tx, "t", user_id="default", create=True)
    # LangGraph looks first, and finds nothing; what the command writes comes before the first checkpoint.
    assert await graph.ainvoke(Command(update={"x": 5}, goto="add"), AT) == {"x": 6}
    assert (await adding(AsyncLongthreadSaver(second)).aget_state(AT)).values == {"x": 6}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("begun_anew", [False, True])
@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("failed", [False, True])
async def test_nothing_of_a_thread_that_another_has_deleted_goes_into_a_later_one(
    store: Driver, second: Driver, begun_anew: bool, looked: bool, explicit: bool, failed: bool
) -> None:
    commits = Commits()
    saver, other = AsyncLongthreadSaver(Failpoints(store, commits.reach)), AsyncLongthreadSaver(second)
    await saver.aget_tuple(AT)
    put = await saver.aput(AT, empty_checkpoint(), {}, {})
    going_on = await saver.aget_tuple(put if explicit else AT)
    assert going_on is not None
    if failed:
        commits.fail = True
        with pytest.raises(Broken):
            await saver.aput_writes(going_on.config, [("x", 1)], "first")
        commits.fail = False
    await other.adelete_thread("t")
    if looked:
        assert await saver.aget_tuple(AT) is None
    if begun_anew:
        await other.aput(AT, empty_checkpoint(), {}, {})
    child = empty_checkpoint()
    after: Any = {"configurable": {**AT["configurable"], "checkpoint_id": child["id"]}}
    for config in (put, going_on.config):
        with pytest.raises(ThreadNotFound):
            await saver.aput_writes(config, [("x", 1)], "late")
    with pytest.raises(ThreadNotFound):
        await saver.aput(going_on.config, child, {}, {})
    with pytest.raises(ThreadNotFound):  # LangGraph stores them side by side
        await saver.aput_writes(after, [("x", 1)], "later")
    async with store.reading() as tx:
        assert (await checkpoints.lock(tx, "t", user_id="default") is not None) is begun_anew
        assert await tx.fetch(Sql("SELECT task_id FROM checkpoint_writes")) == []
        assert len(await tx.fetch(Sql("SELECT n FROM checkpoints"))) == begun_anew


async def test_threads_that_are_looked_at_and_have_no_checkpoints_are_not_remembered_for_ever(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_cache, "THREADS", 3)
    saver = AsyncLongthreadSaver(store)
    for number in range(9):
        async with store.writing() as tx:
            await checkpoints.lock(tx, str(number), user_id="default", create=True)
        await saver.aget_tuple({"configurable": {"thread_id": str(number), "checkpoint_ns": ""}})
    assert len(saver._cache._threads) == 3


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("again", ["writes", "child"])
async def test_a_thread_that_was_rolled_back_was_never_there(store: Driver, looks: bool, again: str) -> None:
    commits = Commits()
    saver = AsyncLongthreadSaver(Failpoints(store, commits.reach))
    if looks:
        await saver.aget_tuple(AT)
    commits.fail = True
    with pytest.raises(Broken):
        await saver.aput_writes(FIRST, [("x", 1)], "task")
    commits.fail = False
    if again == "writes":
        await saver.aput_writes(FIRST, [("x", 1)], "task")
        assert await written(store, FIRST["configurable"]["checkpoint_id"]) == ["task"]
    else:  # one whose parent is not there
        await saver.aput(FIRST, empty_checkpoint(), {}, {})
        assert await AsyncLongthreadSaver(store).aget_tuple(AT) is not None


async def test_one_id_may_be_a_checkpoints_of_several_threads(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    first, second = (empty_checkpoint() for _ in range(2))
    for thread_id in ("a", "b"):
        at: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        await saver.aput(at, first, {}, {})
        on: Any = {"configurable": {**at["configurable"], "checkpoint_id": first["id"]}}
        await saver.aput_writes(on, [("x", thread_id)], "task")
        await saver.aput(on, second, {}, {})
    for thread_id in ("a", "b"):
        found = [each async for each in saver.alist({"configurable": {"thread_id": thread_id}})]
        assert [each.checkpoint["id"] for each in found] == [second["id"], first["id"]]
        assert found[1].pending_writes == [("task", "x", thread_id)]


async def test_a_thread_that_was_deleted_is_restored_by_who_kept_its_checkpoints(store: Driver) -> None:
    for saver in (AsyncLongthreadSaver(store), InMemorySaver()):
        configs: list[Any] = [AT]
        kept = [empty_checkpoint() for _ in range(3)]
        for number, checkpoint in enumerate(kept):
            configs.append(await saver.aput(configs[-1], checkpoint, {"step": number}, {}))
        await saver.adelete_thread("t")
        for number, checkpoint in enumerate(kept):
            await saver.aput(configs[number], checkpoint, {"step": number}, {})
            await saver.aput_writes(configs[number + 1], [("x", number)], "task")
        found = [each async for each in saver.alist(AT)]
        assert [each.metadata["step"] for each in found] == [2, 1, 0]
        assert [each.pending_writes for each in found] == [[("task", "x", number)] for number in (2, 1, 0)]


async def test_a_config_of_before_a_thread_was_deleted_may_be_gone_on_from_by_who_has_looked(store: Driver) -> None:
    for saver in (AsyncLongthreadSaver(store), InMemorySaver()):
        graph: Any = adding(saver)
        await graph.ainvoke({"x": 1}, AT)
        kept = await graph.aupdate_state(AT, {"x": 5})
        await saver.adelete_thread("t")
        await graph.ainvoke({"x": 2}, AT)
        assert await graph.ainvoke({"x": 7}, kept) == {"x": 8}


async def test_who_goes_on_in_a_thread_that_was_begun_anew_is_told_so(store: Driver, second: Driver) -> None:
    saver, other = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    config = await saver.aput(AT, empty_checkpoint(), {}, {})
    await other.adelete_thread("t")
    await other.aput(AT, empty_checkpoint(), {}, {})
    with pytest.raises(ThreadBegunAnew, match="Thread t was deleted"):
        await saver.aput(config, empty_checkpoint(), {}, {})
