"""Messages of delta channels are entries of the log, as those of whole lists are."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from deepagents import create_deep_agent
from deepagents._messages_reducer import _messages_delta_reducer as deep_reducer
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer
from langgraph.types import Durability, Overwrite
from tests.script import call
from typing_extensions import TypedDict

from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
from longthread.langgraph.memory.message_view import last_view
from longthread.langgraph.saver.delta import DeltaWrite, apply_writes
from longthread.langgraph.saver.load import merged_tasks
from longthread.langgraph.saver.record import StoredCheckpoint
from longthread.langgraph.transfer.import_checkpoints import import_langgraph
from longthread.store import checkpoints, log, summaries
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

REDUCERS = {"deepagents": deep_reducer, "langgraph": _messages_delta_reducer}


def on(thread_id: str = "t", **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, **more}}


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(message.text) for message in messages]


async def logged(saver: LongthreadSaver, thread_id: str = "t") -> list[str]:
    """The texts of the active branch."""
    async with saver.backing.store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id="default")
        return [entry.text for entry in await log.branch(tx, thread_id, thread.tip)] if thread.tip else []


async def inline(saver: LongthreadSaver, ns: str = "") -> list[str]:
    """The channels whose stored writes or values hold a message besides its entry, of all but the newest checkpoint."""
    found: list[str] = []
    async with saver.backing.store.reading() as tx:
        [_, *rows] = await checkpoints.before(tx, "t", ns, None, limit=1000)
        for row in rows:
            stored = StoredCheckpoint.from_row(row, saver.serde)
            tasks = merged_tasks(stored, await checkpoints.writes(tx, "t", ns, row.id), "t")
            cells = [*stored.cells.items(), *(each for task in tasks.values() for each in task.items.values())]
            found += [channel for channel, cell in cells if cell.has_inline]
    return found


def graph_of(saver: Any, node: Any = None, *, reducer: Any = deep_reducer, often: int = 50) -> Any:
    """A graph whose messages, and notes, are in delta channels."""

    messages = Annotated[list[Any], DeltaChannel(reducer, snapshot_frequency=often)]
    tags = Annotated[list[str], DeltaChannel(lambda state, writes: [*state, *writes])]
    # Its annotations depend on the arguments, which texts cannot.
    schema: Any = TypedDict("State", {"messages": messages, "notes": messages, "tags": tags})  # type: ignore[valid-type]

    def reply(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")], "tags": "x"}

    builder = StateGraph(schema)
    builder.add_node("node", node or reply)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("name", REDUCERS)
@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_the_log_reads_as_the_state_does(store_address: str, name: str, durability: Durability) -> None:
    asked: list[Any] = [
        [HumanMessage("one", id="q1")],
        [("user", "two")],
        [{"role": "user", "content": "three"}],
        HumanMessage("four", id="q4"),
        "five",
    ]
    for often in (3, 50):
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            graph, at = graph_of(saver, reducer=REDUCERS[name], often=often), on(f"t{often}")
            for question in asked:
                state = await graph.ainvoke({"messages": question}, at, durability=durability)
            told = texts(state["messages"])
            assert told == [
                each
                for n, q in enumerate(["one", "two", "three", "four", "five"])
                for each in (q, f"answer {2 * n + 1}")
            ]
            assert await logged(saver, f"t{often}") == told
        async with LongthreadSaver.from_conn_string(store_address) as saver:  # another process
            graph = graph_of(saver, reducer=REDUCERS[name], often=often)
            state = await graph.ainvoke({"messages": [("user", "six")]}, at, durability=durability)
            assert await logged(saver, f"t{often}") == texts(state["messages"]) == [*told, "six", "answer 11"]


async def test_what_tasks_wrote_refers_to_the_entries(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver, often=4)
        for number in range(6):
            state = await graph.ainvoke({"messages": [HumanMessage(f"question {number}")]}, on())
        assert await inline(saver) == []
        assert await logged(saver) == texts(state["messages"])
        again = (await graph.aget_state(on())).values["messages"]
        assert [(each.id, each.text) for each in again] == [(each.id, each.text) for each in state["messages"]]


async def test_a_message_without_an_id_has_the_same_one_whenever_it_is_read(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver, often=3)
        for number in range(5):
            await graph.ainvoke({"messages": [("user", f"question {number}")]}, on())
        first, second = [(await graph.aget_state(on())).values["messages"] for _ in range(2)]
        assert [each.id for each in first] == [each.id for each in second]
        assert all(each.id for each in first)
        await graph.ainvoke({"messages": [RemoveMessage(id=str(first[2].id))]}, on())
        left = (await graph.aget_state(on())).values["messages"]
        assert texts(left)[:3] == ["question 0", "answer 1", "answer 3"]


@pytest.mark.parametrize("name", REDUCERS)
async def test_messages_are_replaced_removed_and_reset(store_address: str, name: str) -> None:
    writes: list[Any] = [
        [AIMessage("first", id="a"), AIMessage("second", id="b")],
        [AIMessage("changed", id="b")],
        [RemoveMessage(id="a"), AIMessage("third", id="c")],
        Overwrite([AIMessage("anew", id="n")]),
        AIMessage("last", id="l"),
    ]
    expected = [["first", "second"], ["first", "changed"], ["changed", "third"], ["anew"], ["anew", "last"]]

    def node(state: Any) -> Any:
        return {"messages": writes[len(state["notes"])], "notes": [AIMessage("note")]}

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver, node, reducer=REDUCERS[name])
        for told in expected:
            state = await graph.ainvoke({"tags": "x"}, on())
            assert texts(state["messages"]) == told
            branch = await logged(saver)
            assert [each for each in branch if each in told] == told


async def test_what_a_failed_step_has_written_counts_when_it_has_succeeded(store_address: str) -> None:
    class State(TypedDict):
        messages: Annotated[list[Any], DeltaChannel(deep_reducer)]

    fails = [True]

    async def other(state: Any) -> Any:
        if fails:
            raise ValueError("not now")
        return {"messages": [AIMessage("from the other")]}

    async def one(state: Any) -> Any:
        return {"messages": [AIMessage("from one")]}

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        builder = StateGraph(State)
        for name, node in (("one", one), ("other", other)):
            builder.add_node(name, node)
            builder.add_edge(START, name)
        graph = builder.compile(checkpointer=saver)
        with pytest.raises(ValueError, match="not now"):
            await graph.ainvoke({"messages": [HumanMessage("question")]}, on())
        assert await logged(saver) == ["question"]
        fails.clear()
        state = await graph.ainvoke(None, on())
        assert await logged(saver) == texts(state["messages"])
        assert set(texts(state["messages"])) == {"question", "from one", "from the other"}


async def test_forks_and_updates_are_branches(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver)
        for number in range(3):
            await graph.ainvoke({"messages": [HumanMessage(f"question {number}")]}, on())
        past = [each async for each in graph.aget_state_history(on())]
        early = next(each for each in past if texts(each.values["messages"]) == ["question 0", "answer 1"])
        state = await graph.ainvoke({"messages": [HumanMessage("instead")]}, early.config)
        assert await logged(saver) == texts(state["messages"]) == ["question 0", "answer 1", "instead", "answer 3"]
        await graph.aupdate_state(on(), {"messages": [AIMessage("by hand")]}, as_node="node")
        now = (await graph.aget_state(on())).values["messages"]
        assert await logged(saver) == texts(now) == [*texts(state["messages"]), "by hand"]
        at_first = (await graph.aget_state(past[0].config)).values["messages"]
        assert texts(at_first) == [each for n in range(3) for each in (f"question {n}", f"answer {2 * n + 1}")]


async def test_the_checkpoints_of_a_run_go_with_their_messages_from_the_branch(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver)
        for number in range(3):
            at = on(run_id=f"run {number}") | {"metadata": {"run_id": f"run {number}"}}
            await graph.ainvoke({"messages": [("user", f"question {number}")]}, at)
        await saver.adelete_for_runs(["run 2"])
        assert await logged(saver) == ["question 0", "answer 1", "question 1", "answer 3"]
        assert texts((await graph.aget_state(on())).values["messages"]) == await logged(saver)


async def test_messages_of_other_channels_and_of_subgraphs_are_entries_too(store_address: str) -> None:
    def inside(state: Any) -> Any:
        return {"messages": [AIMessage("inside")], "notes": [AIMessage("a note inside")]}

    def node(state: Any) -> Any:
        found = graph_of(True, inside).invoke({"messages": [HumanMessage("to the inside")]})
        return {"messages": [found["messages"][-1]], "notes": [AIMessage("a note")]}

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver, node)
        for number in range(2):
            await graph.ainvoke({"messages": [HumanMessage(f"question {number}")]}, on())
        assert await logged(saver) == ["question 0", "inside", "question 1", "inside"]
        async with saver.backing.store.reading() as tx:
            rows = await tx.fetch("select_entries_down", thread_id="t", first=1, seq=10_000, limit=100)
        # A reply of the subgraph's is on its own branch too.
        each = ["inside", "inside", "a note inside", "to the inside", "a note"]
        assert sorted(str(row["text"]) for row in rows) == sorted([*each, *each, "question 0", "question 1"])


def test_it_works_without_await(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = graph_of(saver)
        for number in range(3):
            state = graph.invoke({"messages": [("user", f"question {number}")]}, on())
        assert saver.backing.home.call("logged", logged, saver) == texts(state["messages"])


async def test_the_import_of_a_stock_database_fills_the_log(store_address: str, tmp_path: Path) -> None:
    address = str(tmp_path / "stock.db")
    with SqliteSaver.from_conn_string(address) as stock:
        graph = graph_of(stock, often=4)
        for number in range(7):
            graph.invoke({"messages": [("user", f"question {number}")]}, on())
        graph.update_state(on(), {"messages": [HumanMessage("by hand", id="h")]}, as_node="node")
        before = graph.get_state(on()).values["messages"]
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        await import_langgraph(address, saver)
        assert await logged(saver) == texts(before)
        graph = graph_of(saver, often=4)
        assert texts((await graph.aget_state(on())).values["messages"]) == texts(before)
        state = await graph.ainvoke({"messages": [("user", "one more")]}, on())
        assert await logged(saver) == texts(state["messages"]) == [*texts(before), "one more", "answer 16"]


def test_the_list_after_writes_is_what_the_reducer_makes_of_them() -> None:
    chance = random.Random(7)
    for _ in range(200):
        state: list[Any] = []
        known: list[BaseMessage] = []
        for step in range(12):
            chosen = [chance.choice("abcdef") for _ in range(chance.randrange(1, 4))]
            write: Any = [
                RemoveMessage(id=REMOVE_ALL_MESSAGES if chance.random() < 0.1 else name)
                if chance.random() < 0.3
                else AIMessage(f"{name}{step}", id=name)
                for name in chosen
            ]
            write = write[0] if len(write) == 1 and chance.random() < 0.5 else write
            state = deep_reducer(state, [write])
            found = apply_writes(known, [DeltaWrite(f"p{step}", write)])
            assert found is not None
            known = found
            assert texts(known) == texts(state)


async def test_a_deep_agent_has_summary_short_state_and_recall(store_address: str) -> None:
    def reply(messages: list[BaseMessage]) -> Any:
        if str(messages[0].text).startswith("You keep the memory"):
            return "They told numbers."
        asks = messages[-1].type == "human" and "what" in messages[-1].text
        return call("recall_memory", query="number 3") if asks else "fine"

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = MemoryMiddleware(saver, memory_context_window=24_000, memory_max_messages_per_thread=8)
        agent = create_deep_agent(
            model=ScriptedChatModel(reply),
            tools=[recall_tool(saver)],
            middleware=[memory],
            checkpointer=saver,
            store=LongthreadStore.of(saver),
        )
        for number in range(20):
            state = await agent.ainvoke({"messages": [("user", f"it is number {number}")]}, on())
        assert len(state["messages"]) <= 18
        state = await agent.ainvoke({"messages": [("user", "what numbers were there?")]}, on())
        found = json.loads(state["messages"][-2].text)["data"]["found"]
        assert "it is number 3" in [each["text"] for each in found]
        branch = await logged(saver)
        assert [each for each in branch if each.startswith("it is")] == [f"it is number {n}" for n in range(20)]
        async with saver.backing.store.reading() as tx:
            assert (await summaries.find(tx, "t")) is not None
        view = await last_view(saver.backing.store, "t", user_id="default")
        assert view is not None
        assert "what numbers were there?" in [entry.text for entry in view.entries]
