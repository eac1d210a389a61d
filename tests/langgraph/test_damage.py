"""Damaged bytes in a row: the error says which they are, other threads go on, and what is restored reads back whole."""

from __future__ import annotations

import operator
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ChatMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from tests.analysts import OpenAnalyst
from tests.script import COUNT, finish

from longthread.errors import StoreDamaged, ValueDamaged
from longthread.langgraph.message_codec import message_of
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.load import CheckpointReader
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.entry import Draft
from longthread.runs.views import Prompt
from longthread.store import checkpoints, log, runs, summaries
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.deletions import Pruned, prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy, Staying
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend

TURNS = 3
BAD = b"\xff\x97"


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[Any], operator.add]
    large: str


def on(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def answer(state: State) -> dict[str, Any]:
    said = AIMessage(f"answer {len(state['messages'])}", additional_kwargs={"more": "x" * 40})
    return {"messages": [said], "notes": [("a", "tuple")]}


def pause(state: State) -> dict[str, Any]:
    return {"notes": [interrupt("go on?")]}


def graph_of(store: Driver) -> Any:
    """A graph of a process that remembers nothing."""
    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_node("pause", pause)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "pause")
    return graph.compile(checkpointer=AsyncLongthreadSaver(store))


async def fill(store: Driver, *thread_ids: str) -> None:
    for thread_id in thread_ids:
        for number in range(TURNS):
            given = {"messages": [HumanMessage(f"question {number}")], "large": f"{number}" * 5000}
            await graph_of(store).ainvoke(given, on(thread_id))
        newest = (await graph_of(store).aget_state(on(thread_id))).config
        # Another process's: what the one says that has put the checkpoint goes into that.
        await AsyncLongthreadSaver(store).aput_writes(newest, [("notes", ["written"])], "task")


@asynccontextmanager
async def spoiled(store: Driver, table: str, change: str, **values: Any) -> AsyncIterator[None]:
    """The thread `t` with a change to its rows of a table, which is undone."""
    async with store.writing() as tx:
        await tx.run(Sql(f"CREATE TABLE as_it_was AS SELECT * FROM {table} WHERE thread_id = 't'"))
        assert await tx.run(Sql(f"{change} AND thread_id = 't'"), **values) > 0
    yield
    async with store.writing() as tx:
        await tx.run(Sql(f"DELETE FROM {table} WHERE thread_id = 't'"))
        await tx.run(Sql(f"INSERT INTO {table} SELECT * FROM as_it_was"))
        await tx.run(Sql("DROP TABLE as_it_was"))


SHORTER = "substr({0}, 1, length({0}) - 9)"
CHECKPOINT = r"checkpoint [0-9a-f-]{36} of thread t cannot be read"
Change = tuple[str, str, bytes | str | None, str]
BODIES: dict[str, Change] = {
    "nothing is left": ("checkpoints", "UPDATE checkpoints SET body = :v WHERE 1 = 1", b"", CHECKPOINT),
    "no JSON": ("checkpoints", "UPDATE checkpoints SET body = :v WHERE 1 = 1", b"\x00\x00\x00\x00\x02{]", CHECKPOINT),
    "not compressed": ("checkpoints", "UPDATE checkpoints SET body = :v WHERE 1 = 1", b"\x01\xff\xff", CHECKPOINT),
    "other JSON": (
        "checkpoints",
        "UPDATE checkpoints SET body = :v WHERE 1 = 1",
        b"\x00\x00\x00\x00\x02[]",
        CHECKPOINT,
    ),
    "lost its end": (
        "checkpoints",
        f"UPDATE checkpoints SET body = {SHORTER.format('body')} WHERE 1 = 1",
        None,
        CHECKPOINT,
    ),
    "metadata": (
        "checkpoints",
        "UPDATE checkpoints SET metadata = :v WHERE 1 = 1",
        '{"a"',
        f"the metadata of {CHECKPOINT}",
    ),
}
VALUES: dict[str, Change] = {
    "a write": (
        "checkpoint_writes",
        "UPDATE checkpoint_writes SET body = :v WHERE 1 = 1",
        b"\x01\xff",
        f"what a task has written to {CHECKPOINT}",
    ),
    "a large value": (
        "checkpoint_blobs",
        "UPDATE checkpoint_blobs SET body = :v WHERE 1 = 1",
        b"\x02\xff\xff",
        f"the value of large in {CHECKPOINT}",
    ),
    "a large value is gone": (
        "checkpoint_blobs",
        "DELETE FROM checkpoint_blobs WHERE 1 = 1",
        None,
        f"the value of large in {CHECKPOINT}: it is gone",
    ),
    "a payload": (
        "entries",
        "UPDATE entries SET payload = :v WHERE seq = 2",
        BAD,
        "entry 2 of thread t cannot be read: UnicodeDecodeError",
    ),
    "a payload lost its end": (
        "entries",
        f"UPDATE entries SET payload = {SHORTER.format('payload')} WHERE seq = 4",
        None,
        "entry 4 of thread t cannot be read",
    ),
    "two payloads in one": (
        "entries",
        "UPDATE entries SET payload = :v WHERE seq = 2",
        b"{},{}",
        "entry 2 of thread t cannot be read",
    ),
    "a packed payload": (
        "entries",
        "UPDATE entries SET payload = :v WHERE seq = 2",
        b"\x00json:Nobody\x00{}",
        "entry 2 of thread t cannot be read",
    ),
    "tool calls": (
        "entries",
        "UPDATE entries SET tool_calls = :v WHERE seq = 2",
        '[{"id"',
        "entry 2 of thread t cannot be read",
    ),
    "an entry is gone": ("entries", "DELETE FROM entries WHERE seq = 3", None, "entry 3 of thread t .* it is gone"),
}
ALL = BODIES | VALUES


