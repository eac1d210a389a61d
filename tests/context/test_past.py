"""A call goes on from the call before, in whichever process that was made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from tests.analysts import OpenAnalyst
from tests.script import COUNT, call, finish

from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.run import Step
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import calls_of, difference, look, sent
from longthread.runs.views import Prompt
from longthread.runs.worker import may_be_alive
from longthread.store import log, recall_index, runs
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

NOTES: Any = {"facts": "There is a table.", "recalled": "The budget is 7."}
WIDE = call("run_sql", sql="SELECT id, name || ' of the shop' AS who FROM customers")


def dumped(messages: Sequence[BaseMessage]) -> list[str]:
    return [json.dumps(m.model_dump(), ensure_ascii=False, sort_keys=True, default=str) for m in messages]


async def model_steps(analyst: Analyst, thread_id: str) -> list[Step]:
    async with analyst.store.reading() as tx:
        return [step for step in await runs.steps_from(tx, thread_id, 0) if step.kind == "model"]


async def test_two_processes_take_turns_on_one_prompt(open_analyst: OpenAnalyst, shop: str) -> None:
    replies: list[Any] = [step for n in range(12) for step in (WIDE, COUNT, finish(f"3, for the {n}th time " * 8))]
    model = ScriptedChatModel(replies)
    analysts = [await open_analyst(model, memory_context_window=8750) for _ in range(2)]
    thread_id = None
    for n in range(12):
        handle = await analysts[n % 2].ask(
            f"How many, {n}? " * 5, source=shop, thread_id=thread_id, protocol="native", user_id="default"
        )
        thread_id = handle.thread_id
        assert (await handle.wait()).type == "finished"
    prompts = [dumped(made.messages)[1:] for made in model.calls]
    grown = [later[: len(before)] == before for before, later in pairwise(prompts)]
    assert 0 < grown.count(False) < len(grown) / 4
    async with analysts[0].store.reading() as tx:
        calls = await calls_of(tx, str(thread_id))
        assert len(calls) == len(prompts)
        looks = [await look(tx, calls, number) for number in range(1, len(calls) + 1)]
    assert [seen.why_planned == "" for seen in looks[1:]] == grown
    anew = [seen for seen in looks[1:] if seen.why_planned]
    assert {seen.why_planned for seen in anew} == {"the high-water mark was reached"}
    planned = next(seen for seen in anew if {entry.tier for entry in seen.entries} >= {2, 3})
    changes = difference(planned, looks[planned.number - 2])
    assert changes.left or changes.changed
    assert all(seen.tokens <= seen.step.usage["budget"] for seen in looks)


async def test_reported_usage_shrinks_the_budget_here_and_in_the_next_process(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    def counted(messages: list[BaseMessage]) -> AIMessage:
        # As a tokenizer would that takes far more tokens than we think.
        usage: Any = {"input_tokens": 1_900, "output_tokens": 1, "total_tokens": 1_901}
        return AIMessage("Three.", usage_metadata=usage)

    first, second = [await open_analyst(ScriptedChatModel(counted), memory_context_window=20_000) for _ in range(2)]
    handle = await first.ask("How many?", source=shop, user_id=first.settings.user)
    await handle.wait()
    for analyst in (first, second):
        await (
            await analyst.ask("Again?", thread_id=handle.thread_id, source=shop, user_id=analyst.settings.user)
        ).wait()
    before, here, there = [step.usage for step in await model_steps(first, handle.thread_id)]
    assert before["estimated_tokens"] < 1_900 == before["input_tokens"]
    assert here["budget"] < before["budget"] * before["estimated_tokens"] / 1_900 * 1.05
    assert there["budget"] <= here["budget"] * 1.05


def test_a_prompt_keeps_what_stood_around_its_messages() -> None:
    plain, full = Prompt("Answer.", (), "native"), Prompt("Answer.", (), "native", "Before: sales.", NOTES)
    again = Prompt.load(full.parts.values())
    assert (again.summary, again.notes, again.id) == ("Before: sales.", NOTES, full.id)
    assert Prompt.load(plain.parts.values()) == plain
    # What they have alike is stored once, and who names the one with digests names it.
    assert [*full.parts] == [plain.id, full.id]
    assert plain.id in full.id


def test_a_prompt_that_was_stored_as_one_value_is_still_read() -> None:
    body = b'{"system":"Answer.","tools":[],"spoken":"native","summary":"Before: sales.","memories":["m"]}'
    assert Prompt.load([body]) == Prompt("Answer.", (), "native", "Before: sales.", memories=("m",))


async def test_a_prompt_that_went_with_the_runs_that_named_it_is_stored_again(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    analyst = await open_analyst(ScriptedChatModel([finish("3"), '{"answer": "3"}', finish("3")]))
    thread_id = None
    for protocol in ("native", "json", "native"):
        handle = await analyst.ask(
            "How many?", source=shop, thread_id=thread_id, protocol=protocol, user_id=analyst.settings.user
        )
        thread_id = handle.thread_id
        await handle.wait()
        retention = Retention(RetentionPolicy(runs_before=log.now()), CheckpointKeeper(), may_be_alive)
        await prune(analyst.store, retention, lambda done, total, thread: None, apply=True)
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, str(thread_id))
        seen = await look(tx, calls, len(calls))
    assert seen.tokens
    async with analyst.store.reading() as tx:
        assert (await sent(tx, calls[-1])).tools


async def test_calls_that_saw_what_retention_has_deleted_since_are_told_without_it(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    analyst = await open_analyst(ScriptedChatModel([COUNT, finish("3")] * 8), memory_max_messages_per_thread=12)
    thread_id = None
    for n in range(8):
        handle = await analyst.ask(f"How many, {n}?", source=shop, thread_id=thread_id, user_id=analyst.settings.user)
        thread_id = handle.thread_id
        await handle.wait()
        await analyst.pruner.settle()  # where the window moves does not depend on the machine
    retention = Retention(RetentionPolicy(entries_before=log.now(), window=14), CheckpointKeeper(), may_be_alive)
    await prune(analyst.store, retention, lambda done, total, thread: None, apply=True)
    async with analyst.store.reading() as tx:
        first, _ = await recall_index.first_seq(tx, str(thread_id))
        calls = await calls_of(tx, str(thread_id))
        looks = [await look(tx, calls, number) for number in range(1, len(calls) + 1)]
    assert len(looks) == 8 < first
    for seen in looks:
        messages = [entry for entry in seen.entries if entry.how == "whole"]
        assert [entry.why == "pruned" for entry in messages] == [entry.seq < first for entry in messages]
        assert messages[-1].seq >= first
        assert [entry.seq for entry in messages] == list(range(messages[0].seq, messages[-1].seq + 1))
    assert looks[0].entries[1].why == "pruned"
    assert [seen.why_planned for seen in looks[1:4]] == [""] * 3
    assert difference(looks[1], looks[0]).entered == [18, 19]
