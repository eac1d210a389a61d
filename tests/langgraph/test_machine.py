"""Random graphs of messages on our saver, on both backends, and on LangGraph's own in memory: all hold the same."""

from __future__ import annotations

import asyncio
import itertools
import operator
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from tests.exploring import explore
from typing_extensions import TypedDict

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.driver import Driver
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

_examples = itertools.count()


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    scratch: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[Any], operator.add]
    now: Any


def _graph(saver: Any) -> Any:
    """Two steps after each input: an answer that follows from the state, and a note of it."""

    def answer(state: State) -> dict[str, Any]:
        count = len(state["messages"])
        last = state["messages"][-1:] or [HumanMessage("", id="none")]
        reply = AIMessage([{"type": "text", "text": f"{count}"}, {"type": "odd", "值": [count]}], id=f"r{count % 4}")
        return {"messages": [reply], "scratch": last}

    def note(state: State) -> dict[str, Any]:
        last = state["messages"][-1] if state["messages"] else None
        return {"notes": [len(state["messages"]), {"last": last}], "now": last}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("note", note)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "note")
    builder.add_edge("note", END)
    return builder.compile(checkpointer=saver)


ids = st.sampled_from([f"m{n}" for n in range(5)] + ["r1", "r2"])
texts = st.sampled_from(["one", "two", "三", ""])
messages = st.one_of(
    st.builds(HumanMessage, texts, id=ids),
    st.builds(HumanMessage, texts, id=ids, name=st.just("名"), additional_kwargs=st.just({"deep": {"n": [1, None]}})),
    st.builds(ToolMessage, texts, id=ids, tool_call_id=st.just("c"), status=st.just("error")),
    st.builds(
        AIMessage,
        texts,
        id=ids,
        tool_calls=st.sampled_from(
            [{"at": "east", "n": 1}, {"at": {1: "a", "1": "b"}}, {"on": date(2026, 1, 1), "b": b"\x00"}, {"s": {1, 2}}]
        ).map(lambda args: [{"name": "look", "args": args, "id": "c", "type": "tool_call"}]),
    ),
)
batches = st.lists(messages, min_size=1, max_size=4)
threads = st.sampled_from(["a", "b"])


