"""Runs in the SQL protocol, and answers that no query supports."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, events_of, finish

from longthread.model.run import Event
from longthread.runs.analyst import Analyst
from longthread.runs.execute import MALFORMED_LIMIT
from longthread.runs.inspect import sent
from longthread.runs.protocol import find_unsupported
from longthread.runs.run_context import CallState, RunKnowledge
from longthread.store import runs
from longthread.testing import ScriptedModel

COUNT = "SELECT COUNT(*) AS n FROM customers"


WORDS = "Tell me about the number of customers."
"""A question that wants more than rows, so that the model writes the answer."""


def fence(sql: str) -> str:
    return f"```sql\n{sql}\n```"


async def ask(analyst: Analyst, question: str, source: str, **options: Any) -> list[Event]:
    handle = await analyst.ask(question, source=source, thread_id="t", user_id=analyst.settings.user, **options)
    return await events_of(handle)


async def check_told_again(analyst: Analyst, model: ScriptedModel) -> None:
    """Each call is shown from the log alone exactly as the model saw it."""
    async with analyst.store.reading() as tx:
        steps = [step for step in await runs.steps_from(tx, "t", 0) if step.kind == "model"]
        again = [await sent(tx, step) for step in steps]
    assert len(again) == len(model.calls) > 0
    for told, made in zip(again, model.calls, strict=True):
        assert [(m.role, m.text) for m in told.messages] == [(m.role, m.text) for m in made.messages]
        assert not told.tools and not made.tools


async def test_a_question_takes_a_statement_and_a_sentence(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedModel([fence(COUNT), "There are 3 customers [q1].", fence("SELECT 1 AS one"), "One [q2]."])
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop, protocol="sql")
    assert events[-1].data["answer"] == "There are 3 customers [q1]."
    assert events[-1].data["citations"] == [{"number": "3", "query": "q1"}]
    writing, answering = model.calls
    assert "CREATE TABLE customers" in writing.messages[0].text
    assert "CREATE TABLE" not in "".join(message.text for message in answering.messages)
    assert COUNT in answering.messages[-1].text
    events = await ask(analyst, "Summarize one.", shop, protocol="sql")
    assert events[-1].data["answer"] == "One [q2]."
    follow_up = model.calls[2].messages
    assert follow_up[0].text == writing.messages[0].text  # the prefix that a server keeps
    assert [message.role for message in follow_up[1:]] == ["user", "assistant", "user", "assistant", "user"]
    assert follow_up[1].text == writing.messages[1].text
    assert "Today is" not in follow_up[0].text
    await check_told_again(analyst, model)
    later = ScriptedModel([fence(COUNT), "There are 3 [q1]."])
    await ask(await open_analyst(later), "Describe the customers of today.", shop, protocol="sql")
    assert re.search(r"Today is \d{4}-\d\d-\d\d\.$", later.calls[0].messages[0].text)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("There are 3 customers.", "There are 3 customers. [q1]"),
        ("共有3位客户。", "共有3位客户。 [q1]"),
        ("There are 3 [q1] customers.", "There are 3 [q1] customers."),
        ("The rows do not say.", "The rows do not say."),
    ],
)
async def test_an_answer_with_numbers_names_its_query(
    open_analyst: OpenAnalyst, shop: str, reply: str, answer: str
) -> None:
    model = ScriptedModel([fence(COUNT), reply])
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop, protocol="sql")
    assert events[-1].data["answer"] == answer
    await check_told_again(analyst, model)


async def test_an_error_goes_back_and_the_same_statement_is_not_run_again(open_analyst: OpenAnalyst, shop: str) -> None:
    wrong = "SELECT COUNT(*) FROM customer"
    model = ScriptedModel([fence(wrong), fence(wrong), fence(COUNT), "3 [q3]."])
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop, protocol="sql")
    assert events[-1].data["answer"] == "3 [q3]."
    errors = [event.data["observation"] for event in events if event.type == "step_finished"]
    assert [each.get("error", {}).get("type") for each in errors] == ["unknown_table", "sql_repeated", None]
    assert "customers has id" in errors[1]["error"]["message"]
    await check_told_again(analyst, model)


async def test_a_model_that_is_left_to_us_is_asked_for_sql_after_two_replies_that_are_no_calls(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedModel(["{half", "{again", fence(COUNT), "3 [q1]."], tool_calling=False)
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop)
    assert events[-1].data["answer"] == "3 [q1]."
    warnings = [event.data["message"] for event in events if event.type == "warning"]
    assert "The model's replies are no calls: asking it for SQL." in warnings
    assert model.calls[2].messages[0].text.startswith("You write one SQLite SELECT")


async def test_an_answer_without_a_query_goes_back_once_and_is_marked_then(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedModel(["There are 59 customers [q3].", "There are 59 customers."], tool_calling=True)
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many customers?", shop)
    assert len(model.calls) == 2
    assert "There is no query [q3]." in model.calls[1].messages[-1].text
    assert events[-1].data["answer"] == "There are 59 customers."
    warnings = [event.data["message"] for event in events if event.type == "warning"]
    assert [text for text in warnings if text.startswith("No query was run")] != []


@pytest.mark.parametrize("answer", ["Hello! Ask me about your customers.", "你好，请提问。", "You asked about 2024."])
async def test_an_answer_without_numbers_of_its_own_is_not_sent_back(
    open_analyst: OpenAnalyst, shop: str, answer: str
) -> None:
    model = ScriptedModel([answer], tool_calling=True)
    analyst = await open_analyst(model)
    events = await ask(analyst, "Hello, what about 2024?", shop)
    assert events[-1].data["answer"] == answer
    assert [event for event in events if event.type == "warning"] == []


SENT_BACK = "No query gave these numbers: {}."


@pytest.mark.parametrize(
    ("replies", "number"),
    [
        ([call("list_tables"), finish("There are 59 customers.")], "59"),
        ([call("sample_rows", table="customers"), finish("There are 59 customers.")], "59"),
        ([call("remember", content="There are 59 customers."), finish("There are 59 customers.")], "59"),
        ([call("run_sql", sql=f"{COUNT} LIMIT 0"), finish("There are 59 customers.")], "59"),
        ([call("run_sql", sql="SELECT n FROM customers"), finish("There are 59 customers.")], "59"),
        ([finish("There are fifty-nine customers.")], "59"),
        ([finish("共有五十九位客户。")], "59"),
        ([finish("共有两百位客户。")], "200"),
    ],
)
async def test_a_number_that_nothing_told_is_sent_back(
    open_analyst: OpenAnalyst, shop: str, replies: list[Any], number: str
) -> None:
    model = ScriptedModel([*replies, finish("I do not know.")], tool_calling=True)
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many customers?", shop)
    assert events[-1].data["answer"] == "I do not know."
    assert SENT_BACK.format(number) in model.calls[-1].messages[-1].text


@pytest.mark.parametrize(
    "replies",
    [
        [call("list_tables"), finish("There are 3 customers.")],
        [call("sample_rows", table="orders"), finish("One order is 10.5, about 10.5 euros.")],
        [call("run_sql", sql=COUNT), finish("They are 3, which is 37.5 % of eight.")],
        [finish("You asked about fifty of them, in one of two ways: 50.")],
        [finish("一共问了五十位，一个也没有。")],
    ],
)
async def test_a_number_that_was_told_is_not_sent_back(
    open_analyst: OpenAnalyst, shop: str, replies: list[Any]
) -> None:
    model = ScriptedModel(replies, tool_calling=True)
    analyst = await open_analyst(model)
    events = await ask(analyst, "Are there more than fifty (五十) customers?", shop)
    assert len(model.calls) == len(replies)
    assert [event for event in events if event.type == "warning"] == []


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("There are {0.day} customers.", True),
        ("There are {0.year} customers.", True),
        ("有 {0.day} 位客户。", True),
        ("Today is {0:%Y-%m-%d}.", False),
        ("Today is {0:%B} {0.day}, {0.year}.", False),
        ("Today is the {0.day}th of {0:%B}; the year is {0.year}.", False),
        ("Heute ist der {0.day}. {0:%B} {0.year} ({0.day}.{0.month}.{0.year}).", False),
        ("It is {0.month}/{0.day}/{0.year}, in {0.year}.", False),
        ("今天是{0.year}年{0.month}月{0.day}日。", False),
    ],
)
def test_the_day_supports_a_date_and_no_count(answer: str, missing: bool) -> None:
    day = datetime(2026, 11, 29, 9, tzinfo=UTC)
    run = SimpleNamespace(question="Hello", started_at=day)
    window = SimpleNamespace(spots=[], own=[])
    settings = SimpleNamespace(zone=UTC)
    parts = {"calls": CallState(), "knowledge": RunKnowledge()}
    context: Any = SimpleNamespace(tools={"run_sql": None}, run=run, window=window, settings=settings, **parts)
    assert (find_unsupported(context, answer.format(day)) is not None) is missing


async def test_a_number_of_an_earlier_result_needs_no_new_query(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedModel(
        [{"action": "run_sql", "args": {"sql": COUNT}}, finish("3 [q1]."), finish("As I said, 3 [q1].")]
    )
    analyst = await open_analyst(model)
    await ask(analyst, "How many customers?", shop)
    events = await ask(analyst, "Say it again.", shop)
    assert events[-1].data["answer"] == "As I said, 3 [q1]."
    assert len(model.calls) == 3


async def test_the_first_of_several_calls_is_run(open_analyst: OpenAnalyst, shop: str) -> None:
    plan = (
        'Step 1\n```json\n{"name": "list_tables", "arguments": {}}\n```\n'
        f'Step 2\n```json\n{{"name": "run_sql", "arguments": {{"sql": "{COUNT}"}}}}\n```\n'
    )
    model = ScriptedModel([plan, finish("Done.")])
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many customers?", shop)
    assert [event.data["action"] for event in events if event.type == "step_finished"] == ["list_tables"]


async def test_a_model_that_repeats_a_failing_statement_pauses_with_what_was_done(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    wrong = fence("SELECT COUNT(*) FROM customer")
    model = ScriptedModel([wrong] * 4)
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many customers?", shop, protocol="sql", max_steps=12)
    assert (events[-1].type, events[-1].data["reason"]) == ("paused", "repeated")
    assert "customer" in events[-1].data["summary"]
    assert [each.options.get("temperature", 0.0) for each in model.calls] == [0.0, 0.0, 0.5, 1.0], "and no report"


async def test_a_report_has_no_number_that_no_query_gave(open_analyst: OpenAnalyst, shop: str) -> None:
    wrong = call("run_sql", sql="SELECT COUNT(*) FROM customer")
    model = ScriptedModel([*[wrong] * 4, finish("There are 59 businesses [q3].")])
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many customers?", shop, max_steps=12)
    assert (events[-1].type, events[-1].data["reason"]) == ("paused", "repeated")
    assert "59" not in events[-1].data["summary"] and "customer" in events[-1].data["summary"]


async def test_after_two_failures_of_a_kind_the_error_stands_alone_and_another_reply_is_drawn(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    statements = [fence(f"SELECT {name} FROM customers") for name in ("nam", "namm", "nammm")]
    model = ScriptedModel([*statements, fence(COUNT), "3 [q4]."])
    analyst = await open_analyst(model)
    await ask(analyst, WORDS, shop, protocol="sql")
    told = [call.messages[-1].text for call in model.calls[1:4]]
    assert [len(text.split(". ")) > 1 for text in told] == [True, False, False]
    assert told[1] == "That failed: There is no column namm."
    assert [call.options.get("temperature", 0.0) for call in model.calls] == [0.0, 0.0, 0.5, 0.5, 0.0]
    await check_told_again(analyst, model)


async def test_a_statement_that_was_corrected_is_run_and_not_shown(open_analyst: OpenAnalyst, shop: str) -> None:
    written = [f"SELECT count(*) FROM customers WHERE name = '{name}'" for name in ("ada", "Ada")]
    model = ScriptedModel([*written, "1 [q2]."], tool_calling=True)
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many are called Ada?", shop)
    assert events[-1].data["answer"] == "1 [q2]."
    rows = [event.data["observation"]["data"]["rows"] for event in events if event.type == "step_finished"]
    assert rows == [[[0]], [[1]]]


NAMES = "SELECT name FROM customers"


@pytest.mark.parametrize("reply", [NAMES, fence(NAMES), f'{{"sql": "{NAMES}"}}'])
async def test_another_statement_in_the_answering_is_run(open_analyst: OpenAnalyst, shop: str, reply: str) -> None:
    model = ScriptedModel([fence(COUNT), reply, "Ada, 李雷 and Bob [q2]."])
    analyst = await open_analyst(model)
    events = await ask(analyst, "Describe the customers.", shop, protocol="sql")
    assert events[-1].data["answer"] == "Ada, 李雷 and Bob [q2]."
    actions = [event.data["action"] for event in events if event.type == "step_finished"]
    assert actions == ["run_sql", "run_sql"]
    await check_told_again(analyst, model)


@pytest.mark.parametrize("reply", [COUNT, fence(COUNT), f'{{"sql": "{COUNT}"}}'])
async def test_the_statement_that_was_run_is_no_answer(open_analyst: OpenAnalyst, shop: str, reply: str) -> None:
    model = ScriptedModel([fence(COUNT), reply, "There are 3 [q1]."])
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop, protocol="sql")
    assert events[-1].data["answer"] == "There are 3 [q1]."
    retold = model.calls[2].messages
    assert "Answer in words, from the rows." in retold[-1].text
    assert "Result [q1], 1 of 1 rows:" in retold[-1].text
    assert retold[0].text == model.calls[1].messages[0].text
    await check_told_again(analyst, model)


async def test_a_model_that_has_no_other_words_than_its_statement_ends_without_showing_it(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedModel([fence(COUNT)] * 12)
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop, protocol="sql")
    assert events[-1].type == "failed"
    assert "answer" not in events[-1].data
    assert len(model.calls) == 1 + MALFORMED_LIMIT
    assert [event for event in events if event.type == "step_finished" and event.data["action"] == "run_sql"][1:] == []


async def test_a_statement_that_repeats_itself_is_stopped_and_shown_once(open_analyst: OpenAnalyst, shop: str) -> None:
    loop = "```sql\n" + "SELECT name, city, country\nFROM (\n" * 200
    model = ScriptedModel([loop, fence(COUNT), "There are 3 customers [q1]."])
    analyst = await open_analyst(model)
    events = await ask(analyst, WORDS, shop, protocol="sql")
    assert events[-1].data["answer"] == "There are 3 customers [q1]."
    [_, reply, correction] = model.calls[1].messages[1:]
    assert reply.text == "```sql\nSELECT name, city, country\nFROM ( …"
    assert "repeated itself" in correction.text
    await check_told_again(analyst, model)


async def test_an_answer_may_repeat_equal_rows(open_analyst: OpenAnalyst, shop: str) -> None:
    rows = "| Engineering Department | Senior Developer | Beijing |\n" * 40
    model = ScriptedModel([fence(COUNT), f"{rows}\nThese are the 3 customers [q1]."])
    events = await ask(await open_analyst(model), WORDS, shop, protocol="sql")
    assert events[-1].data["answer"] == f"{rows}\nThese are the 3 customers [q1]."


@pytest.mark.parametrize(
    ("question", "sql", "answer"),
    [
        ("How many customers?", "SELECT COUNT(*) FROM customers", "**3** [q1]."),
        ("有多少客户？", "SELECT COUNT(*) AS customer_count FROM customers", "Customer count：**3** [q1]。"),
        ("Who?", NAMES, "**Ada**, **李雷**, **Bob** [q1]."),
        ("Who has a number over 9?", f"{NAMES} WHERE id > 9", "No rows match [q1]."),
        ("The sum of none?", "SELECT SUM(id) AS s FROM customers WHERE id > 9", "There is no value [q1]."),
    ],
)
async def test_rows_are_the_answer_without_a_second_call(
    open_analyst: OpenAnalyst, shop: str, question: str, sql: str, answer: str
) -> None:
    model = ScriptedModel([fence(sql), fence(COUNT)])
    analyst = await open_analyst(model)
    events = await ask(analyst, question, shop, protocol="sql")
    assert events[-1].data["answer"] == answer
    assert len(model.calls) == 1
    events = await ask(analyst, "How many customers?", shop, protocol="sql")
    assert events[-1].data["answer"] == "N: **3** [q2]."
    [first, *follow_up] = model.calls[1].messages[1:]
    assert first.text == model.calls[0].messages[1].text
    assert [message.role for message in follow_up] == ["assistant", "user"], "the model sees rows, and no answer"
    assert "Result [q1]" in follow_up[-1].text and answer not in follow_up[-1].text
    await check_told_again(analyst, model)


@pytest.mark.parametrize(
    "question",
    [
        "Are there customers?",
        "Why are there 3 customers?",
        "有客户吗？",
        "总结一下客户。",
        "客户数是多少？用英文回答。",
    ],
)
async def test_a_question_that_wants_words_is_answered_by_the_model(
    open_analyst: OpenAnalyst, shop: str, question: str
) -> None:
    model = ScriptedModel([fence(COUNT), "Three [q1]."])
    events = await ask(await open_analyst(model), question, shop, protocol="sql")
    assert events[-1].data["answer"] == "Three [q1]."


async def test_what_a_user_said_of_answers_is_the_models_to_follow(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedModel(["I will.", fence(COUNT), "Three [q1]."])
    analyst = await open_analyst(model)
    await ask(analyst, "Always write numbers in words.", shop, protocol="sql")
    events = await ask(analyst, "How many customers?", shop, protocol="sql")
    assert events[-1].data["answer"] == "Three [q1]."


async def test_rows_answer_when_the_steps_are_used_up(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedModel([fence(COUNT)])
    events = await ask(await open_analyst(model), "How many customers?", shop, protocol="sql", max_steps=1)
    assert events[-1].data.get("answer") == "N: **3** [q1]."
