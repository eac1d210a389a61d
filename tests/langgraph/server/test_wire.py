"""Two runs at once over savers that hand on copies of everything: wrapped, pickled, or across a wire that sends only
the coordinates of checkpoints. Who goes on from an old checkpoint forks; who went on from the newest has a rival."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from longthread.errors import ThreadConflict
from longthread.langgraph import LongthreadSaver
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}
COORDINATES = ("thread_id", "checkpoint_ns", "checkpoint_id")
Copy = Callable[[Any], Any]


def _whole(config: Any) -> Any:
    """The same values as other objects: what LangGraph holds there for itself is no data."""
    if config is None:
        return None
    at = {key: value for key, value in config["configurable"].items() if not key.startswith("__")}
    return {"configurable": at, "metadata": dict(config.get("metadata") or {})}


def _coordinates(config: Any) -> Any:
    at = config["configurable"]
    return {"configurable": {key: at[key] for key in COORDINATES if key in at}}


WIRES: dict[str, Copy] = {
    "copied": lambda config: copy.deepcopy(_whole(config)),
    "pickled": lambda config: pickle.loads(pickle.dumps(_whole(config))),
    "as JSON": lambda config: json.loads(json.dumps(_whole(config))),
    "coordinates": lambda config: json.loads(json.dumps(_coordinates(config))),
}


class Wired(BaseCheckpointSaver[Any]):
    """Each call is a task of its own, as in a server, and what goes in and out is copied."""

    def __init__(self, saver: LongthreadSaver, wire: Copy) -> None:
        super().__init__(serde=saver.serde)
        self._saver, self._wire = saver, wire

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    def _out(self, found: CheckpointTuple | None) -> CheckpointTuple | None:
        if found is None:
            return None
        parent = _coordinates(found.parent_config) if found.parent_config else None
        again = copy.deepcopy(found.checkpoint) | {"id": "".join(found.checkpoint["id"])}
        return found._replace(config=_coordinates(found.config), checkpoint=again, parent_config=parent)

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self._out(await asyncio.create_task(self._saver.aget_tuple(self._wire(config))))

    async def alist(self, config: Any, **asked: Any) -> Any:
        async for found in self._saver.alist(self._wire(config) if config else None, **asked):
            yield self._out(found)

    async def aput(self, config: Any, *given: Any) -> Any:
        return _coordinates(await asyncio.create_task(self._saver.aput(self._wire(config), *copy.deepcopy(given))))

    async def aput_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        given = copy.deepcopy(list(writes)), task_id, task_path
        await asyncio.create_task(self._saver.aput_writes(self._wire(config), *given))


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Copy:
    return WIRES[request.param]


def _together(values: list[str] | None, writes: list[list[str]]) -> list[str]:
    return [*(values or []), *(one for each in writes for one in each)]


class _Written(TypedDict):
    log: Annotated[list[str], DeltaChannel(_together)]


async def _nothing() -> None:
    """Nobody does anything meanwhile."""


class Chat:
    """A graph whose answer to "slow" waits until `meanwhile` is over."""

    def __init__(self, saver: Any) -> None:
        self.meanwhile = _nothing
        builder = StateGraph(MessagesState)
        builder.add_node("answer", self._answer)
        builder.add_edge(START, "answer")
        self.graph = builder.compile(checkpointer=saver)

    async def _answer(self, state: MessagesState) -> dict[str, Any]:
        asked = state["messages"][-1].text
        if asked == "slow":
            await self.meanwhile()
        return {"messages": [("ai", f"re: {asked}")]}

    async def ask(self, text: str, at: Any = AT, **options: Any) -> list[str]:
        found = await self.graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, at, **options)
        return [message.text for message in found["messages"]]

    async def said(self) -> list[str]:
        return [message.text for message in (await self.graph.aget_state(AT)).values["messages"]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("savers", ["one", "two"])
@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_the_run_that_stores_second_is_refused(
    store: Driver, second: Driver, wire: Copy, savers: str, durability: str
) -> None:
    ours = Chat(Wired(LongthreadSaver(store), wire))
    theirs = Chat(Wired(LongthreadSaver(second), wire)) if savers == "two" else Chat(ours.graph.checkpointer)
    await ours.ask("one")

    async def meanwhile() -> None:
        await theirs.ask("quick")

    ours.meanwhile = meanwhile
    with pytest.raises(ThreadConflict):
        await ours.ask("slow", durability=durability)
    before = ["one", "re: one", *([] if durability == "exit" else ["slow"])]
    assert await ours.said() == [*before, "quick", "re: quick"]
    assert await ours.ask("last") == [*before, "quick", "re: quick", "last", "re: last"]


async def test_a_run_whose_past_somebody_looks_at_is_refused_all_the_same(store: Driver, second: Driver) -> None:
    saver = LongthreadSaver(store)
    chat, other = Chat(Wired(saver, WIRES["as JSON"])), Chat(LongthreadSaver(second))
    await chat.ask("one")

    async def meanwhile() -> None:
        await other.ask("quick")
        async for state in chat.graph.aget_state_history(AT):
            await chat.graph.aget_state(state.config)

    chat.meanwhile = meanwhile
    with pytest.raises(ThreadConflict):
        await chat.ask("slow")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_who_names_an_old_checkpoint_forks_as_often_as_he_likes(
    store: Driver, wire: Copy, durability: Any
) -> None:
    chat = Chat(Wired(LongthreadSaver(store), wire))
    for text in ("one", "two"):
        await chat.ask(text)
    past = [state async for state in chat.graph.aget_state_history(AT)]
    [old] = [state for state in past if not state.next and len(state.values["messages"]) == 2]
    for text in ("again", "once more"):  # the same config
        assert await chat.ask(text, old.config, durability=durability) == ["one", "re: one", text, f"re: {text}"]
    edited = await chat.graph.aupdate_state(old.config, {"messages": [HumanMessage("edit", id="edit")]}, "answer")
    assert await chat.said() == ["one", "re: one", "edit"]
    await chat.ask("three")
    assert await chat.ask("from the edit", edited) == ["one", "re: one", "edit", "from the edit", "re: from the edit"]
    [question] = [state for state in past if state.next == ("answer",) and len(state.values["messages"]) == 3]
    for _ in range(2):  # a replay
        await chat.graph.ainvoke(None, question.config, durability=durability)
        assert await chat.said() == ["one", "re: one", "two", "re: two"]
    copied = await chat.graph.aupdate_state(old.config, None, "__copy__")
    assert await chat.ask("at the copy", copied) == ["one", "re: one", "at the copy", "re: at the copy"]


async def test_a_fork_is_refused_where_another_run_has_gone_on_from_its_own_checkpoint(
    store: Driver, second: Driver, wire: Copy
) -> None:
    chat, other = Chat(Wired(LongthreadSaver(store), wire)), Chat(Wired(LongthreadSaver(second), wire))
    for text in ("one", "two"):
        await chat.ask(text)
    past = [state async for state in chat.graph.aget_state_history(AT)]
    [old] = [state for state in past if not state.next and len(state.values["messages"]) == 2]

    async def meanwhile() -> None:
        await other.ask("quick")

    chat.meanwhile = meanwhile
    with pytest.raises(ThreadConflict):
        await chat.ask("slow", old.config, durability="sync")
    assert await chat.said() == ["one", "re: one", "slow", "quick", "re: quick"]


@pytest.mark.parametrize("savers", ["one", "two"])
async def test_of_two_that_begin_a_thread_one_wins(store: Driver, second: Driver, wire: Copy, savers: str) -> None:
    ours = Chat(Wired(LongthreadSaver(store), wire))
    theirs = Chat(Wired(LongthreadSaver(second), wire)) if savers == "two" else Chat(ours.graph.checkpointer)

    async def meanwhile() -> None:
        await theirs.ask("quick")

    ours.meanwhile = meanwhile
    with pytest.raises(ThreadConflict):
        await ours.ask("slow", durability="exit")
    assert await ours.said() == ["quick", "re: quick"]


@pytest.fixture
def _read_before_the_loop(tmp_path: Path) -> None:
    """A program's own thread has read before its event loop begins."""
    with LongthreadSaver.from_conn_string(str(tmp_path / "another.db")) as saver:
        assert saver.get_tuple(AT) is None


