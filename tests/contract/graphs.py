"""LangGraph graphs whose saver is over the store: turns, interrupts, edits, forks, and pruning."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.types import Command, interrupt
from tests.contract.base import Contract, OpenStore, rows_of

from longthread.langgraph.saver.saver import LongthreadSaver
from longthread.langgraph.transfer.import_checkpoints import import_langgraph
from longthread.store import log
from longthread.store.driver import Driver

LARGE = "大" + "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(400))
"""A value that is stored apart from its checkpoint, and from its task's other writes."""
CHECKPOINT = "1fffffff-ffff-6fff-bfff-ffffffffffff"
"""The id of a checkpoint that is newer than all others."""


def _joined(value: list[str] | None, writes: list[list[str]]) -> list[str]:
    return [*(value or []), *(item for items in writes for item in items)]


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    large: str
    notes: Annotated[list[str], DeltaChannel(_joined, snapshot_frequency=4)]


def graph_on(store: Driver) -> Any:
    """Return a graph with a saver of its own: it answers, or asks back in a subgraph if the question says so."""
    return graph_with(LongthreadSaver(store))


def graph_with(saver: Any) -> Any:
    inner = StateGraph(MessagesState)
    inner.add_node("ask", _ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(Talk)
    outer.add_node("note", _note)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "note")
    outer.add_edge("note", "inner")
    return outer.compile(checkpointer=saver)


def _note(state: Talk) -> dict[str, Any]:
    last = state["messages"][-1].text
    return {"notes": [f"note of {last}"], "large": f"{LARGE}{last}"}


def _ask(state: MessagesState) -> dict[str, Any]:
    last = state["messages"][-1]
    said = interrupt(f"{last.text}?") if last.text.startswith("ask") else last.text
    return {"messages": [AIMessage(f"answer to {said}", id=f"{last.id}-a")]}


def at(thread_id: str = "t", **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, **more}}


async def turn(graph: Any, text: str, config: RunnableConfig | None = None) -> dict[str, Any]:
    """Send a user's message, whose id is its text, through the graph."""
    found: dict[str, Any] = await graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, config or at())
    return found


async def turns(graph: Any, *texts: str, config: RunnableConfig | None = None) -> None:
    for text in texts:
        await turn(graph, text, config)


def said(values: Any) -> list[str]:
    return [message.text for message in values["messages"]]


async def history(store: Driver, thread_id: str = "t") -> list[Any]:
    """Return all states of a thread, newest first, read by a new saver."""
    return [state async for state in graph_on(store).aget_state_history(at(thread_id))]


async def told(store: Driver, thread_id: str = "t") -> list[tuple[Any, ...]]:
    """Return all states of a thread without what differs in a copy."""
    return [(state.values, state.next, state.metadata["step"]) for state in await history(store, thread_id)]


async def logged(store: Driver, thread_id: str = "t") -> list[str]:
    async with store.reading() as tx:
        tip, size = await log.position(tx, thread_id)
        return [entry.text for entry in await log.branch(tx, thread_id, tip, limit=size)] if tip else []


