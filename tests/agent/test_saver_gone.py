"""A thread that somebody else has deleted, or that never came to be, is begun by whoever knows nothing of one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from longthread.agent.checkpointer import LongthreadSaver
from longthread.errors import ThreadNotFound
from longthread.store import checkpoints
from longthread.store.driver import Driver
from longthread.testing.failpoints import Failpoints

AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
FIRST: Any = {"configurable": {**AT["configurable"], "checkpoint_id": "1f000000-0000-6000-8000-000000000001"}}


class State(TypedDict):
    x: int


def adding(saver: LongthreadSaver) -> Any:
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
    graph = adding(LongthreadSaver(store))
    await graph.ainvoke({"x": 1}, AT)
    await LongthreadSaver(second).adelete_thread("t")
    if begun_anew:
        async with second.writing() as tx:
            await checkpoints.lock(tx, "t", user_id="default", create=True)
    # LangGraph looks first, and finds nothing; what the command writes comes before the first checkpoint.
    assert await graph.ainvoke(Command(update={"x": 5}, goto="add"), AT) == {"x": 6}
    assert (await adding(LongthreadSaver(second)).aget_state(AT)).values == {"x": 6}


async def test_a_task_of_a_thread_that_another_has_deleted_does_not_begin_it_even_if_somebody_has_looked(
    store: Driver, second: Driver
) -> None:
    saver = LongthreadSaver(store)
    config = await saver.aput(AT, empty_checkpoint(), {}, {})
    going_on = await saver.aget_tuple(AT)
    assert going_on is not None
    await LongthreadSaver(second).adelete_thread("t")
    assert await saver.aget_tuple(AT) is None
    with pytest.raises(ThreadNotFound):
        await saver.aput_writes(going_on.config, [("x", 1)], "late")
    async with store.reading() as tx:
        assert await checkpoints.lock(tx, "t", user_id="default") is None
    assert await written(store, config["configurable"]["checkpoint_id"]) == []


class Broken(Exception):
    """What ends a transaction in these tests."""


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("again", ["writes", "child"])
async def test_a_thread_that_was_rolled_back_was_never_there(store: Driver, looks: bool, again: str) -> None:
    broken = True

    def reach(boundary: str) -> None:
        if broken and boundary == "before COMMIT":
            raise Broken

    saver = LongthreadSaver(Failpoints(store, reach))
    if looks:
        await saver.aget_tuple(AT)
    with suppress(Broken):
        await saver.aput_writes(FIRST, [("x", 1)], "task")
    broken = False
    if again == "writes":
        await saver.aput_writes(FIRST, [("x", 1)], "task")
        assert await written(store, FIRST["configurable"]["checkpoint_id"]) == ["task"]
    else:  # one whose parent is not there
        await saver.aput(FIRST, empty_checkpoint(), {}, {})
        assert await LongthreadSaver(store).aget_tuple(AT) is not None
