"""A tool that a request offered stays in those that go on from it, also where another process goes on."""

from __future__ import annotations

import pytest
from tests.analysts import OpenAnalyst
from tests.script import events_of, finish

from longthread.runs.analyst import Analyst
from longthread.testing import ScriptedModel

DATA = ["sample_rows", "run_sql"]
ALL = [*DATA, "chart", "remember", "forget"]


async def ask(analyst: Analyst, question: str, source: str) -> None:
    handle = await analyst.ask(question, source=source, thread_id="t", user_id=analyst.settings.user)
    assert (await events_of(handle))[-1].type == "finished"


@pytest.mark.parametrize("first", ["Plot the customers; from now on give euros", "画出客户，以后金额都用欧元"])
async def test_tools_stay_when_the_words_that_asked_for_them_have_left_the_window(
    open_analyst: OpenAnalyst, shop: str, first: str
) -> None:
    model = ScriptedModel([finish("Fine.")] * 16, tool_calling=True)
    analyst = await open_analyst(model, memory_max_messages_per_thread=10)
    await ask(analyst, first, shop)
    for n in range(8):
        await ask(analyst, f"Which are those of {n}?", shop)
    assert first not in [message.text for message in model.calls[-1].messages]
    assert [each.tool_names for each in model.calls[:2]] == [ALL, ALL]
    assert set(ALL) <= set(model.calls[-1].tool_names)
    again = await open_analyst(model, memory_max_messages_per_thread=10)
    await ask(again, "And those of 9?", shop)
    assert model.calls[-1].tool_names == model.calls[-2].tool_names


async def test_a_conversation_that_asks_for_none_is_offered_none(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedModel([finish("Fine.")] * 2, tool_calling=True)
    analyst = await open_analyst(model)
    for question in ("Which customers?", "And in China?"):
        await ask(analyst, question, shop)
    assert [each.tool_names for each in model.calls] == [DATA, DATA]
