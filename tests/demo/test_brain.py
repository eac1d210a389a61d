"""How the demo model behaves in a tool loop: what it looks up, when it stops, and what it admits."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.tool import Observation, Tool
from longthread.view.items import BARE_ARGS
from longthread_demo.brain import decide
from longthread_demo.question import parse
from longthread_demo.talk import DemoCall, Utterance
from longthread_demo.words.chunks import PhraseChunk, chunks_of
from longthread_demo.words.vocabulary import Vocabulary

Talk = Callable[[str], Awaitable[Any]]
EN, ZH = "*Demo model: rule-based, no AI.*", "*演示模型：基于规则，没有使用 AI。*"


async def test_the_first_question_explores_and_the_second_does_not(talk: Talk) -> None:
    conversation = await talk("shop")
    await conversation.ask("How many customers are there?")
    assert conversation.names()[0] == "list_tables"
    assert "describe_table" in conversation.names()
    await conversation.ask("How many customers are there per country?")
    assert conversation.names() == ["run_sql"]


async def test_known_facts_of_the_system_prompt_are_not_explored_again(talk: Talk) -> None:
    conversation = await talk("shop")
    listed = (await conversation.tools["list_tables"].call({}))["data"]
    described = (await conversation.tools["describe_table"].call({"table": "customers"}))["data"]
    facts = {**listed, "schemas": {"customers": described}}
    conversation.system = f"Facts:\n```json longthread-knowledge\n{json.dumps(facts)}\n```\n"
    answer = await conversation.ask("How many customers are there?")
    assert conversation.names() == ["run_sql"]
    assert answer.startswith("There are **40** customers [q1].")


async def test_answers_show_the_number_its_query_the_sql_and_the_label(talk: Talk) -> None:
    conversation = await talk("shop")
    answer = await conversation.ask("How many customers are there?")
    assert answer.startswith("There are **40** customers [q1].")
    assert "```sql\nSELECT COUNT(*)" in answer
    assert answer.endswith(EN)
    answer = await conversation.ask("每个城市有多少客户？")
    assert "| city | customers_count |" in answer
    assert answer.endswith(ZH)


async def test_the_same_conversation_gets_the_same_answer(talk: Talk) -> None:
    answers = []
    for _ in range(2):
        conversation = await talk("shop")
        answers.append(await conversation.ask("Top 3 products by quantity sold"))
    assert answers[0] == answers[1]


async def test_a_name_that_is_no_frequent_value_is_looked_up_with_one_query(talk: Talk) -> None:
    conversation = await talk("shop")
    await conversation.ask("How many orders does Anna Garcia have?")
    probes = [call for call in conversation.actions if "found_value" in str(call.args.get("sql"))]
    assert len(probes) == 1


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("How many customers are from Atlantis?", "Atlantis"),
        ("What is the weather in Paris?", "weather"),
        ("List the customers of 亚特兰蒂斯", "亚特兰蒂斯"),
        ('How many products are called "Time Machine"?', "Time Machine"),
        ("What is the average price of a guitar?", "guitar"),
    ],
)
async def test_an_unknown_heart_of_a_question_is_refused_with_examples(talk: Talk, question: str, word: str) -> None:
    conversation = await talk("shop")
    answer = await conversation.ask(question)
    assert "cannot answer" in answer or "无法回答" in answer
    assert word in answer
    assert answer.count("\n- ") == 3


@pytest.mark.parametrize(
    "question",
    ["What is the median of orders?", "delete all customers", "为什么销售额下降？", "Predict sales of 2030"],
)
async def test_what_there_is_no_rule_for_is_refused(talk: Talk, question: str) -> None:
    conversation = await talk("shop")
    answer = await conversation.ask(question)
    assert "cannot answer" in answer or "无法回答" in answer
    assert conversation.rows is None


async def test_a_number_is_never_given_while_a_restricting_word_is_unplaced(talk: Talk) -> None:
    conversation = await talk("shop")
    answer = await conversation.ask("How many happy customers are there?")
    assert "cannot answer" in answer and "“happy”" in answer


@pytest.mark.parametrize(
    ("name", "question", "word"),
    [
        ("harbour", "How many abandoned vessels are there?", "abandoned"),
        ("harbour", "List the insured cargo items", "insured"),
        ("shop", "How many available products are there?", "available"),
        ("harbour", "inspections in zone A", "A"),
        ("charging", "报废的充电桩有多少台？", "报废"),
        ("charging", "被投诉的车主有多少位？", "投诉"),
        ("charging", "已取消的订单占多少？", "占"),
    ],
)
async def test_what_restricts_the_rows_and_has_no_place_is_refused(
    talk: Talk, name: str, question: str, word: str
) -> None:
    answer = await (await talk(name)).ask(question)
    assert "cannot answer" in answer or "无法回答" in answer
    assert word in answer


@pytest.mark.parametrize("question", ["total arrival date of port calls", "average built year of vessels"])
async def test_dates_and_years_are_never_added_up(talk: Talk, question: str) -> None:
    assert "cannot answer" in await (await talk("harbour")).ask(question)


async def test_of_a_very_long_question_the_beginning_is_read_and_that_is_said(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(question: str, words: Vocabulary) -> list[PhraseChunk]:
        read.append(len(question))
        return chunks_of(question, words)

    monkeypatch.setattr(parse, "chunks_of", counted)
    work = {}
    for padding in (" ", " blah", "x"):
        for size in (10_000, 200_000):
            conversation = await talk("harbour")
            read.clear()
            answer = await conversation.ask("How many vessels are there?" + padding * (size // len(padding)))
            work[padding, size] = read[:]
            assert "4,000 characters" in answer
            assert len(answer) < 3000
        assert work[padding, 10_000] == work[padding, 200_000]
        assert max(work[padding, 10_000]) <= parse.LONGEST
    assert "cannot answer" in answer


async def test_a_list_shows_five_columns_at_most(talk: Talk) -> None:
    conversation = await talk("harbour")
    await conversation.ask("List the shipping companies")
    assert conversation.rows is not None and len(conversation.rows[0]) <= 5


async def test_one_row_is_a_row(talk: Talk) -> None:
    conversation = await talk("harbour")
    answer = await conversation.ask("List the vessels named MV Vega")
    assert len(conversation.rows or ()) == 1
    assert answer.startswith("Found **1** row where `vessel_name` = MV Vega: **MV Vega** [q1].")


async def test_examples_of_a_refusal_can_be_answered(talk: Talk) -> None:
    conversation = await talk("shop")
    refusal = await conversation.ask("What is the meaning of life?")
    examples = [line[2:] for line in refusal.splitlines() if line.startswith("- ")]
    assert len(examples) == 3
    for example in examples:
        answer = await conversation.ask(example)
        assert "cannot answer" not in answer, example


async def test_a_followup_whose_context_is_gone_says_so(talk: Talk) -> None:
    conversation = await talk("shop")
    answer = await conversation.ask("and by country?")
    assert "earlier question that I cannot see" in answer
    answer = await (await talk("shop")).ask("那平均呢？")
    assert "看不到之前的问题" in answer


async def test_a_followup_that_changes_nothing_is_not_answered_twice(talk: Talk) -> None:
    conversation = await talk("shop")
    await conversation.ask("How many customers are there?")
    answer = await conversation.ask("and now with feeling?")
    assert "cannot answer" in answer


async def test_continue_goes_on_with_the_question_before(talk: Talk) -> None:
    conversation = await talk("shop")
    for tool in ("list_tables",):
        observation = await conversation.tools[tool].call({})
    conversation.messages = [
        Utterance("user", "How many customers are there?"),
        Utterance("assistant", "", (DemoCall("list_tables", {}, "c1"),)),
        Utterance("tool", json.dumps(observation), call_id="c1"),
    ]
    answer = await conversation.ask("继续")
    assert "list_tables" not in conversation.names()
    assert "**40**" in answer


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what tables are there?", "`orders`"),
        ("有哪些表？", "`orders`"),
        ("What columns does orders have?", "`total_amount`"),
        ("orders表有哪些字段？", "`total_amount`"),
        ("how many tables are there?", "6 tables"),
    ],
)
async def test_questions_about_the_schema(talk: Talk, question: str, expected: str) -> None:
    conversation = await talk("shop")
    assert expected in await conversation.ask(question)
    assert "run_sql" not in conversation.names()


async def test_a_query_that_fails_is_repaired_at_most_once_and_the_failure_told(talk: Talk) -> None:
    conversation = await talk("shop")

    async def broken(_: Any) -> Observation:
        return {"ok": False, "error": {"type": "sql_failed", "message": "disk on fire"}}

    real = conversation.tools["run_sql"]
    conversation.tools["run_sql"] = Tool(real.name, real.description, real.parameters, broken)
    answer = await conversation.ask("How many orders per status?")
    assert 1 <= conversation.names().count("run_sql") <= 2
    assert "disk on fire" in answer and "```sql" in answer


async def test_tables_that_cannot_be_listed_end_the_question(talk: Talk) -> None:
    conversation = await talk("shop")

    async def broken(_: Any) -> Observation:
        return {"ok": False, "error": {"type": "source_locked", "message": "The source is locked."}}

    real = conversation.tools["list_tables"]
    conversation.tools["list_tables"] = Tool(real.name, real.description, real.parameters, broken)
    answer = await conversation.ask("How many orders are there?")
    assert conversation.names() == ["list_tables"]
    assert "The source is locked." in answer


async def test_an_observation_that_cannot_be_read_does_not_loop() -> None:
    messages = [Utterance("user", "How many orders?")]
    for turn in range(8):
        decision = decide(messages)
        if not decision.calls:
            break
        calls = tuple(DemoCall(call.name, call.args, f"{turn}-{at}") for at, call in enumerate(decision.calls))
        messages.append(Utterance("assistant", decision.thought, calls))
        messages += [Utterance("tool", "{ not json", call_id=call.id) for call in calls]
    assert not decision.calls
    assert EN in decision.answer


def test_an_empty_database_is_said_to_be_empty() -> None:
    facts = json.dumps({"source": "x", "dialect": "sqlite", "tables": []})
    system = Utterance("system", f"```json longthread-knowledge\n{facts}\n```")
    decision = decide([system, Utterance("user", "How many orders?")])
    assert not decision.calls and "no tables" in decision.answer


async def test_where_columns_are_not_listed_the_tables_that_keys_point_to_are_described_too(
    tmp_path: Path, converse: Callable[..., Any]
) -> None:
    path = tmp_path / "many.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in range(300):
            connection.execute(f"CREATE TABLE log_{number} (id INTEGER PRIMARY KEY, moment TEXT)")
        connection.execute("CREATE TABLE crm_customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT)")
        connection.execute("CREATE TABLE crm_orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL)")
        connection.execute("INSERT INTO crm_customers VALUES (1, 'A', 'DE'), (2, 'B', 'US')")
        connection.execute("INSERT INTO crm_orders VALUES (1, 1, 5), (2, 1, 7), (3, 2, 1)")
    source = await open_source(str(path))
    conversation = converse({tool.name: tool for tool in analysis_tools(source)})
    await conversation.ask("订单总额按国家统计")
    assert conversation.rows == [["DE", 12.0], ["US", 1.0]]
    assert conversation.names().count("describe_table") == 2
    await source.close()


async def test_of_a_thousand_tables_those_are_described_that_the_question_is_about() -> None:
    names = [f"log_{n}" for n in range(990)] + ["customers", "orders", "invoices"]
    facts = json.dumps({"source": "x", "dialect": "sqlite", "tables": names})
    system = Utterance("system", f"```json longthread-knowledge\n{facts}\n```")
    decision = decide([system, Utterance("user", "客户有多少？")])
    assert [call.args["table"] for call in decision.calls] == ["customers"]


@pytest.mark.parametrize(
    "question", ["", "???", "SELECT", "的", "a b " * 100_000, "如何" * 200_000, "'; DROP TABLE x; --", "42"]
)
async def test_odd_questions_come_to_an_end(talk: Talk, question: str) -> None:
    conversation = await talk("shop")
    answer = await conversation.ask(question)
    assert EN in answer or ZH in answer


def talk_of(question: str, *done: tuple[DemoCall, str]) -> list[Utterance]:
    """A question and what was called for it, as the view shows it."""
    facts = {"tables": ["customers"], "columns": {"customers": ["id", "name", "country"]}}
    messages = [
        Utterance("system", f"```json longthread-knowledge\n{json.dumps(facts)}\n```"),
        Utterance("user", question),
    ]
    for call, result in done:
        messages += [Utterance("assistant", "", (call,)), Utterance("tool", result, call_id=call.id)]
    return messages


@pytest.mark.parametrize(
    ("question", "says"), [("How many customers are there?", "MEMORY_CONTEXT_WINDOW"), ("有多少客户？", "调大")]
)
def test_what_does_not_fit_into_the_view_is_not_asked_for_again(question: str, says: str) -> None:
    [look] = decide(talk_of(question)).calls
    assert look.name == "describe_table"
    cut = '{"ok":true,"data":{"table_name":"cust\n… (900 characters left out) …\n}}'
    [count] = decide(talk_of(question, (replace(look, id="1"), cut))).calls  # the names of the columns are enough
    assert count.name == "run_sql"
    done = decide(talk_of(question, (replace(look, id="1"), cut), (replace(count, id="2"), cut)))
    assert done.calls == () and says in done.answer
    bare = decide(talk_of(question, (DemoCall("run_sql", BARE_ARGS, "1"), cut)))
    assert bare.calls == () and says in bare.answer