def _asking(saver: Any) -> Any:
    async def ask(_: _Written) -> dict[str, Any]:
        return {"log": [interrupt("?")]}

    builder: Any = StateGraph(_Written)
    builder.add_node("ask", ask)
    builder.add_node("end", lambda _: {"log": ["end"]})
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "end")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("savers", ["one", "two"])
@pytest.mark.usefixtures("_read_before_the_loop")
async def test_of_two_answers_to_one_interrupt_one_counts(
    store: Driver, second: Driver, wire: Copy, savers: str
) -> None:
    ours = Wired(LongthreadSaver(store), wire)
    theirs = Wired(LongthreadSaver(second), wire) if savers == "two" else ours
    await _asking(ours).ainvoke({"log": ["in"]}, AT)
    both = asyncio.Barrier(2)

    async def answer(saver: Any, said: str) -> Any:
        graph, load = _asking(saver), saver.aget_tuple

        class AtOnce(Wired):
            async def aget_tuple(self, config: Any) -> Any:
                found = await load(config)
                await both.wait()
                return found

        graph.checkpointer = AtOnce(saver._saver, wire)
        return await graph.ainvoke(Command(resume=said), AT)

    answers = (answer(saver, said) for saver, said in ((ours, "1"), (theirs, "2")))
    found = await asyncio.gather(*answers, return_exceptions=True)
    won = [each["log"] for each in found if isinstance(each, dict)]
    assert [type(each) for each in found if not isinstance(each, dict)] == [ThreadConflict]
    assert [(await _asking(LongthreadSaver(second)).aget_state(AT)).values["log"]] == won