class SaverMachine(RuleBasedStateMachine):
    """Each rule does the same with every saver; threads carry the example's number."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.addresses = addresses
        self.example = next(_examples)
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.memory = InMemorySaver()
        self.touched: set[str] = set()
        self.stores: list[Driver] = []
        self.savers: list[Any] = []
        self.runner.run(self._open())

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    async def _open(self) -> None:
        self.stores = [await self.stack.enter_async_context(open_store(address)) for address in self.addresses]
        self.savers = [self.memory, *(AsyncLongthreadSaver(store) for store in self.stores)]

    def _at(self, thread: str) -> Any:
        return {"configurable": {"thread_id": f"{self.example}-{thread}"}}

    def _with_each(self, thread: str, back: int, do: Any) -> None:
        """Do the same with each saver at a thread's newest checkpoint, or so many before it: the same comes out."""
        self.touched.add(thread)
        outcomes = [self.runner.run(self._outcome(saver, thread, back, do)) for saver in self.savers]
        assert outcomes[1:] == outcomes[:1] * len(self.stores)

    async def _outcome(self, saver: Any, thread: str, back: int, do: Any) -> Any:
        graph = _graph(saver)
        at = self._at(thread)
        if back:
            history = [each.config async for each in graph.aget_state_history(at)]
            at = history[back % len(history)] if history else at
        try:
            return await do(graph, at)
        except ValueError as error:  # such as the removal of a message that is not there
            return str(error)

    @initialize(batch=batches)
    def begin(self, batch: list[BaseMessage]) -> None:
        self.run("a", batch, 0)

    @rule(thread=threads, batch=batches, back=st.sampled_from([0, 0, 1, 3, 7]))
    def run(self, thread: str, batch: list[BaseMessage], back: int) -> None:
        """A run from the end or from further back, which is a fork."""

        async def do(graph: Any, at: Any) -> Any:
            return await graph.ainvoke({"messages": batch}, at)

        self._with_each(thread, back, do)

    @rule(thread=threads, batch=batches, back=st.sampled_from([0, 0, 2, 5]))
    def update(self, thread: str, batch: list[BaseMessage], back: int) -> None:
        """An edit of the list from outside."""
        self._update(thread, batch, back)

    @rule(thread=threads, gone=st.lists(ids, min_size=1, max_size=2, unique=True), back=st.sampled_from([0, 2]))
    def remove(self, thread: str, gone: list[str], back: int) -> None:
        self._update(thread, [RemoveMessage(id=each) for each in gone], back)

    @rule(thread=threads, batch=st.lists(messages, max_size=3))
    def replace_all(self, thread: str, batch: list[BaseMessage]) -> None:
        """What middleware that summarizes does."""
        self._update(thread, [RemoveMessage(id=REMOVE_ALL_MESSAGES), *batch], 0)

    def _update(self, thread: str, batch: Sequence[BaseMessage], back: int) -> None:
        async def do(graph: Any, at: Any) -> Any:
            await graph.aupdate_state(at, {"messages": list(batch), "scratch": list(batch)[-1:]}, as_node="answer")
            return (await graph.aget_state(self._at(thread))).values

        self._with_each(thread, back, do)

    @rule(thread=threads)
    def go_on(self, thread: str) -> None:
        """Take the step that is next, where there is one."""

        async def do(graph: Any, at: Any) -> Any:
            state = await graph.aget_state(at)
            return await graph.ainvoke(None, at) if state.next else None

        self._with_each(thread, 0, do)

    @rule(thread=threads)
    def delete(self, thread: str) -> None:
        self.touched.add(thread)
        for saver in self.savers:
            self.runner.run(saver.adelete_thread(self._at(thread)["configurable"]["thread_id"]))

    @rule(thread=threads)
    def look_back(self, thread: str) -> None:
        """A graph finds the same states, with the same things to do next."""
        wanted, *found = [self.runner.run(self._history(saver, thread)) for saver in self.savers]
        for history, store in zip(found, self.stores, strict=True):
            assert history == wanted, store.dialect

    @rule()
    def reopen(self) -> None:
        """Nothing that is remembered in a process may be needed to read."""

        async def again() -> None:
            await self.stack.aclose()
            await self._open()

        self.runner.run(again())
        self.touched |= {"a", "b"}

    @invariant()
    def all_hold_the_same(self) -> None:
        for thread in self.touched:
            wanted, *found = [self.runner.run(self._checkpoints(saver, thread)) for saver in self.savers]
            for checkpoints, store in zip(found, self.stores, strict=True):
                assert checkpoints == wanted, store.dialect
        self.touched.clear()

    async def _checkpoints(self, saver: Any, thread: str) -> list[Any]:
        """All checkpoints of a thread, without what each saver names in its own way."""
        found = [each async for each in saver.alist(self._at(thread))]
        place = {each.config["configurable"]["checkpoint_id"]: n for n, each in enumerate(found)}
        return [
            (
                each.checkpoint["channel_values"],
                {name: each.metadata.get(name) for name in ("source", "step")},
                place.get(each.parent_config["configurable"]["checkpoint_id"]) if each.parent_config else None,
                sorted(((channel, value) for _, channel, value in each.pending_writes or []), key=itemgetter(0)),
            )
            for each in found
        ]

    async def _history(self, saver: Any, thread: str) -> list[Any]:
        """The states that a graph finds."""
        history = [each async for each in _graph(saver).aget_state_history(self._at(thread))]
        return [
            (each.values, each.next, [(task.name, task.result, task.error) for task in each.tasks]) for each in history
        ]


@pytest.mark.postgres
def test_random_graphs_are_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    addresses = [str(tmp_path / "c.db"), postgres_url]
    explore(lambda: SaverMachine(addresses), examples=3, steps=8)


@pytest.mark.slow
@pytest.mark.postgres
def test_many_random_graphs_are_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    addresses = [str(tmp_path / "c.db"), postgres_url]
    explore(lambda: SaverMachine(addresses), examples=150, steps=25)


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_what_tasks_write_while_the_next_checkpoint_is_stored_is_kept(store: Driver, durability: Any) -> None:
    wanted: list[list[str]] | None = None
    for number in range(25):
        graph, at = _graph(AsyncLongthreadSaver(store)), {"configurable": {"thread_id": f"t{number}"}}
        await graph.ainvoke({"messages": [HumanMessage("one", id="m0")]}, at, durability=durability)
        found = [each async for each in AsyncLongthreadSaver(store).alist(at)]  # type: ignore[arg-type]
        written = [sorted(channel for _, channel, _ in each.pending_writes or []) for each in found]
        wanted = wanted or written
        assert written == wanted == [[], ["notes", "now"], ["branch:to:note", "messages", "scratch"], wanted[3]]
