"""The hot window: a turn reads and writes the same however long its thread is, and its state holds no more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from tests.langgraph.counting import Counting
from tests.script import COUNT, call, finish

from longthread.context.window import WindowMessage
from longthread.context.window_cache import WindowCache
from longthread.memory.pruner import Pruner
from longthread.memory.recall import Recaller
from longthread.memory.user_memories import Memories
from longthread.messages.langchain import all_to_langchain
from longthread.messages.message import Message
from longthread.model.entry import Draft, ToolCall
from longthread.model.ids import new_id
from longthread.model.thread import Thread
from longthread.runs import events
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store import log, runs
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

TWO = [COUNT, call("run_sql", sql="SELECT COUNT(*) FROM orders")]
NEEDS = 50
"""Rows that a turn may read beside its window: the thread, the run, its steps, checkpoints and events."""


def reply(messages: list[BaseMessage]) -> Any:
    """Two calls at once, then the answer, every time."""
    return finish("3 and 3.") if messages[-1].type == "tool" else TWO


def one(messages: list[BaseMessage]) -> Any:
    """One call, then the answer: nothing depends on which of two is faster."""
    return finish("3.") if messages[-1].type == "tool" else COUNT


def turn(number: int) -> list[Draft]:
    """The entries of a turn."""
    made = ToolCall(new_id(), "run_sql", {"sql": "SELECT 1"})
    result = json.dumps({"ok": True, "data": {"query": f"q{number}", "sql": "SELECT 1", "rows": [[1]] * 200}})
    return [
        Draft(new_id(), "user", f"Question {number}?", metadata={"kind": "question"}),
        Draft(new_id(), "assistant", "", tool_calls=(made,)),
        Draft(new_id(), "tool", result, tool_call_id=made.id),
        Draft(new_id(), "assistant", "1", metadata={"kind": "answer"}),
    ]


async def seeded(store: Driver, thread_id: str, turns: int) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="default")
        drafts = [draft for number in range(turns) for draft in turn(number)]
        await log.append(tx, thread_id, drafts, tip=0, size=0)


def analyst_on(store: Driver, folder: Path, model: ScriptedChatModel | None = None, **settings: Any) -> Analyst:
    loaded = Settings.load(env_file=None, data_dir=folder, model="test:scripted", **settings)
    return Analyst(store, loaded, models=lambda name, _: model or ScriptedChatModel(reply))


async def ask(analyst: Analyst, thread_id: str, shop: str) -> None:
    assert (
        await (await analyst.ask("How many?", thread_id=thread_id, source=shop, user_id=analyst.settings.user)).wait()
    ).type == "finished"


@pytest.fixture
def turns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is indexed and pruned behind a turn is not part of it, and all text is stored with its step."""
    monkeypatch.setattr(events, "TICK_SECONDS", 3600.0)
    monkeypatch.setattr(Recaller, "keep_up", lambda self, scope: None)
    monkeypatch.setattr(Memories, "keep_up", lambda self, user_id: None)
    monkeypatch.setattr(Pruner, "keep_up", lambda self, scope, **given: None)


@pytest.mark.usefixtures("turns_alone")
async def test_a_turn_asks_the_same_of_the_store_however_long_the_thread_is(
    store: Driver, tmp_path: Path, shop: str
) -> None:
    counting = Counting(store)
    asked = {}
    for turns in (10, 200):
        thread_id = f"turns-{turns}"
        await seeded(store, thread_id, turns)
        analyst = analyst_on(counting, tmp_path, ScriptedChatModel(one), memory_max_messages_per_thread=24)
        await ask(analyst, thread_id, shop)  # there were no facts, and the window was not in memory
        for when in ("warm", "warmer"):
            counting.reset()
            await ask(analyst, thread_id, shop)
            asked[turns, when] = (dict(counting.statements), dict(counting.rows), counting.writes)
        counting.reset()
        cold = analyst_on(counting, tmp_path, ScriptedChatModel(one), memory_max_messages_per_thread=24)
        await ask(cold, thread_id, shop)
        asked[turns, "cold"] = (dict(counting.statements), dict(counting.rows), counting.writes)
        assert sum(counting.rows.values()) <= 24 + NEEDS
        assert counting.rows["select_entries_down"] <= 24
    for when in ("warm", "warmer", "cold"):
        assert asked[10, when] == asked[200, when]
    assert asked[10, "warm"][1].get("select_entries_down", 0) == 0, "the window is in memory"