async def state(store: Driver, thread_id: str) -> Any:
    return await graph_of(store).aget_state(on(thread_id))


async def history(store: Driver, thread_id: str) -> Any:
    return [each async for each in graph_of(store).aget_state_history(on(thread_id))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("read", [state, history])
async def test_damage_is_told_and_what_is_restored_reads_back_whole(
    store: Driver, name: str, read: Callable[[Driver, str], Any]
) -> None:
    await fill(store, "s", "t")
    before = await read(store, "t")
    table, change, value, words = ALL[name]
    async with spoiled(store, table, change, **({} if value is None else {"v": value})):
        with pytest.raises(StoreDamaged, match=words) as told:
            await read(store, "t")
        assert (told.value.code, told.value.exit_code) == ("store_damaged", 5)
        assert "restore a backup" in str(told.value)
        assert await read(store, "s")
    assert await read(store, "t") == before


class Changed(JsonPlusSerializer):
    """A serializer of which the application has another version than the one that stored its values."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if "tuple" in str(super().loads_typed(data)):
            raise ValueError("there is no field of this name")
        return super().loads_typed(data)


async def test_an_error_of_the_applications_serializer_may_be_no_damage(store: Driver) -> None:
    await fill(store, "t")
    now, before = AsyncLongthreadSaver(store), AsyncLongthreadSaver(store)
    now.serde = Changed()
    with pytest.raises(ValueDamaged, match="ValueError: there is no field of this name.*read it with those") as told:
        await now.aget_tuple(on("t"))
    assert told.value.code == StoreDamaged.code
    found = await before.aget_tuple(on("t"))
    assert found is not None
    assert len(found.checkpoint["channel_values"]["notes"]) == TURNS


async def test_what_is_said_on_a_damaged_thread_is_not_stored(store: Driver) -> None:
    await fill(store, "t")
    _, change, value, words = BODIES["no JSON"]
    async with spoiled(store, "checkpoints", change, v=value):
        with pytest.raises(StoreDamaged, match=words):
            await graph_of(store).ainvoke({"messages": [HumanMessage("more")]}, on("t"))
    await graph_of(store).ainvoke({"messages": [HumanMessage("more")]}, on("t"))
    assert [each.text for each in (await state(store, "t")).values["messages"]][-2:] == ["more", "answer 7"]


async def test_a_message_in_a_value_is_looked_for_too(store: Driver) -> None:
    async def keep(given: dict[str, Any]) -> dict[str, Any]:
        return {"kept": {"first": given["messages"][0]}}

    class Keeping(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        kept: dict[str, Any]

    graph = StateGraph(Keeping)
    graph.add_node("keep", keep)
    graph.add_edge(START, "keep")
    await graph.compile(checkpointer=AsyncLongthreadSaver(store)).ainvoke({"messages": [HumanMessage("one")]}, on("t"))
    async with store.writing() as tx:
        await tx.run(Sql("DELETE FROM entries WHERE thread_id = 't'"))
    with pytest.raises(StoreDamaged, match="entry 1 of thread t .* it is gone"):
        await graph.compile(checkpointer=AsyncLongthreadSaver(store)).aget_state(on("t"))


async def test_what_retention_has_deleted_is_no_damage(store: Driver) -> None:
    await fill(store, "t")
    async with store.writing() as tx:
        await tx.run(Sql("DELETE FROM entries WHERE thread_id = 't' AND seq < 4"))
        await tx.run("move_first_seq", thread_id="t", first_seq=4)
    assert (await state(store, "t")).values["messages"][0].text == "answer 3"
    assert len(await history(store, "t")) > TURNS


async def pruned(store: Driver, *, apply: bool) -> Pruned:
    retention = Retention(RetentionPolicy(), CheckpointKeeper(), lambda owner: True)
    return await prune(store, retention, lambda done, total, what: None, apply=apply)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BODIES)
async def test_a_damaged_thread_stops_pruning_for_no_other(store: Driver, name: str) -> None:
    await fill(store, "s", "t", "u")
    before = [await history(store, thread_id) for thread_id in "stu"]
    table, change, value, words = BODIES[name]
    async with spoiled(store, table, change, **({} if value is None else {"v": value})):
        for apply in (False, True):
            found = await pruned(store, apply=apply)
            assert found.damaged.keys() == {"t"}
            assert re.match(words, found.damaged["t"])
            assert found.touched == 2
        assert [len(await history(store, thread_id)) for thread_id in "su"] == [1, 1]
    assert await history(store, "t") == before[1]
    assert (await pruned(store, apply=True)).damaged == {}
    assert len(await history(store, "t")) == 1


async def one_run_each(store: Driver, thread_ids: list[str], *, damaged: list[str]) -> None:
    """Threads with one checkpoint each, of the run `r`; of some nothing can be made of it."""
    for name in thread_ids:
        config: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": ""}, "metadata": {"run_id": "r"}}
        await AsyncLongthreadSaver(store).aput(
            config, empty_checkpoint(), {"step": 1, "source": "loop", "parents": {}}, {}
        )
    async with store.writing() as tx:
        for name in damaged:
            await tx.run(Sql("UPDATE checkpoints SET body = :bad WHERE thread_id = :name"), name=name, bad=BAD)


async def threads_with_checkpoints(store: Driver) -> list[str]:
    async with store.reading() as tx:
        rows = await tx.fetch(Sql("SELECT thread_id FROM checkpoints ORDER BY thread_id"))
    return [row["thread_id"] for row in rows]


async def test_damaged_threads_stop_the_deletion_of_runs_in_no_other(store: Driver) -> None:
    names = [f"t{number}" for number in range(9)]
    await one_run_each(store, names, damaged=["t0", "t4"])
    with pytest.raises(StoreDamaged, match=r"checkpoint .{36} of thread t0 .* Damaged too: thread t4\. Nothing"):
        await AsyncLongthreadSaver(store).adelete_for_runs(["r"])
    assert await threads_with_checkpoints(store) == ["t0", "t4"]


async def test_of_many_damaged_threads_the_first_are_named(store: Driver) -> None:
    names = [f"t{number}" for number in range(9)]
    await one_run_each(store, names, damaged=names)
    for work in (AsyncLongthreadSaver(store).aprune(names), AsyncLongthreadSaver(store).adelete_for_runs(["r"])):
        with pytest.raises(StoreDamaged, match=r"thread t0 .* Damaged too: threads t1, t2, t3, t4, t5 and 3 more\. "):
            await work
    assert await threads_with_checkpoints(store) == names


async def test_the_saver_prunes_the_others_and_then_tells(store: Driver) -> None:
    await fill(store, "s", "t", "u")
    _, change, value, words = BODIES["no JSON"]
    async with spoiled(store, "checkpoints", change, v=value):
        with pytest.raises(StoreDamaged, match=words):
            await AsyncLongthreadSaver(store).aprune(["t", "s", "u"])
    assert [len(await history(store, thread_id)) for thread_id in "su"] == [1, 1]
    assert len(await history(store, "t")) > 1


async def test_a_branch_that_lost_an_entry_is_damaged(store: Driver) -> None:
    await fill(store, "t")
    async with store.writing() as tx:
        await tx.run(Sql("DELETE FROM entries WHERE thread_id = 't' AND seq = 3"))
    async with store.reading() as tx:
        with pytest.raises(StoreDamaged, match="entry 3 of thread t .* it is gone"):
            await log.branch(tx, "t", 6)


async def test_an_entry_alone_tells_its_place(store: Driver) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        [entry] = await log.extend(tx, "t", [Draft("a", "user", "text", payload=BAD)])
    with pytest.raises(StoreDamaged, match="entry 1 of thread t cannot be read"):
        message_of(entry)


async def test_a_message_that_only_looks_odd_is_no_damage(store: Driver) -> None:
    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    given = [ChatMessage("]}", role="odd"), HumanMessage("\ud800 {")]
    await graph.compile(checkpointer=AsyncLongthreadSaver(store)).ainvoke({"messages": given}, on("t"))
    found = await graph.compile(checkpointer=AsyncLongthreadSaver(store)).aget_state(on("t"))
    assert [each.content for each in found.values["messages"]] == ["]}", "\ud800 {", "answer 2"]


async def test_what_an_analysts_thread_keeps_is_told(open_analyst: OpenAnalyst) -> None:
    analyst = await open_analyst([COUNT, finish("3")])
    handle = await analyst.ask("How many?", source="demo", user_id=analyst.settings.user)
    await handle.wait()
    thread = handle.thread_id
    async with analyst.store.writing() as tx:
        [*_, last] = [step for step in await runs.steps_from(tx, thread, 0) if step.prompt]
        assert await tx.run(Sql("UPDATE prompts SET body = :v"), v=b"x\x9c" + BAD) > 0
        with pytest.raises(StoreDamaged, match=f"prompt {last.prompt} of thread {thread} cannot be read"):
            await Prompt.load_stored(tx, last)


async def test_a_digest_is_told(store: Driver) -> None:
    await fill(store, "t")
    async with store.writing() as tx:
        await summaries.save(tx, "t", summaries.ThreadSummary("told", 2, "hash", 1, 2, None, {}, ()))
        await tx.run(Sql("UPDATE conversation_summaries SET digest = '{'"))
        with pytest.raises(StoreDamaged, match="the summary up to entry 2 of thread t cannot be read"):
            await summaries.find_thread(tx, "t")


async def test_what_another_snapshot_has_is_no_damage_in_this_one(store: Driver) -> None:
    await fill(store, "t")
    saver = AsyncLongthreadSaver(store)
    async with store.reading() as before:
        early = await checkpoints.lock(before, "t", user_id="default")
        async with store.writing() as tx:
            await tx.run(Sql("DELETE FROM entries WHERE thread_id = 't' AND seq < 4"))
            await tx.run("move_first_seq", thread_id="t", first_seq=4)
        async with store.reading() as tx:
            late = await checkpoints.lock(tx, "t", user_id="default")
            row = await checkpoints.find(tx, "t", "", None)
            assert early is not None and late is not None and row is not None
            memory = saver._cache.of_locked(late)
            reader = CheckpointReader(tx, "t", memory, saver.serde, late.first_seq, remembers=True)
            saver._cache.of_locked(early)  # somebody who began before
            found = await reader.read(row, [])
    assert found.checkpoint["channel_values"]["messages"][0].text == "answer 3"


TIPS = {
    "the tip is gone": "DELETE FROM entries WHERE thread_id = 't' AND seq = 6",
    "the tip is another": "UPDATE threads SET tip = tip + 4096 WHERE id = 't'",
    "what is before the window is gone": "DELETE FROM entries WHERE thread_id = 't' AND seq = 4",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("statement", TIPS.values(), ids=TIPS)
async def test_an_entry_that_is_gone_stops_pruning_for_no_other(store: Driver, statement: str) -> None:
    await fill(store, "s", "t", "u")
    async with store.writing() as tx:
        assert await tx.run(Sql(statement)) == 1
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    retention = Retention(RetentionPolicy(entries_before=later, window=2), Unneeded(), lambda owner: True)
    for apply in (False, True):
        found = await prune(store, retention, lambda done, total, what: None, apply=apply)
        assert found.damaged.keys() == {"t"}
        assert re.match(r"entry \d+ of thread t cannot be read: it is gone", found.damaged["t"])
        assert (found.touched, found.rows["entries"]) == (2, 8)
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="default")


class Unneeded(CheckpointKeeper):
    """Checkpoints that need no entry."""

    async def first_entry(self, tx: Transaction, thread_id: str, staying: Mapping[str, Staying]) -> int | None:
        return None


async def test_what_a_checkpoint_says_of_itself_is_an_object(store: Driver) -> None:
    await fill(store, "t")
    for text in ("[1]", "[]", "x", "", "8x", "null"):
        async with spoiled(store, "checkpoints", "UPDATE checkpoints SET metadata = :v WHERE 1 = 1", v=text):
            with pytest.raises(StoreDamaged, match=f"the metadata of {CHECKPOINT}"):
                await state(store, "t")
    assert (await state(store, "t")).metadata["step"] > 0