async def test_a_graph_inside_of_one_that_goes_back_goes_back_too(store: Driver, wire: Copy) -> None:
    inner = StateGraph(MessagesState)
    inner.add_node("ask", lambda _: {"messages": [("ai", str(interrupt("?")))]})
    inner.add_edge(START, "ask")
    builder = StateGraph(MessagesState)
    builder.add_node("inner", inner.compile(checkpointer=True))
    builder.add_edge(START, "inner")
    graph: Any = builder.compile(checkpointer=Wired(LongthreadSaver(store), wire))
    for text in ("one", "two"):
        await graph.ainvoke({"messages": [("user", text)]}, AT)
        await graph.ainvoke(Command(resume=f"re: {text}"), AT)
    past = [state async for state in graph.aget_state_history(AT)]
    second, *_, first = [state for state in past if state.next == ("inner",)]
    for state, before in ((first, ["one"]), (second, ["one", "re: one", "two"])):
        for answer in ("other", "another"):
            await graph.ainvoke(None, state.config)
            found = await graph.ainvoke(Command(resume=answer), AT)
            assert [message.text for message in found["messages"]] == [*before, answer]


def test_a_synchronous_run_that_stores_second_is_refused(store_address: str) -> None:
    def answer(state: MessagesState) -> dict[str, Any]:
        if state["messages"][-1].text == "slow":
            graph.invoke({"messages": [("user", "quick")]}, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
        return {"messages": [("ai", "done")]}

    class Copying(LongthreadSaver):
        def put(self, config: Any, *given: Any) -> Any:
            return super().put(pickle.loads(pickle.dumps(_whole(config))), *given)

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    with LongthreadSaver.from_conn_string(store_address) as saver:
        saver.__class__ = Copying
        graph: Any = builder.compile(checkpointer=saver)
        with pytest.raises(ThreadConflict):
            graph.invoke({"messages": [("user", "slow")]}, AT, durability="sync")
        assert [m.text for m in graph.get_state(AT).values["messages"]] == ["slow", "quick", "done"]
