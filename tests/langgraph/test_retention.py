"""Retention of LangGraph's checkpoints: what goes, and that what stays is whole and goes on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from langgraph.types import Command, interrupt

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.log import now
from longthread.store.maintenance.deletions import Pruned, prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy, Surplus
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend

ON_T: RunnableConfig = {"configurable": {"thread_id": "t"}}
LARGE = "x" * 5000


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    large: str


def answer(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage(f"answer {len(state['messages'])}")], "notes": ["noted"]}


def graph_of(store: Driver, *, node: Callable[..., Any] = answer, state: Any = State) -> Any:
    graph = StateGraph(state)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(checkpointer=AsyncLongthreadSaver(store))


def trimming_graph(store: Driver) -> Any:
    """A graph that keeps the last few messages."""

    def trimming(state: State) -> dict[str, Any]:
        old = [RemoveMessage(str(message.id)) for message in state["messages"][:-4]]
        return {"messages": [*old, AIMessage(f"answer {len(state['messages'])}")]}

    return graph_of(store, node=trimming)


async def ask(graph: Any, number: int, **more: Any) -> Any:
    return await graph.ainvoke({"messages": [HumanMessage(f"question {number}")], **more}, ON_T)


async def pruned(store: Driver, policy: RetentionPolicy, *, apply: bool = True) -> Pruned:
    retention = Retention(policy, CheckpointKeeper(), lambda owner: True)
    told = await prune(store, retention, silent, apply=False)
    if apply:
        assert await prune(store, retention, silent, apply=True) == told
        assert await prune(store, retention, silent, apply=False) == Pruned(), "the second time there is nothing"
    return told


def silent(done: int, total: int, what: str) -> None:
    """Progress that nobody looks at."""


async def history(store: Driver, graph: Any = None) -> list[Any]:
    """What a process that remembers nothing reads."""
    return [each async for each in (graph or graph_of(store)).aget_state_history(ON_T)]


def texts(values: Any) -> list[str]:
    return [str(message.text) for message in values["messages"]]


async def test_all_but_the_newest_checkpoint_go_by_default(store: Driver) -> None:
    graph = graph_of(store)
    for number in range(5):
        await ask(graph, number, large=LARGE + str(number))
    before = await history(store)
    found = await pruned(store, RetentionPolicy())
    assert found.rows["checkpoints"] == len(before) - 1
    assert found.rows["checkpoint_blobs"] > 0
    [left] = await history(store)
    assert left.values == before[0].values
    assert left.parent_config is None
    for again in (graph, graph_of(store)):
        await ask(again, 9)
    state = await graph_of(store).aget_state(ON_T)
    assert texts(state.values)[-2:] == ["question 9", "answer 13"]
    assert state.values["large"] == LARGE + "4"
    assert len(state.values["messages"]) == 14


async def test_the_newest_few_stay_with_all_that_they_need(store: Driver) -> None:
    graph = graph_of(store)
    await ask(graph, 0, large=LARGE)
    for number in range(1, 5):
        await ask(graph, number)
    before = await history(store)
    await pruned(store, RetentionPolicy(checkpoints=4))
    left = await history(store)
    assert [each.values for each in left] == [each.values for each in before[:4]]
    assert [each.metadata for each in left] == [each.metadata for each in before[:4]]
    assert left[-1].parent_config is None
    fork = await graph_of(store).ainvoke(None, left[2].config)
    assert texts(fork)[-1].startswith("answer")


async def test_young_checkpoints_stay(store: Driver) -> None:
    graph = graph_of(store)
    await ask(graph, 0)
    middle = datetime.now(UTC).isoformat()
    await ask(graph, 1)
    before = await history(store)
    assert (await pruned(store, RetentionPolicy(checkpoints=None))).rows == {}
    found = await pruned(store, RetentionPolicy(checkpoints_before=middle))
    assert found.rows["checkpoints"] == 3
    left = await history(store)
    assert [each.values for each in left] == [each.values for each in before[:3]]
    assert (await pruned(store, RetentionPolicy(checkpoints_before=now()))).rows["checkpoints"] == 2


async def test_an_interrupted_graph_is_resumed(store: Driver) -> None:
    def ask_back(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage(f"you said {interrupt('really?')}")]}

    inner = StateGraph(State)
    inner.add_node("ask", ask_back)
    inner.add_edge(START, "ask")
    compiled = inner.compile()
    graph = graph_of(store, node=compiled)
    for number in range(3):
        await ask(graph, number)
        await graph.ainvoke(Command(resume="yes"), ON_T)
    await ask(graph, 3)
    found = await pruned(store, RetentionPolicy(entries_before=now(), window=1))
    assert found.rows["checkpoints"] > 10
    assert "entries" not in found.rows
    waiting = await graph_of(store, node=compiled).aget_state(ON_T, subgraphs=True)
    assert waiting.next == ("node",)
    assert [each.value for each in waiting.interrupts] == ["really?"]
    ended = await graph_of(store, node=compiled).ainvoke(Command(resume="no"), ON_T)
    assert texts(ended)[-2:] == ["question 3", "you said no"]


async def test_what_delta_channels_are_made_of_stays(store: Driver) -> None:
    class Deltas(TypedDict):
        messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=4)]

    def reply(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}

    graph = graph_of(store, node=reply, state=Deltas)
    for number in range(7):
        await ask(graph, number)
    before = await history(store, graph)
    found = await pruned(store, RetentionPolicy())
    assert 0 < found.rows["checkpoints"] < len(before) - 1
    again = graph_of(store, node=reply, state=Deltas)
    assert (await again.aget_state(ON_T)).values == before[0].values
    await ask(again, 8)
    assert len((await graph_of(store, node=reply, state=Deltas).aget_state(ON_T)).values["messages"]) == 16


@pytest.mark.parametrize("keep", [1, 3])
async def test_the_saver_prunes_the_same(store: Driver, keep: int) -> None:
    saver = AsyncLongthreadSaver(store)
    graph = graph_of(store)
    for number in range(3):
        await ask(graph, number, large=LARGE + str(number))
    await saver.acopy_thread("t", "copy")
    await pruned(store, RetentionPolicy(checkpoints=keep))
    if keep == 1:
        await saver.aprune(["copy"])
        copied: RunnableConfig = {"configurable": {"thread_id": "copy"}}
        assert [each.values async for each in graph_of(store).aget_state_history(copied)] == [
            each.values for each in await history(store)
        ]
        async with store.reading() as tx:
            of = [await tx.fetch("select_blob_names", thread_id=name, ns="") for name in ("t", "copy")]
        assert of[0] == of[1] != []
    else:
        assert len(await history(store)) == keep


async def test_entries_that_a_checkpoint_refers_to_stay(store: Driver) -> None:
    graph = graph_of(store)
    for number in range(10):
        await ask(graph, number)
    found = await pruned(store, RetentionPolicy(entries_before=now(), window=2))
    assert found.rows["checkpoints"] == 29
    assert "entries" not in found.rows
    state = await graph_of(store).aget_state(ON_T)
    assert len(state.values["messages"]) == 20


async def test_entries_that_no_checkpoint_refers_to_go(store: Driver) -> None:
    graph = trimming_graph(store)
    for number in range(10):
        await ask(graph, number)
    before = await graph_of(store).aget_state(ON_T)
    found = await pruned(store, RetentionPolicy(entries_before=now(), window=2))
    assert found.rows["entries"] == 14
    state = await graph_of(store).aget_state(ON_T)
    assert state.values == before.values
    async with store.reading() as tx:
        tip, size = await log.position(tx, "t")
        left = await log.branch(tx, "t", tip, limit=size)
    assert left[0].text == "question 7"
    assert [entry.text for entry in left[-4:]] == texts(before.values)[-4:]
    for again in (graph, trimming_graph(store)):
        await ask(again, 10)
    state = await graph_of(store).aget_state(ON_T)
    async with store.reading() as tx:
        tip, size = await log.position(tx, "t")
        branch = await log.branch(tx, "t", tip, limit=size)
    assert [entry.text for entry in branch][-4:] == texts(state.values)[-4:]
    assert next(entry.text for entry in branch) == "question 7"


async def test_a_copy_of_a_thread_that_was_cut_begins_where_it_does(store: Driver) -> None:
    graph, saver = trimming_graph(store), AsyncLongthreadSaver(store)
    for number in range(10):
        await ask(graph, number)
    assert (await pruned(store, RetentionPolicy(entries_before=now(), window=2))).rows["entries"] == 14
    await saver.acopy_thread("t", "copy")
    async with store.reading() as tx:
        cut, copy = [await log.find_thread(tx, name, user_id="default") for name in ("t", "copy")]
        assert copy.first_seq == cut.first_seq == 15
        of = [await log.branch(tx, thread.id, thread.tip, limit=99) for thread in (cut, copy)]
    assert of[0] == [replace(entry, thread_id="t") for entry in of[1]] != []
    assert await pruned(store, RetentionPolicy(entries_before=now(), window=2)) == Pruned()


async def test_a_thread_that_was_begun_anew_since_it_was_looked_at_is_pruned_as_it_is(
    store: Driver, second: Driver
) -> None:
    class Meanwhile(CheckpointKeeper):
        begun = False

        async def surplus(self, *args: Any, **more: Any) -> Surplus:
            found = await super().surplus(*args, **more)
            if not self.begun:
                self.begun = True
                await AsyncLongthreadSaver(second).adelete_thread("t")
                for number in range(4):
                    await ask(graph_of(second), number, large=LARGE + str(number))
            return found

    for number in range(3):
        await ask(graph_of(store), number, large=LARGE + str(number))
    keeper = Meanwhile()
    retention = Retention(RetentionPolicy(checkpoints_before=now()), keeper, lambda owner: True)
    assert (await prune(store, retention, silent, apply=True)).rows == {}
    assert keeper.begun
    assert len(await history(store)) == 12


@pytest.mark.parametrize("by", ["saver", "retention"])
async def test_what_tasks_have_written_goes_with_a_checkpoint_of_a_clock_that_is_ahead(store: Driver, by: str) -> None:
    ids = [f"1f000000-0000-6000-8000-{number:012}" for number in (5, 9, 7)]  # the second was put where it was later
    saver = AsyncLongthreadSaver(store)
    for id_ in ids:
        at: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id_}}
        await AsyncLongthreadSaver(store).aput_writes(at, [("x", id_)], "task")  # in a row: nobody has put it yet
        await saver.aput(ON_T | {"configurable": {**ON_T["configurable"], "checkpoint_ns": ""}}, _bare(id_), {}, {})
    if by == "saver":
        await saver.aprune(["t"])
    else:
        await pruned(store, RetentionPolicy())
    async with store.reading() as tx:
        found = await tx.fetch(Sql("SELECT checkpoint_id FROM checkpoint_writes"))
    assert len(found) == 1
    [left] = [each async for each in AsyncLongthreadSaver(store).alist(ON_T)]
    assert left.pending_writes == [("task", "x", ids[-1])]


def _bare(id_: str) -> Checkpoint:
    return empty_checkpoint() | {"id": id_}  # type: ignore[return-value]
