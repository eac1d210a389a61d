"""What an analyst makes of the mark: its window, its views, its state, and that a turn stays as cheap as it is."""

from __future__ import annotations

import asyncio
import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from tests.analysts import OpenAnalyst
from tests.context.test_window_cache import analyst_on, ask, seeded, turns_alone
from tests.langgraph.counting import Counting
from tests.script import COUNT, call, finish
from tests.store.conftest import Plain, plain

from longthread.llm.models import ModelSummarizer, summarizer_of
from longthread.memory.pruner import Pruner
from longthread.memory.summary.digest import tokens_of
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.model.entry import Draft
from longthread.model.run import segments_of
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import calls_of, look
from longthread.store import endpoints, log, runs, summaries
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

__all__ = ["plain", "turns_alone"]

SUMMARY = "[Conversation Summary]"


def one(messages: list[BaseMessage]) -> Any:
    """One call, then the answer; or a summary, or topics, when these are asked for."""
    asked = messages[0].text
    if "memory of a long conversation" in asked or asked.startswith("Shorten"):
        return AIMessage("They count customers.")
    if "index of a long conversation" in asked:
        return AIMessage('["customers", "price checks"]')
    return finish("3.") if messages[-1].type == "tool" else COUNT


async def turn(analyst: Analyst, shop: str, question: str = "How many?") -> None:
    handle = await analyst.ask(question, thread_id="t", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    # Its end is told before what follows is under way.
    await asyncio.gather(*(each for each in asyncio.all_tasks() if each.get_name().startswith("run ")))
    await analyst.recaller.settle()
    await analyst.pruner.settle()


def views(model: ScriptedChatModel) -> list[list[BaseMessage]]:
    """What the analyst's model calls saw, without the prompt."""
    return [made.messages[1:] for made in model.calls if made.messages[0].text.startswith("You are Longthread's")]


async def test_the_window_begins_behind_the_mark_and_the_view_with_the_summary(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedChatModel(one)
    analyst = await open_analyst(model, memory_max_messages_per_thread=40)
    for n in range(12):
        await turn(analyst, shop, f"How many customers in year {1900 + n}?")
    kept = (await analyst.threads.state("t", user_id=analyst.settings.user))["compressed_summary"]
    assert kept.startswith("Asked before")
    last = views(model)[-1]
    assert last[0].text.startswith(f"{SUMMARY}\nAsked before")
    assert "[Recallable Topics]:" in last[0].text
    assert last[1].text == "How many customers in year 1906?"
    assert "in year 1905?" in last[0].text
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, "t")
        seen = (await look(tx, calls, len(calls))).entries
        mark = await summaries.find(tx, "t")
    first = seen[0]
    assert (first.tier, first.how, first.text) == (1, "summary", last[0].text)
    assert mark is not None
    assert (first.first, first.seq, first.count) == (1, mark.last_seq, mark.message_count)
    assert [each.seq for each in seen[1:]] == list(range(mark.last_seq + 1, seen[-1].seq + 1))
    # Another process finds the same.
    other = ScriptedChatModel(one)
    await turn(await open_analyst(other, memory_max_messages_per_thread=40), shop, "And in 1950?")
    assert views(other)[0][: len(last)] == last


async def test_a_look_at_a_call_tells_what_was_behind_its_window(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pruner, "keep_up", lambda *_, **__: None)  # as when a process ends before each pass
    analyst = await open_analyst(ScriptedChatModel(one), memory_max_messages_per_thread=20)
    for n in range(8):
        await turn(analyst, shop, f"How many customers in year {1900 + n}?")
    async with analyst.store.writing() as tx:
        apart = await log.add(tx, "t", [Draft("aside", "user", "Another branch.")], parent=4)
    await turn(analyst, shop, "And in 1950?")
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, "t")
        seen = (await look(tx, calls, len(calls))).entries
        whole = (await look(tx, calls, 1)).entries
    behind, begin = next((each, after) for each, after in pairwise(seen) if each.why == "window")
    assert (behind.how, behind.why, behind.tier, behind.tokens) == ("left out", "window", None, 0)
    assert (behind.first, behind.seq) == (1, begin.seq - 1)
    assert behind.count == behind.seq - (apart[0].seq < behind.seq)
    assert [each.why for each in whole] == [None]


