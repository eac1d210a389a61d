"""Calls in the forms in which models write them into text, and statements that were to be run."""

from __future__ import annotations

from typing import Any

import pytest
from tests.llm.test_json_protocol import LIST_TABLES, RUN_SQL

from longthread.llm.json_protocol import ActionCall, Finish, Malformed, parse_reply
from longthread.llm.reply_text import was_tried
from longthread.model.run import statement_form
from longthread.tools.tool import Tool

SQL = "SELECT name\nFROM t WHERE a < 5 AND b = 'x'"
ARGS = '{"sql": "SELECT name\\nFROM t WHERE a < 5 AND b = \'x\'"}'
INVOKE = f'<invoke name="run_sql">\n<parameter name="sql">{SQL}</parameter>\n</invoke>'
COUNT = Tool("count", "Counts.", {"type": "object", "properties": {"n": {"type": "integer"}}}, RUN_SQL.call)
TOOLS = [RUN_SQL, LIST_TABLES, COUNT]


def parsed(text: str, *, strict: bool = False, ran: tuple[str, ...] = ()) -> Any:
    return parse_reply(text, strict=strict, tools=TOOLS, ran={statement_form(sql) for sql in ran})


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        f'<tool_call>\n{{"name": "run_sql", "arguments": {ARGS}}}\n</tool_call>',
        f'<tool_call>{{"name": "run_sql", "arguments": {ARGS}}}',
        f'{{"name": "run_sql", "arguments": {ARGS}}}',
        f'```json\n{{"name": "run_sql", "parameters": {ARGS}}}\n```',
        f'{{"tool": "run_sql", "args": {ARGS}}}',
        f'{{"tool_name": "run_sql", "tool_input": {ARGS}}}',
        f'{{"action": "run_sql", "action_input": {ARGS}}}',
        f'{{"type": "function", "function": {{"name": "run_sql", "arguments": {ARGS}}}}}',
        f'{{"function_call": {{"name": "run_sql", "arguments": {ARGS}}}}}',
        f'{{"tool_calls": [{{"id": "1", "function": {{"name": "run_sql", "arguments": {ARGS}}}}}]}}',
        f'{{"recipient_name": "functions.run_sql", "parameters": {ARGS}}}',
        f'{{"action": "run_sql", {ARGS[1:]}',
        f'[{{"name": "run_sql", "arguments": {ARGS}}}]',
        f'[TOOL_CALLS] [{{"name": "run_sql", "arguments": {ARGS}}}]',
        f"[TOOL_CALLS]run_sql{ARGS}",
        f"[TOOL_CALLS]run_sql[ARGS]{ARGS}",
        f'<|python_tag|>{{"name": "run_sql", "parameters": {ARGS}}}',
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "run_sql", "parameters": {ARGS}}}]<|END_ACTION|>',
        f"<function=run_sql>{ARGS}</function>",
        f"<function=run_sql>\n<parameter=sql>\n{SQL}\n</parameter>\n</function>",
        f"<tool_call>\n<function=run_sql>\n<parameter=sql>\n{SQL}\n</parameter>\n</function>\n</tool_call>",
        f"<function_calls>\n{INVOKE}\n</function_calls>",
        f"<minimax:tool_call>{INVOKE}</minimax:tool_call>",
        INVOKE.replace("</", "</｜DSML｜").replace("<i", "<｜DSML｜i").replace("<p", "<｜DSML｜p"),
        f"<tool_call>run_sql\n<arg_key>sql</arg_key>\n<arg_value>{SQL}</arg_value>\n</tool_call>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run_sql\n"
        f"```json\n{ARGS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run_sql<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.run_sql:0<|tool_call_argument_begin|>"
        f"{ARGS}<|tool_call_end|><|tool_calls_section_end|>",
        f"<|channel|>commentary to=functions.run_sql <|constrain|>json<|message|>{ARGS}<|call|>",
        f"<|start|>assistant to=functions.run_sql<|channel|>commentary json<|message|>{ARGS}",
        f"assistantcommentary to=functions.run_sql json{ARGS}",
        f">>>run_sql\n{ARGS}",
        f"<run_sql>\n<sql>{SQL}</sql>\n</run_sql>",
        f'[run_sql(sql="""{SQL}""")]',
        f'```tool_code\nprint(default_api.run_sql(sql="""{SQL}"""))\n```',
        f"Action: run_sql\nAction Input: {ARGS}",
        f"Action: run_sql\nAction Input: {ARGS}\nObservation: 5 rows\nThought: I know.\nFinal Answer: 5",
        f"**Action:** run_sql\n**Action Input:** ```sql\n{SQL}\n```",
        f'Action: run_sql\nAction Input: "{SQL}"',
        f"Action: run_sql\nAction Input: sql: {SQL}\nObservation",
        f'Action:\n```json\n{{"action": "run_sql", "action_input": {ARGS}}}\n```',
        f"行动：run_sql\n行动输入：{ARGS}",
        f"<think>hm</think><tool_call>{{\"name\": \"run_sql\", \"arguments\": {ARGS}}}</tool_call>",
        f"```sql\n{SQL}\n```",
        f"```\n{SQL}\n```",
        f"`{' '.join(SQL.split())}`",
        f'"{SQL}"',
        f"“{SQL}”",
        SQL,
        f"SQLQuery: {SQL}",
        f"<sql>{SQL}</sql>",
        ARGS,
        ARGS.replace('"sql"', '"query"'),
        f"```json\n{ARGS}\n```",
        f'{{"sql": "```sql\\n{ARGS[9:-2]}\\n```"}}',
        f"I will look that up:\n\n```sql\n{SQL}\n```",
        f"我来查询一下：\n```sql\n{SQL}\n```",
    ],
)  # fmt: skip
def test_forms_of_calls(text: str, strict: bool) -> None:
    reply = parsed(text, strict=strict)
    assert isinstance(reply, ActionCall), reply
    assert (reply.action, statement_form(reply.args["sql"])) == ("run_sql", statement_form(SQL))


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Thought: First.\nAction: list_tables\nAction Input: None", ("First.", "list_tables", {})),
        ("思考：先看表。\n行动：list_tables", ("先看表。", "list_tables", {})),
        ("Let me see.\n<tool_call>\n{\"name\": \"list_tables\"}\n</tool_call>", ("Let me see.", "list_tables", {})),
        ("<invoke name=\"count\"><parameter name=\"n\">5</parameter></invoke>", ("", "count", {"n": 5})),
        ("<function=drop></function>", ("", "drop", {})),
        ("Action: drop\nAction Input: {\"a\": 1}", ("", "drop", {"a": 1})),
        ("[count(n=5)]", ("", "count", {"n": 5})),
        ("hm</think>[TOOL_CALLS]count{\"n\": 5}", ("hm", "count", {"n": 5})),
    ],
)  # fmt: skip
@pytest.mark.parametrize("strict", [True, False])
def test_thoughts_and_arguments_of_them(text: str, call: tuple[str, str, dict[str, Any]], strict: bool) -> None:
    assert parsed(text, strict=strict) == ActionCall(*call)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "<function=run_sql><parameter=sql>SELECT 1",
        '<invoke name="run_sql"><parameter name="sql">SELECT',
        "<tool_call>run_sql\n<arg_key>sql</arg_key>\n<arg_value>SELECT",
        '<｜tool▁call▁begin｜>run_sql<｜tool▁sep｜>{"sql": "SELECT',
        '[TOOL_CALLS]run_sql{"sql": "SELECT',
        "<tool_call>run it</tool_call>",
        "<|tool_calls_section_begin|>",
        'Action: run_sql\nAction Input: {"sql": "SELECT',
        '[run_sql(sql="SELECT 1]',
        "Thought: I should look at the tables.",
        "<think>hm</think>",
    ],
)  # fmt: skip
def test_calls_that_cannot_be_read_are_no_answers(text: str, strict: bool) -> None:
    assert isinstance(parsed(text, strict=strict), Malformed)


