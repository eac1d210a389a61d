"""What the demo model must not answer: several things at once, the first of each group, units that are not kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from longthread.tools.tool import Observation, Tool
from longthread_demo.brain import decide
from longthread_demo.talk import DemoCall, Utterance

Talk = Callable[[str], Awaitable[Any]]


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("climbing", "total visits and cancelled visits in 2022", "several things at once"),
        ("climbing", "How many guides and climbers enrolled in 2022?", "several things at once"),
        ("climbing", "the newest climber in each town", "first of each group"),
        ("climbing", "courses that start after 6pm", "could not place"),
        ("climbing", "How many climbers live in London?", "“London”"),
        ("bakery", "卖了多少份糕点3", "售出数量"),
    ],
)
async def test_what_has_no_rule_is_refused(talk: Talk, name: str, question: str, said: str) -> None:
    answer = await (await talk(name)).ask(question)
    assert "cannot answer" in answer or "无法回答" in answer
    assert said in answer
    assert "cannot see" not in answer


async def test_the_columns_of_a_single_table_need_no_name(talk: Talk) -> None:
    answer = await (await talk("market")).ask("有哪些列？")
    assert "`unit_price`" in answer


async def test_a_table_that_is_gone_is_looked_for_once_more(talk: Talk) -> None:
    conversation = await talk("market")
    good = conversation.tools["run_sql"]
    failed: list[str] = []

    async def flaky(args: Any) -> Observation:
        if not failed:
            failed.append(str(args["sql"]))
            return {"ok": False, "error": {"type": "sql", "message": "no such table: sales"}}
        return await good.call(args)

    conversation.tools = {**conversation.tools, "run_sql": Tool("run_sql", "", {}, flaky)}
    await conversation.ask("what tables are there?")
    answer = await conversation.ask("How many sales are there?")
    assert conversation.names().count("list_tables") == 1
    assert "**200**" in answer


async def test_a_question_before_may_have_lost_its_tool_calls(talk: Talk) -> None:
    conversation = await talk("market")
    conversation.messages = [
        Utterance("user", "How many vessels are there?"),
        Utterance("assistant", "number of `vessels`: **40** [q1]"),
        Utterance("user", "How many sales are there?"),
    ]
    assert decide(conversation.messages).calls == (DemoCall("list_tables", {}),)
    conversation.messages.pop()
    assert "**200**" in await conversation.ask("How many sales are there?")
