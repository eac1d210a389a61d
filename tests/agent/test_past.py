"""A call goes on from the call before, in whichever process that was made."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from tests.agent.conftest import OpenAnalyst
from tests.agent.script import COUNT, call, finish

from longthread.agent.analyst import Analyst
from longthread.agent.looking import calls_of, difference, look
from longthread.agent.views import Prompt
from longthread.model.run import Step
from longthread.store import runs
from longthread.testing import ScriptedChatModel

WIDE = call("run_sql", sql="SELECT id, name || ' of the shop' AS who FROM customers")


def dumped(messages: Sequence[BaseMessage]) -> list[str]:
    return [json.dumps(m.model_dump(), ensure_ascii=False, sort_keys=True, default=str) for m in messages]


async def model_steps(analyst: Analyst, thread_id: str) -> list[Step]:
    async with analyst.store.reading() as tx:
        return [step for step in await runs.steps_from(tx, thread_id, 0) if step.kind == "model"]


async def test_two_processes_take_turns_on_one_prompt(open_analyst: OpenAnalyst, shop: str) -> None:
    replies: list[Any] = [step for n in range(12) for step in (WIDE, COUNT, finish(f"3, for the {n}th time " * 8))]
    model = ScriptedChatModel(replies)
    analysts = [await open_analyst(model, memory_context_window=7800) for _ in range(2)]
    thread_id = None
    for n in range(12):
        handle = await analysts[n % 2].ask(f"How many, {n}? " * 5, source=shop, thread_id=thread_id, protocol="native")
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
        usage: Any = {"input_tokens": 2_000, "output_tokens": 1, "total_tokens": 2_001}
        return AIMessage("3", usage_metadata=usage)

    first, second = [await open_analyst(ScriptedChatModel(counted), memory_context_window=20_000) for _ in range(2)]
    handle = await first.ask("How many?", source=shop)
    await handle.wait()
    for analyst in (first, second):
        await (await analyst.ask("Again?", thread_id=handle.thread_id, source=shop)).wait()
    before, here, there = [step.usage for step in await model_steps(first, handle.thread_id)]
    assert before["estimated_tokens"] < 2_000 == before["input_tokens"]
    assert here["budget"] < before["budget"] * before["estimated_tokens"] / 2_000 * 1.05
    assert there["budget"] <= here["budget"] * 1.05


def test_a_prompt_keeps_what_stood_around_its_messages() -> None:
    plain, full = Prompt("Answer.", (), "native"), Prompt("Answer.", (), "native", "Before: sales.", "The budget is 7.")
    assert plain.id != full.id
    again = Prompt.load(zlib.compress(full._body))
    assert (again.summary, again.recalled, again.id) == ("Before: sales.", "The budget is 7.", full.id)
    assert "summary" not in json.loads(plain._body)