@pytest.mark.parametrize("strict", [True, False])
def test_the_first_call_counts_though_the_second_cannot_be_read(strict: bool) -> None:
    text = (
        f'<tool_call>{{"name": "run_sql", "arguments": {ARGS}}}</tool_call><tool_call>{{"name": "count"}}</tool_call>'
    )
    reply = parsed(text, strict=strict)
    assert isinstance(reply, ActionCall) and reply.action == "run_sql"


@pytest.mark.parametrize(
    "text",
    [
        f"There are 5 of them. I asked:\n\n```sql\n{SQL}\n```",
        f"```sql\n{SQL}\n```\n\nThis counts each name once.",
        f"The query is below:\n```sql\n{SQL}\n```\nand so on:\n```sql\nSELECT 2\n```",
        "Select the name that you like from the list, please.\n\nThen press enter.",
        "With 5 orders, Ann leads.",
        "SELECT statements are the only ones I can run; I cannot delete rows.",
        'They are {"name": "count", "value": 0.93} and {"name": "precision", "value": 0.9}.',
        '[{"name": "count", "value": 0.93}, {"name": "sum", "value": 0.9}]',
        'The tool "<tool_call>" is written so.',
        "Use `<function=run_sql>` for that.",
        'He said "we need to select more".',
        "```python\nprint(1)\n```",
        "Action: call the customer again.",
        'The last event is {"name": "run", "parameters": {"a": 1}}.',
        "I used run_sql(sql) to find 5.",
        "The old price was <s>5</s>",
        "```json\n{\"name\": \"Ann\", \"age\": 5}\n```",
    ],
)  # fmt: skip
def test_answers_stay_answers(text: str) -> None:
    assert parsed(text) == Finish("", text.strip())


def test_a_statement_that_was_run_is_shown() -> None:
    fence = f"```sql\n{SQL};\n```"
    assert parsed(fence, ran=(SQL,)) == Finish("", fence)
    assert isinstance(parsed(fence, ran=("SELECT 1",)), ActionCall)
    assert parse_reply(fence, strict=False, tools=[LIST_TABLES]) == Finish("", fence)


def test_a_statement_that_cannot_be_run_is_sent_once() -> None:
    assert was_tried("SELECT 1", ok=True)
    assert not was_tried("SELECT nothing FROM nowhere", ok=False)
    assert was_tried(" DELETE FROM t WHERE a = 5", ok=False)


def test_the_final_answer_of_react() -> None:
    assert parsed("Thought: I know.\nFinal Answer: There are 5.") == Finish("I know.", "There are 5.")
    assert parsed("Final Answer: There are 5.") == Finish("", "There are 5.")
    assert parsed("思考：知道了。\n最终答案：共 5 个。") == Finish("知道了。", "共 5 个。")
    assert parsed('{"action": "Final Answer", "action_input": "There are 5."}') == Finish("", "There are 5.")
    assert parsed('{"finish": "<think>hm</think>There are 5."}', strict=True) == Finish("hm", "There are 5.")