@pytest.mark.usefixtures("turns_alone")
async def test_the_first_turn_on_a_seeded_thread_reads_no_more_than_its_facts_need(
    store: Driver, tmp_path: Path, shop: str
) -> None:
    await seeded(store, "t", 300)
    counting = Counting(store)
    await ask(analyst_on(counting, tmp_path, memory_max_messages_per_thread=24), "t", shop)
    assert counting.rows["select_entries_down"] <= 24, "the questions before were about no source: nothing counts"
    # Kept facts that are older than the window are gone on from.
    async with store.writing() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
        [added] = await log.append(
            tx, "t", [Draft("more", "user", "?", metadata={"kind": "question"})], tip=thread.tip, size=thread.tip
        )
        saved = await runs.saved_fold(tx, "t")
        assert saved is not None
        await log.append(tx, "t", [d for n in range(300) for d in turn(n)], tip=added.seq, size=added.seq)
        await runs.save_fold(tx, "t", added.seq + 1100, {**saved[1], "queries": 77})
    counting.reset()
    model = ScriptedChatModel([COUNT, finish("3 [q78]")])
    await ask(analyst_on(counting, tmp_path, model, memory_max_messages_per_thread=24), "t", shop)
    assert "q300" in model.calls[-1].messages[-1].text, "labels go on from the last one in the log"
    assert counting.rows["select_entries_down"] <= 24 + 500


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [1, 6, 9, 30])
async def test_a_run_never_holds_more_than_the_window_and_whole_units(
    store: Driver, tmp_path: Path, shop: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[list[Message]] = []
    keep = WindowCache.keep

    def seen(self: WindowCache, thread: Thread, spots: Sequence[WindowMessage], *rest: Any) -> None:
        held.append([spot.message for spot in spots])
        keep(self, thread, spots, *rest)

    monkeypatch.setattr(WindowCache, "keep", seen)
    await seeded(store, "t", 100)
    model = ScriptedChatModel(reply)
    analyst = analyst_on(store, tmp_path, model, memory_max_messages_per_thread=limit)
    for _ in range(3):
        await ask(analyst, "t", shop)
        # It has some more until it is pruned, behind a turn; the question and four messages follow.
        assert 5 <= len(held[-1]) <= limit + min(20, limit // 2) + 5
        assert_whole(all_to_langchain(held[-1]))
    assert len(held) == 3
    for made in model.calls:
        assert_whole(made.messages[1:])
    async with store.reading() as tx:
        assert (await log.position(tx, "t"))[0] == 400 + 3 * 5, "the log holds all"


def assert_whole(messages: Sequence[BaseMessage]) -> None:
    assert isinstance(messages[0], HumanMessage)
    calls = [made["id"] for message in messages if isinstance(message, AIMessage) for made in message.tool_calls]
    assert calls == [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]


async def test_a_window_in_memory_follows_what_others_write(store: Driver, tmp_path: Path, shop: str) -> None:
    model = ScriptedChatModel(reply)
    mine, other = analyst_on(store, tmp_path, model), analyst_on(store, tmp_path)
    await ask(mine, "t", shop) if await created(store, "t") else None
    await ask(other, "t", shop)
    await ask(mine, "t", shop)
    assert len(model.calls[-1].messages) == 1 + 2 * 5 + 4
    async with store.writing() as tx:  # back to the first answer: the second one is on another branch now
        await log.set_tip(tx, "t", 5)
    await ask(mine, "t", shop)
    assert len(model.calls[-1].messages) == 1 + 1 * 5 + 4
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="default")
    await created(store, "t")
    await ask(mine, "t", shop)
    assert len(model.calls[-1].messages) == 1 + 4, "the new thread of the same id has nothing of the old one's"


async def test_a_thread_that_was_made_again_is_not_taken_for_the_old_one(
    store: Driver, tmp_path: Path, shop: str
) -> None:
    model = ScriptedChatModel(one)
    analyst = analyst_on(store, tmp_path, model)
    await created(store, "t")
    await ask(analyst, "t", shop)
    async with store.writing() as tx:
        before = await log.find_thread(tx, "t", user_id="default")
        await log.delete_thread(tx, "t", user_id="default")
        # As an import does: the same id, and the same age.
        at = before.created_at.isoformat(timespec="microseconds")
        await tx.run("insert_thread", id="t", user_id="default", title=None, source=shop, now=at)
        drafts = [Draft(f"n{n}", "user" if n % 2 == 0 else "assistant", f"imported {n}") for n in range(6)]
        await log.append(tx, "t", drafts, tip=0, size=0)
    await ask(analyst, "t", shop)
    shown = [message.text for message in model.calls[-2].messages[1:]]
    assert shown == [*(f"imported {n}" for n in range(6)), "How many?"]


async def test_open_calls_of_a_thread_without_runs_are_closed(store: Driver, tmp_path: Path, shop: str) -> None:
    await seeded(store, "t", 1)
    async with store.writing() as tx:
        await log.set_tip(tx, "t", 2)  # the call, without its result
    model = ScriptedChatModel(one)
    await ask(analyst_on(store, tmp_path, model), "t", shop)
    assert_whole(model.calls[0].messages[1:])


async def created(store: Driver, thread_id: str) -> bool:
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="default")
    return True