async def test_a_model_writes_the_summary_and_names_the_topics(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel(one)
    settings = {"memory_max_messages_per_thread": 40, "memory_enable_summary": True}
    analyst = await open_analyst(model, **settings)
    for _ in range(12):
        await turn(analyst, shop)
    assert views(model)[-1][0].text == (
        f"{SUMMARY}\nThey count customers.\n\n[Recallable Topics]: customers, price checks\n"
        "Use the recall_memory tool to retrieve details about any topic above."
    )
    state = await analyst.threads.state("t", user_id=analyst.settings.user)
    assert state["compressed_summary"] == "They count customers."
    assert state["compressed_message_count"] == 12
    assert state["compressed_config_hash"] == PruningPolicy.of(analyst.settings).summary.hash


async def test_settings_are_honoured(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst(
        [],
        memory_max_messages_per_thread=50,
        memory_summary_threshold=7,
        memory_max_summary_tokens=120,
        memory_enable_summary=False,
    )
    policy = analyst.pruner.policy
    assert (policy.max_messages, policy.threshold, policy.summary.max_tokens) == (50, 7, 120)
    assert policy.summary.enabled is False


async def test_the_summary_keeps_to_its_tokens(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst(
        ScriptedChatModel(one), memory_max_messages_per_thread=40, memory_max_summary_tokens=150
    )
    for n in range(14):
        await turn(analyst, shop, f"How many customers of the {n}th kind, of whom the budget is {n}000 euros?")
    assert (
        75 < tokens_of((await analyst.threads.state("t", user_id=analyst.settings.user))["compressed_summary"]) <= 150
    )


async def test_older_messages_have_at_most_the_documented_characters(open_analyst: OpenAnalyst, shop: str) -> None:
    many = call("run_sql", sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n LIMIT 50) SELECT i FROM n")
    model = ScriptedChatModel([step for n in range(12) for step in (many, finish(f"answer {n} " * 10))])
    analyst = await open_analyst(model, message_compress_max_length=900, memory_full_recent_count=4)
    for _ in range(12):
        await turn(analyst, shop)
    for seen in views(model):
        assert sum(len(message.text) for message in seen[:-7]) <= 900
    assert any(len(seen) > 12 for seen in views(model))


async def test_each_view_shows_an_entry_or_says_that_a_summary_tells_of_it(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedChatModel(lambda messages: finish("so it is " * 40))
    analyst = await open_analyst(model, memory_context_window=5_660, memory_enable_summary=False)
    for n in range(20):
        await turn(analyst, shop, f"Why {n}? The budget is {n}000 euros. " + "because " * 20)
    async with analyst.store.reading() as tx:
        manifests = [segments_of(step.manifest) for step in await calls_of(tx, "t")]
    told = [each for each in manifests if any(segment.why == "digest" for segment in each)]
    assert told, "some view had no room for all"
    for manifest in manifests:
        spoken = [each for each in manifest if each.how != "left out" or each.why == "digest"]
        seqs = {seq for each in spoken for seq in range(each.first, each.last + 1)}
        assert seqs - {0} == set(range(1, max(each.last for each in manifest) + 1))


async def test_what_views_have_no_room_for_goes_and_what_they_show_stays(open_analyst: OpenAnalyst, shop: str) -> None:
    def reply(messages: list[BaseMessage]) -> Any:
        return finish("so it is " * 40)

    model = ScriptedChatModel(reply)
    analyst = await open_analyst(model, memory_context_window=5_660, memory_summary_threshold=6)
    grown = 0
    marks = {0}
    for n in range(30):
        async with analyst.store.reading() as tx:
            before = await summaries.find(tx, "t")
        await turn(analyst, shop, f"Why {n}? " + "because " * 20)
        marks.add(before.last_seq if before else 0)
        seen = views(model)
        if len(seen) > 1 and seen[-1][: len(seen[-2])] == seen[-2]:
            grown += 1
    assert len(marks) > 2, "the mark has moved, though there are fewer messages than the window holds"
    planned = 30 - grown
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, "t")
        why = [(await look(tx, calls, n)).why_planned for n in range(2, 31)]
    assert planned - 1 == sum(map(bool, why))
    assert {reason for reason in why if reason} == {"the high-water mark was reached"}
    assert any(segment.how == "summary" for step in calls for segment in segments_of(step.manifest))


@pytest.mark.usefixtures("turns_alone")
async def test_a_turn_with_a_mark_reads_one_row_more_and_no_older_messages(
    store: Driver, tmp_path: Path, shop: str
) -> None:
    asked = {}
    counting = Counting(store)
    for turns in (20, 200):
        thread_id = f"turns-{turns}"
        await seeded(store, thread_id, turns)
        await prune_thread(store, thread_id, PruningPolicy(max_messages=40))
        analyst = analyst_on(counting, tmp_path, ScriptedChatModel(one), memory_max_messages_per_thread=40)
        await ask(analyst, thread_id, shop)
        for when in ("warm", "cold"):
            if when == "cold":
                analyst = analyst_on(counting, tmp_path, ScriptedChatModel(one), memory_max_messages_per_thread=40)
            counting.reset()
            await ask(analyst, thread_id, shop)
            asked[turns, when] = (dict(counting.statements), dict(counting.rows), counting.writes)
            assert counting.rows["select_summary"] == 1
            assert counting.statements["select_entries_apart_between"] == 0
    assert asked[20, "warm"] == asked[200, "warm"]
    assert asked[20, "cold"] == asked[200, "cold"]
    assert asked[20, "warm"][1].get("select_entries_down", 0) == 0, "the window is in memory"


async def test_back_before_the_mark_the_window_is_what_it_was(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel(one)
    analyst = await open_analyst(model, memory_max_messages_per_thread=40)
    for n in range(12):
        await turn(analyst, shop, f"How many in {1900 + n}?")
    async with analyst.store.writing() as tx:
        await log.set_tip(tx, "t", 8)
    await turn(analyst, shop, "Anew?")
    seen = views(model)[-2]
    assert [message.text for message in seen if message.type == "human"] == [
        "How many in 1900?",
        "How many in 1901?",
        "Anew?",
    ]
    assert (await analyst.threads.state("t", user_id=analyst.settings.user))["compressed_summary"] is None
    # To the mark's own entry: all that there is stands in the summary.
    async with analyst.store.writing() as tx:
        await log.set_tip(tx, "t", 48)
    await turn(analyst, shop, "Back?")
    async with analyst.store.writing() as tx:
        kept = await summaries.find(tx, "t")
        assert kept is not None
        await log.set_tip(tx, "t", kept.last_seq)
    await turn(analyst, shop, "And here?")
    assert [message.text for message in views(model)[-2]][1:] == ["And here?"]
    assert views(model)[-2][0].text.startswith(SUMMARY)


async def test_a_run_that_is_taken_over_has_the_summary_too(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    analyst = await open_analyst(ScriptedChatModel(one), memory_max_messages_per_thread=40)
    for _ in range(12):
        await turn(analyst, shop)
    model = ScriptedChatModel(one)
    other = await open_analyst(model, memory_max_messages_per_thread=40)
    handle = await analyst.ask("Stopped?", thread_id="t", source=shop, user_id=analyst.settings.user)
    await analyst.runs.stop("t", user_id=analyst.settings.user) if handle.thread_id in analyst.runs._running else None
    async with store.writing() as tx:  # as if the process had died
        run = await runs.last_run(tx, "t")
        assert run is not None
        await tx.fetch("take_lease", thread_id="t", id=run.id, owner="gone")
    assert (await (await other.runs.resume("t", user_id=other.settings.user)).wait()).type == "finished"
    assert views(model)[0][0].text.startswith(SUMMARY)


async def test_the_state_is_what_the_database_says(open_analyst: OpenAnalyst, shop: str, plain: Plain) -> None:
    analyst = await open_analyst(ScriptedChatModel(one), memory_max_messages_per_thread=40)
    for _ in range(12):
        await turn(analyst, shop)
    [[told]] = plain("SELECT CAST(state_data AS TEXT) FROM conversations")
    state = await analyst.threads.state("t", user_id=analyst.settings.user)
    assert state["compressed_message_count"] == 12
    assert json.loads(told) == json.loads(json.dumps(state))


async def test_closing_cancels_a_pass_and_the_next_process_makes_it(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.memory.background.CLOSE_SECONDS", 0.05)
    await seeded(store, "t", 11)
    asked = asyncio.Event()

    class Slow(ModelSummarizer):
        async def write(self, instructions: str, text: str) -> str:
            asked.set()
            await asyncio.Event().wait()
            return "never"

    monkeypatch.setattr("longthread.runs.services.runs.summarizer_of", lambda name, model, _: Slow(name, model))
    settings = {"memory_max_messages_per_thread": 40, "memory_enable_summary": True}
    analyst = await open_analyst(ScriptedChatModel(one), **settings)
    assert (
        await (await analyst.ask("How many?", thread_id="t", source=shop, user_id=analyst.settings.user)).wait()
    ).type == "finished"
    await asked.wait()
    await analyst.close()
    async with store.reading() as tx:
        digest = await summaries.find(tx, "t")
    assert digest is not None
    assert (digest.model, digest.unwritten) == (None, True), "the digest is there at once"
    monkeypatch.undo()
    other = await open_analyst(ScriptedChatModel(one), **settings)
    await turn(other, shop)
    async with store.reading() as tx:
        kept = await summaries.find(tx, "t")
    assert kept is not None
    assert (kept.summary, kept.unwritten) == ("They count customers.", False)
    assert (await other.threads.state("t", user_id=other.settings.user))["compressed_message_count"] > 10


async def test_a_pass_that_fails_is_told_and_no_turn_fails(
    open_analyst: OpenAnalyst,
    store: Driver,
    shop: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(*args: Any, **given: Any) -> None:
        raise OSError("no such luck")

    monkeypatch.setattr("longthread.memory.pruner.prune_thread", failing)
    await seeded(store, "t", 11)
    analyst = await open_analyst(ScriptedChatModel(one), memory_max_messages_per_thread=40)
    with caplog.at_level(logging.WARNING):
        await turn(analyst, shop)
    assert "Thread t could not be pruned: no such luck" in caplog.text


def test_the_demo_model_writes_no_summaries() -> None:
    assert summarizer_of("demo", ScriptedChatModel([]), "auto") is None
    found = summarizer_of("test:scripted", ScriptedChatModel([]), "auto")
    assert found is not None
    assert (found.name, found.topics_only) == ("test:scripted", False)


def test_a_small_model_that_speaks_sql_names_topics_alone() -> None:
    found = summarizer_of("test:scripted", ScriptedChatModel([]), "sql")
    assert found is not None and found.topics_only


async def test_a_run_whose_protocol_is_left_to_us_has_the_one_that_a_probe_found(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    analyst = await open_analyst(ScriptedChatModel(one))
    handle = await analyst.ask("How many?", thread_id="t", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    run = handle.run
    models = await analyst.runs.models_of(run.model, user_id=analyst.settings.user)
    first = await analyst.runs.summarizer("t")
    assert first is not None and not first.topics_only
    async with store.writing() as tx:
        await endpoints.save_protocol(tx, models.model.name, models.model.address, "sql")
    analyst = await open_analyst(ScriptedChatModel(one))
    later = await analyst.runs.summarizer("t")
    assert later is not None and later.topics_only


async def test_facts_are_found_behind_an_empty_window(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    model = ScriptedChatModel([call("list_tables"), finish("two"), COUNT, finish("3 [q1]")])
    analyst = await open_analyst(model)
    await turn(analyst, shop)
    async with store.writing() as tx:
        tip, _ = await log.position(tx, "t")
        await summaries.save(tx, "t", summaries.ThreadSummary("Tables.", tip, PruningPolicy().summary.hash, 1, tip))
    await turn(analyst, shop)
    # What is known of the source is still known; it stands behind the messages.
    assert '"customers"' in model.calls[-1].messages[-1].text
    assert [message.type for message in model.calls[-2].messages] == ["system", "human", "human", "human"]


async def test_an_entry_of_somebody_elses_program_does_not_break_a_pass(store: Driver) -> None:
    odd = json.dumps({"ok": True, "data": {"tables": 3, "table_name": ["x"], "columns": 7, "rows": 1, "sql": None}})
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="default")
        drafts = [
            Draft("q", "user", "?", metadata={"source": {"a": 1}}),
            *(Draft(f"r{n}", "tool", odd, tool_call_id="none") for n in range(60)),
        ]
        await log.extend(tx, "t", drafts)
    kept = await prune_thread(store, "t", PruningPolicy(max_messages=40))
    assert kept is not None
