"""What the demo model suggests, it reads as it is meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from longthread_demo.brain import decide
from longthread_demo.examples import Suggestion, examples_for, is_read_as_meant
from longthread_demo.query.plan import Dimension, PlannedMeasure, QueryPlan, field_of
from longthread_demo.schema import schema_of
from longthread_demo.talk import facts_of, turns_of

Talk = Callable[[str], Awaitable[Any]]

SCHEMAS = {
    "numbered": """
        CREATE TABLE w27_texts (id INTEGER PRIMARY KEY, kind TEXT);
        INSERT INTO w27_texts VALUES (1, 'a'), (2, 'b');""",
    "odd": """
        CREATE TABLE t_emp (id INTEGER PRIMARY KEY, emp_name TEXT, salary INTEGER);
        CREATE TABLE orderLines (id INTEGER PRIMARY KEY, kind TEXT);
        INSERT INTO t_emp VALUES (1, 'Ann', 10), (2, 'Bob', 20), (3, 'Cy', 30);
        INSERT INTO orderLines VALUES (1, 'a'), (2, 'b');""",
    "orders": """
        CREATE TABLE 订单 (id INTEGER PRIMARY KEY, 城市 TEXT, 金额 INTEGER);
        INSERT INTO 订单 VALUES (1, '上海', 3), (2, '北京', 4), (3, '上海', 5);""",
}


async def test_a_table_is_described_by_its_name_in_camel_case(ask: Talk) -> None:
    assert "`kind`" in await (await ask("odd")).ask("What columns does orderLines have?")


async def test_what_would_be_read_otherwise_is_not_suggested(ask: Talk) -> None:
    conversation = await ask("odd")
    await conversation.ask("What is the meaning of life?")
    turns = turns_of(conversation.messages)
    schema = schema_of(facts_of(conversation.messages), [each for turn in turns for each in turn.exchanges])
    counted = QueryPlan("t_emp", measures=(PlannedMeasure("count", "t_emp"),))
    assert not is_read_as_meant(Suggestion("How many t_emp are there?", counted), schema), "it knows no t"
    assert not any("t_emp are" in each for each in examples_for(schema, "en"))
    lines = QueryPlan("orderLines", measures=(PlannedMeasure("count", "orderLines"),))
    by_kind = Dimension((field_of("orderLines", "kind"),))
    grouped = QueryPlan("orderLines", measures=lines.measures, dimensions=(by_kind,))
    assert is_read_as_meant(Suggestion("How many order lines are there?", lines), schema)
    assert is_read_as_meant(Suggestion("How many order lines per kind?", grouped), schema)
    assert not is_read_as_meant(Suggestion("How many order lines per kind?", lines), schema)
    assert not is_read_as_meant(Suggestion("How many order lines are there?", grouped), schema)


async def test_a_suggestion_with_a_number_stays_whole(ask: Talk) -> None:
    answer = await (await ask("numbered")).ask("What is the meaning of life?")
    assert "\n- ```List the w 27 texts```\n" in answer


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["demo", "shop", "hospital", "school", "staff", "gym", "harbour", "cnlib", "charging"])
async def test_what_is_suggested_is_answered_from_the_table_that_is_named(talk: Talk, name: str, language: str) -> None:
    conversation = await talk(name)
    for opening in ("hello", "What is the meaning of life?") if language == "en" else ("你好", "生命的意义是什么？"):
        suggested = [line[2:] for line in (await conversation.ask(opening)).splitlines() if line.startswith("- ")]
        assert len(suggested) == 3
        for question in suggested:
            answer = await conversation.ask(question)
            assert "cannot answer" not in answer and "无法回答" not in answer, question
            assert "EXISTS" not in answer, question


def test_nothing_is_suggested_of_no_tables() -> None:
    assert "- " not in decide([]).answer


async def test_suggestions_in_chinese_are_said_as_people_ask(ask: Talk) -> None:
    conversation = await ask("orders")
    told = await conversation.ask("生命的意义是什么？")
    suggested = ["有多少订单？", "各城市的订单数量", "订单的平均金额是多少？"]
    assert [line[2:] for line in told.splitlines() if line.startswith("- ")] == suggested
    for question in suggested:
        assert "无法回答" not in await conversation.ask(question), question