class GraphContract(Contract):
    """`LongthreadSaver`."""

    async def test_a_graphs_turns_are_read_by_another_saver_as_they_were(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            graph = graph_on(first)
            seen = [await turn(graph, text) for text in ("one", "two", "三")]
            assert said(seen[-1]) == ["one", "answer to one", "two", "answer to two", "三", "answer to 三"]
            assert await logged(second) == said(seen[-1])
            state = await graph_on(second).aget_state(at())
            assert state.values == seen[-1]
            assert state.values["large"] == f"{LARGE}三"
            assert state.values["notes"] == ["note of one", "note of two", "note of 三"]
            ends = [state.values for state in await history(second) if not state.next]
            assert ends == seen[::-1]
            await turn(graph_on(second), "four")
            assert said(await turn(graph, "five"))[-4:] == ["four", "answer to four", "five", "answer to five"]

    async def test_an_interrupt_waits_for_its_answer_in_every_namespace(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            graph = graph_on(store)
            await turn(graph, "one")
            assert [each.value for each in (await turn(graph, "ask"))["__interrupt__"]] == ["ask?"]
        async with open_store() as store:
            waiting = await graph_on(store).aget_state(at(), subgraphs=True)
            assert [each.value for each in waiting.interrupts] == ["ask?"]
            [task] = waiting.tasks
            assert task.state.config["configurable"]["checkpoint_ns"].startswith("inner:")
            assert said(task.state.values)[-1] == "ask"
            ended = await graph_on(store).ainvoke(Command(resume="yes"), at())
            assert said(ended) == ["one", "answer to one", "ask", "answer to yes"]
            assert (await graph_on(store).aget_state(at())).interrupts == ()
            assert await logged(store) == said(ended)

    async def test_a_fork_and_an_update_are_branches(self, store: Driver) -> None:
        graph = graph_on(store)
        await turns(graph, "one", "two", "three")
        before = await history(store)
        [second] = [state for state in before if not state.next and len(state.values["messages"]) == 4]
        await turn(graph, "other", second.config)
        assert await logged(store) == ["one", "answer to one", "two", "answer to two", "other", "answer to other"]
        [same] = [state for state in await history(store) if state.config == second.config]
        assert (same.values, same.parent_config) == (second.values, second.parent_config)
        assert [state for state in await history(store) if state.config in [old.config for old in before]] == before
        changed: dict[str, Any] = {"messages": [AIMessage("changed", id="other-a"), RemoveMessage("one-a")]}
        await graph.aupdate_state(at(), changed)
        assert said((await graph_on(store).aget_state(at())).values) == [
            "one", "two", "answer to two", "other", "changed",
        ]  # fmt: skip
        assert await logged(store) == ["one", "answer to one", "two", "answer to two", "other", "changed"]
        [again] = [state for state in await history(store) if state.config == before[0].config]
        assert said(again.values)[-2:] == ["three", "answer to three"]
        assert said(await turn(graph_on(store), "four"))[-3:] == ["changed", "four", "answer to four"]

    async def test_nodes_one_after_the_other_each_add_what_is_theirs(self, open_store: OpenStore) -> None:
        def node(state: Talk) -> dict[str, Any]:
            text = values[len(state["messages"])]
            return {"messages": [AIMessage(text)], "large": text}

        values = [f"{number}{LARGE if number % 5 > 2 else ''}" for number in range(10)]

        builder = StateGraph(Talk)
        for number in range(4):
            builder.add_node(f"n{number}", node)
            builder.add_edge(f"n{number - 1}" if number else START, f"n{number}")
        async with open_store() as first, open_store() as second:
            graph = builder.compile(checkpointer=LongthreadSaver(first))
            await turns(graph, "one", "two")
            assert await logged(second) == ["one", *values[1:5], "two", *values[6:]]
            found = [each.checkpoint["channel_values"] async for each in LongthreadSaver(second).alist(at())]
            assert [len(state.get("messages", ())) for state in found] == [10, 9, 8, 7, 6, 5, 5, 4, 3, 2, 1, 0]
            large = [state.get("large", "") for state in found]
            assert large == [*values[:5:-1], values[4], values[4], *values[4:0:-1], "", ""]

    async def test_a_checkpoint_that_is_put_again_takes_its_own_place(self, store: Driver) -> None:
        await turns(graph_on(store), "one")
        found = await LongthreadSaver(store).aget_tuple(at())
        assert found is not None
        saver = LongthreadSaver(store)  # it has read nothing yet
        values = {**found.checkpoint["channel_values"]}
        new = saver.get_next_version(found.checkpoint["channel_versions"]["messages"], None)
        versions = {**found.checkpoint["channel_versions"], "messages": new}
        for text in ("two", "three"):
            values["messages"] = [*found.checkpoint["channel_values"]["messages"], HumanMessage(text, id=text)]
            changed = {**found.checkpoint, "id": CHECKPOINT, "channel_values": values, "channel_versions": versions}
            config = at(checkpoint_ns="", checkpoint_id=str(found.checkpoint["id"]))
            metadata: Any = {"source": "loop", "step": 9, "parents": {}}
            await saver.aput(config, cast("Any", changed), metadata, {"messages": new})
        again = [each async for each in LongthreadSaver(store).alist(at())]
        assert [each.checkpoint["id"] for each in again[:2]] == [CHECKPOINT, found.checkpoint["id"]]
        assert said(again[0].checkpoint["channel_values"]) == ["one", "answer to one", "three"]

    async def test_threads_of_langgraphs_own_saver_are_taken_over(self, store: Driver, tmp_path: Path) -> None:
        sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
        file = str(tmp_path / "stock.db")
        with sqlite.SqliteSaver.from_conn_string(file) as stock:
            graph_with(stock).invoke({"messages": [HumanMessage("ask", id="ask")]}, at())
            expected = [state.values for state in graph_with(stock).get_state_history(at())]
            count = len(list(stock.list(None)))
        for already in (0, count):
            imported = await import_langgraph(file, LongthreadSaver(store))
            assert (imported.threads, imported.checkpoints, imported.already) == (1, count, already)
        assert [state.values for state in await history(store)] == expected
        ended = await graph_on(store).ainvoke(Command(resume="yes"), at())
        assert said(ended) == ["ask", "answer to yes"]

    async def test_tasks_that_run_at_once_are_kept_whichever_ends_first(self, store: Driver) -> None:
        fast_has_ended = asyncio.Event()

        class Saver(LongthreadSaver):
            async def aput_writes(self, config: Any, writes: Any, *more: Any) -> None:
                if ("notes", ["fast"]) in writes:
                    fast_has_ended.set()
                await super().aput_writes(config, writes, *more)

        async def slow(_: Talk) -> dict[str, Any]:
            await fast_has_ended.wait()
            raise RuntimeError("boom")

        def fast(_: Talk) -> dict[str, Any]:
            return {"notes": ["fast"], "messages": [AIMessage(LARGE, id="fast")]}

        def build(second: Any) -> Any:
            builder = StateGraph(Talk)
            for name, node in (("fast", fast), ("slow", second)):
                builder.add_node(name, node)
                builder.add_edge(START, name)
            return builder.compile(checkpointer=Saver(store))

        with pytest.raises(RuntimeError):
            await turn(build(slow), "one")
        assert (await build(slow).aget_state(at())).next == ("slow",)
        ended = await build(lambda _: {"notes": ["slow"]}).ainvoke(None, at())
        assert (sorted(ended["notes"]), said(ended)) == (["fast", "slow"], ["one", LARGE])

    async def test_a_channels_history_is_what_was_written_to_it(self, store: Driver) -> None:
        graph = graph_on(store)
        await turns(graph, "one", "two")
        saver = LongthreadSaver(store)
        found = await saver.aget_tuple(at())
        assert found is not None
        past = await saver.aget_delta_channel_history(config=found.config, channels=["notes", "none"])
        assert [value for _, _, value in past["notes"]["writes"]] == [["note of one"], ["note of two"]]
        assert past["none"] == {"writes": []}

    async def test_a_copy_is_the_same_and_goes_its_own_way(self, store: Driver) -> None:
        graph = graph_on(store)
        await turns(graph, "one", "ask")
        saver = LongthreadSaver(store)
        await saver.aput_writes((await history(store))[-1].config, [("notes", ["of a task"])], "task")
        await saver.acopy_thread("t", "copy")
        assert await told(store, "copy") == await told(store)
        copied = await rows_of(store, "copy")
        assert {"checkpoints", "checkpoint_blobs", "checkpoint_writes", "entries"} <= copied.keys()
        assert copied == {name: count for name, count in (await rows_of(store)).items() if name in copied}
        assert await logged(store, "copy") == await logged(store) != []
        await graph.ainvoke(Command(resume="here"), at())
        ended = await graph_on(store).ainvoke(Command(resume="there"), at("copy"))
        assert said(ended)[-1] == "answer to there"
        await saver.adelete_thread("t")
        assert await history(store) == []
        assert (await graph_on(store).aget_state(at("copy"))).values == ended

    async def test_what_is_pruned_leaves_the_newest_and_what_it_is_made_of(self, store: Driver) -> None:
        graph = graph_on(store)
        await turns(graph, "one", "two", "three", "ask")
        before = await history(store)
        await LongthreadSaver(store).aprune(["t", "none"])
        left = await history(store)
        assert 0 < len(left) < len(before)
        assert left[0].values == before[0].values
        assert left[-1].parent_config is None, "no checkpoint names one that is gone"
        ended = await graph_on(store).ainvoke(Command(resume="yes"), at())
        assert (said(ended)[-1], len(ended["notes"])) == ("answer to yes", 4)
        await LongthreadSaver(store).aprune(["t"], strategy="delete")
        assert await history(store) == []
        assert not [name for name in await rows_of(store) if name.startswith("checkpoint")]
        assert await logged(store) == said(ended), "messages stay in the log"

    async def test_the_checkpoints_of_runs_go_alone(self, store: Driver) -> None:
        graph = graph_on(store)
        before: dict[str, int] = {}
        for name in ("r1", "r2", "r%"):
            before = await rows_of(store)
            await turn(graph, name, {**at(), "metadata": {"run_id": name}})
        saver = LongthreadSaver(store)
        await saver.aput_writes((await history(store))[0].config, [("notes", ["of a task"])], "task")
        await saver.adelete_for_runs(["r%", "r_"])
        assert said((await graph_on(store).aget_state(at())).values)[-1] == "answer to r2"
        assert await logged(store) == ["r1", "answer to r1", "r2", "answer to r2"]
        left = {state.metadata["run_id"] for state in await history(store)}
        assert left == {"r1", "r2"}
        assert await rows_of(store) == before | {"entries": 6}, "messages stay in the log"
        assert said(await turn(graph_on(store), "on"))[-3:] == ["answer to r2", "on", "answer to on"]

    async def test_a_thread_is_deleted_with_all_that_a_graph_has_kept(self, store: Driver) -> None:
        graph = graph_on(store)
        await turns(graph, "one", "ask")
        await turn(graph, "kept", at("other"))
        await LongthreadSaver(store).adelete_thread("t")
        assert (await graph_on(store).aget_state(at())).values == {}
        assert [each async for each in LongthreadSaver(store).alist(at())] == []
        assert said(await turn(graph, "anew")) == ["anew", "answer to anew"]
        assert said((await graph_on(store).aget_state(at("other"))).values) == ["kept", "answer to kept"]

    async def test_another_users_threads_are_as_if_they_were_not_there(self, store: Driver) -> None:
        await turns(graph_on(store), "one")
        other = LongthreadSaver(store, user_id="other")
        assert await other.aget_tuple(at()) is None
        assert [each async for each in other.alist(None)] == []
        await other.adelete_thread("t")
        await other.aprune(["t"], strategy="delete")
        assert said((await graph_on(store).aget_state(at())).values) == ["one", "answer to one"]
