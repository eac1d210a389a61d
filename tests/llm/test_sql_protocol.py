"""The SQL protocol: what a model is shown, and what its replies mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longthread.llm.json_protocol import ActionCall, Finish, Malformed
from longthread.llm.sql_protocol import (
    OR_WORDS,
    find_statement,
    is_answering,
    is_talk,
    needs_today,
    parse_answer,
    parse_written,
    place_of_answered,
    render_answering,
    render_writing,
    sql_prompt,
)
from longthread.messages.message import Message, tool_call
from longthread.model.run import statement_form

COUNT = "SELECT count(*) FROM business"
STATEMENTS = [
    f"```sql\n{COUNT}\n```",
    f"```\n{COUNT}\n```",
    f"Here is the query:\n\n```SQL\n{COUNT}\n```\nIt counts the businesses.",
    f"```sql\n{COUNT}",
    COUNT,
    json.dumps({"sql": COUNT}),
    f"```json\n{json.dumps({'query': COUNT})}\n```",
    json.dumps({"name": "run_sql", "arguments": {"sql": COUNT}}),
    f"```sql\n{COUNT}\n```\n\nObservation: 59 [q3]\n\n```sql\nSELECT 2\n```",
    f"我先查询一下:\n```sql\n{COUNT}\n```",
]
WORDS = [
    "There are 3 businesses [q1].",
    "Select a table first, please.",
    "```python\nprint(1)\n```",
    "有 3 家企业 [q1]。",
    json.dumps({"name": "Ada", "value": 3}),
]


def result(rows: list[Any], *, label: str = "q1", notes: list[str] | None = None, columns: str = "n") -> Message:
    data = {"query": label, "sql": COUNT, "columns": columns.split(), "rows": rows, "total": len(rows)}
    text = json.dumps({"ok": True, "data": {**data, "notes": notes or []}}, ensure_ascii=False)
    return Message("tool", text, tool_call_id="c", name="run_sql", id="r")


def error(message: str) -> Message:
    text = json.dumps({"ok": False, "error": {"type": "unknown_table", "message": message}})
    return Message("tool", text, tool_call_id="c", name="run_sql", id="r")


def made(sql: str = COUNT) -> Message:
    return Message("assistant", "", tool_calls=[tool_call("run_sql", {"sql": sql}, "c")], id="a")


ASKED = Message("user", "How many businesses are there?", id="u")


@pytest.mark.parametrize("reply", STATEMENTS)
def test_sql_in_any_form_is_run(reply: str) -> None:
    assert find_statement(reply) == COUNT
    parsed = parse_written(reply, (), ())
    assert isinstance(parsed, ActionCall)
    assert (parsed.action, parsed.args) == ("run_sql", {"sql": COUNT})


@pytest.mark.parametrize("reply", WORDS)
def test_words_without_sql_are_the_answer(reply: str) -> None:
    assert find_statement(reply) is None
    assert parse_written(reply, (), ()) == Finish("", reply)
    assert parse_answer(reply, ()) == Finish("", reply)


def test_thinking_before_a_statement_is_its_thought() -> None:
    parsed = parse_written(f"<think>They want a count.</think>\n```sql\n{COUNT}\n```", (), ())
    assert parsed == ActionCall("They want a count.", "run_sql", {"sql": COUNT})


LONE = [
    f"```sql\n{COUNT}\n```",
    f"```\n{COUNT}\n```",
    f"```sql\n{COUNT}",
    f"Here is the query:\n```sql\n{COUNT}\n```",
    f"SQL: {COUNT}",
    f"<sql>{COUNT}</sql>",
    COUNT,
    COUNT.replace("SELECT", "select"),
    f"-- all of them\n{COUNT};",
    f"WITH b AS (\n\n{COUNT}\n)\nSELECT * FROM b;\n-- all",
    json.dumps({"sql": COUNT}),
    f"```json\n{json.dumps({'query': COUNT})}\n```",
    json.dumps({"name": "run_sql", "arguments": {"sql": COUNT}}),
    f"<think>A count.</think>\n{COUNT}",
]


@pytest.mark.parametrize("reply", LONE)
def test_a_statement_instead_of_an_answer_is_run_and_the_same_one_is_asked_for_in_words(reply: str) -> None:
    parsed = parse_answer(reply, ())
    assert isinstance(parsed, ActionCall)
    assert parsed.action == "run_sql"
    assert statement_form(COUNT) in statement_form(parsed.args["sql"])
    assert parse_answer(reply, {statement_form(parsed.args["sql"])}) == Malformed("Answer in words, from the rows.")
    assert isinstance(parse_answer(reply, {statement_form(f"{COUNT} WHERE city = 'Rome'")}), ActionCall)


@pytest.mark.parametrize(
    "reply",
    [
        f"There are 3 [q1].\n\n```sql\n{COUNT}\n```",
        f"```sql\n{COUNT}\n```\n共有 3 家 [q1]",
        f"{COUNT};\n\n3 businesses [q1]",
        f"{COUNT};\nThere are 3 businesses",
        f"{COUNT} gave 3.",
        "With 3 businesses, Rome counts as the first (of two)",
        "Select the second one to see more",
    ],
)
def test_words_beside_a_statement_are_an_answer(reply: str) -> None:
    for ran in ((), {statement_form(COUNT)}):
        assert parse_answer(reply, ran) == Finish("", reply)


def test_an_empty_reply_is_no_answer() -> None:
    assert isinstance(parse_answer("  ", ()), Malformed)


@pytest.mark.parametrize("question", ["按月呢？", "By month?", "现在所有商品的库存加起来一共多少件？"])
def test_the_question_said_again_is_no_answer(question: str) -> None:
    for reply in (question, f"{question} [q3]", question.rstrip("？?").upper()):
        assert parse_answer(reply, (), (), question) == Malformed("Answer in words, from the rows.")
    assert parse_answer(f"{question} 3", (), (), question) == Finish("", f"{question} 3")
    assert parse_answer("3", (), (), question) == Finish("", "3")
    assert parse_answer(question, ()) == Finish("", question), "it goes back once"


def test_a_reply_that_could_not_be_read_is_followed_by_an_answering_again() -> None:
    call = tool_call("json_parse_error", {}, "m")
    unread = [
        Message("assistant", COUNT, tool_calls=[call], id="m"),
        Message("tool", '{"ok": false, "error": {"type": "json_parse_error"}}', tool_call_id="m", name=call["name"]),
    ]
    history = [ASKED, made(), result([[3]]), *unread, *unread]
    assert is_answering(history)
    assert place_of_answered(history) == 1
    assert not is_answering([ASKED, *unread])


def test_the_answer_follows_rows_and_an_empty_result_that_knows_better_goes_back_once() -> None:
    note = ["No business.city is 'rome'. The nearest values are: 'Rome'."]
    assert not is_answering([ASKED])
    assert not is_answering([ASKED, made(), error("There is no table busines.")])
    assert is_answering([ASKED, made(), result([[3]])])
    assert is_answering([ASKED, made(), result([])])
    assert not is_answering([ASKED, made(), result([], notes=note)])
    assert is_answering([ASKED, made(), result([], notes=note), made(), result([], notes=note)])
    shown = render_writing([ASKED, made(), result([], notes=note)])
    assert shown[-1].text == f"That gave no rows. {note[0]} Send the corrected SQL."


def test_a_history_is_shown_as_statements_tables_and_answers() -> None:
    history = [
        ASKED,
        made("SELECT count(*) FROM busines"),
        error("There is no table busines. Send the corrected SQL."),
        made(),
        result([["Rome", 3], ["奥斯陆", None], ["x" * 200, 1], ["Bern", 0]], columns="city n"),
        Message("assistant", "Rome has 3 [q1].", id="b"),
        Message("user", "and by city?", id="v"),
    ]
    shown = render_writing(history)
    assert [message.role for message in shown] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert shown[1].text == "```sql\nSELECT count(*) FROM busines\n```"
    assert shown[2].text == "That failed: There is no table busines. Send the corrected SQL."
    lines = shown[4].text.splitlines()
    assert lines[:4] == ["Result [q1], 3 of 4 rows:", "city | n", "Rome | 3", "奥斯陆 | NULL"]
    assert len(lines[4]) < 120
    assert shown == render_writing(history)


def test_messages_of_one_role_in_a_row_become_one() -> None:
    notes = Message("user", "# Business terms\n- revenue: total", id="n")
    shown = render_writing([ASKED, notes])
    assert [(message.role, message.text) for message in shown] == [("user", f"{ASKED.text}\n\n{notes.text}")]


def test_the_answering_sees_question_statement_and_rows_in_one_message() -> None:
    [shown] = render_answering([ASKED, made(), result([[3]], notes=["2 files were left out."])])
    assert shown.role == "user"
    assert shown.text == (
        f"{ASKED.text}\n\nSQL: {COUNT}\n\nResult [q1], 1 of 1 rows:\nn\n3\nNote: 2 files were left out."
    )


@pytest.mark.parametrize(
    ("question", "needs"),
    [
        ("How many orders were there this year?", True),
        ("Which users signed up in the last 6 months?", True),
        ("How old are the customers?", True),
        ("去年有多少订单？", True),
        ("最近三个月的收入", True),
        ("本月新增客户", True),
        ("Which users did not get a notification within the first year of signing up?", False),
        ("How many orders were there in 2024?", False),
        ("2024年有多少订单？", False),
        ("收入前五名的城市", False),
    ],
)
def test_the_day_is_told_where_a_question_depends_on_it(question: str, needs: bool) -> None:
    assert needs_today([Message("user", question), Message("assistant", "Yes, today.")]) is needs


def test_a_model_that_repeats_a_failed_statement_begins_again_at_its_question() -> None:
    again = json.dumps({"ok": False, "error": {"type": "sql_repeated", "message": "You sent this before."}})
    repeated = Message("tool", again, tool_call_id="c", name="run_sql", id="r")
    history = [
        ASKED,
        made(),
        error("There is no n. The nearest is m."),
        made("SELECT 2"),
        error("two"),
        made(),
        repeated,
    ]
    shown = [message.text for message in render_writing(history)]
    assert shown == [ASKED.text]
    goes_on = [message.text for message in render_writing([*history, made("SELECT 3"), error("three")])]
    assert [text for text in goes_on if "```" in text] == [
        f"```sql\n{sql}\n```" for sql in (COUNT, "SELECT 2", "SELECT 3")
    ]
    later = [*history, Message("user", "And now?", id="u"), made(), error("one")]
    assert sum(COUNT in message.text for message in render_writing(later)) == 2, "another question may fail alike"


@pytest.mark.parametrize(
    "message",
    [
        "Hello!",
        "thanks, that helps",
        "ok",
        "What can you do?",
        "Who are you?",
        "I want amounts in thousands of euros.",
        "Remember that I work in sales",
        "From now on answer in French, please.",
        "你好",
        "谢谢！",
        "你是谁？",
        "你能做什么？",
        "请记住我只看德国的数据",
        "以后金额都用万元",
        "请用中文回答",
        "我希望金额以万元显示",
    ],
)
def test_a_message_that_may_ask_for_no_data_may_be_answered_in_words(message: str) -> None:
    assert is_talk(message)
    told = sql_prompt(dialect="sqlite", schema="CREATE TABLE t (a);", today=None, answering=False, talks=True)
    assert told.endswith(OR_WORDS)


@pytest.mark.parametrize(
    "message",
    [
        "What is the total population in cities by country?",
        "top 5 customers by revenue",
        "and by country?",
        "only 2023",
        "How many users have no address?",
        "Great Britain: customers by city",
        "Show all orders of Helpful Ltd",
        "I want to know the revenue by year",
        "We need the number of orders for each city",
        "按城市统计订单数",
        "有多少位男性患者？",
        "好评最多的是哪些商品？",
        "不同城市有几家店？",
        "用户有多少？",
        "那么2023年呢",
        "我想知道每个城市的人口",
    ],
)
def test_a_question_about_data_is_answered_with_sql_alone(message: str) -> None:
    assert not is_talk(message)
    assert OR_WORDS not in sql_prompt(dialect="sqlite", schema="", today=None, answering=False)
