from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longthread.llm.json_protocol import (
    OBSERVATION,
    RAW_LIMIT,
    ActionCall,
    Finish,
    Malformed,
    instructions,
    parse_error_observation,
    parse_reply,
    render,
)
from longthread.messages.message import Message
from longthread.tools.tool import Observation, Tool


async def _nothing(args: Mapping[str, Any]) -> Observation:
    return {"ok": True, "data": dict(args)}


RUN_SQL = Tool(
    "run_sql",
    "Run one\n  read-only query.",
    {
        "type": "object",
        "properties": {
            "sql": {"type": "string", "description": "One SELECT."},
            "mode": {"enum": ["rows", "count"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["sql"],
    },
    _nothing,
)
LIST_TABLES = Tool("list_tables", "List them.", {"type": "object", "properties": {}}, _nothing)
TOOLS = [RUN_SQL, LIST_TABLES]

CALL = ActionCall("why", "run_sql", {"sql": "SELECT 1"})
TEXT = '{"thought": "why", "action": "run_sql", "args": {"sql": "SELECT 1"}}'


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}```",
        f"Sure, I will look.\n\n```json\n{TEXT}\n```\nThen I will answer.",
        f"{TEXT}\nObservation: I wait.",
        f"{TEXT}\n{TEXT}",
        f"<think>I could {{'action'}} or {{\"action\": 1}}</think>\n{TEXT}",
        '{"thought": "why", "action": "run_sql", "args": {"sql": "SELECT 1",},}',
        '{"thought": "why", "action": " run_sql ", "args": "{\\"sql\\": \\"SELECT 1\\"}"}',
        '{"thought": "why", "action": "run_sql", "action_input": {"sql": "SELECT 1"}}',
        '{"thought": "why", "action": "run_sql", "arguments": {"sql": "SELECT 1"}, "finish": null}',
        '{"thought": "why", "action": "run_sql", "args": {"sql": "SELECT 1"}, "finish": ""}',
        f"{{{TEXT}}}",
    ],
)
def test_calls(text: str, strict: bool) -> None:
    assert parse_reply(text, strict=strict) == CALL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"action": "list_tables"}', ActionCall("", "list_tables", {})),
        ('{"action": "list_tables", "args": null}', ActionCall("", "list_tables", {})),
        ('First the tables. {"action": "list_tables"}', ActionCall("First the tables.", "list_tables", {})),
        ('<think>hm</think>{"action": "list_tables"}', ActionCall("hm", "list_tables", {})),
        ('{"thought": "t", "action": "x", "args": {"sql": "a\nb,}"}}', ActionCall("t", "x", {"sql": "a\nb,}"})),
        ('{"thought": ["a"], "action": "x"}', ActionCall('["a"]', "x", {})),
        ('{"thought": "t", "finish": "There are 59."}', Finish("t", "There are 59.")),
        ('{"thought": "t", "finish": "运载火箭有 3 种。", "action": null}', Finish("t", "运载火箭有 3 种。")),
        ('{"thought": "t", "action": "finish", "args": {"answer": "59"}}', Finish("t", "59")),
        ('{"thought": "t", "action": "Finish", "args": {"result": "59"}}', Finish("t", "59")),
        ('{"thought": "t", "action": "finish", "finish": "59"}', Finish("t", "59")),
        ('{"thought": "t", "action": "finish", "args": "59"}', Finish("t", "59")),
        ('{"thought": "t", "finish": true, "answer": "59"}', Finish("t", "59")),
        ('{"thought": "t", "finish": {"ok": true, "data": "59"}}', Finish("t", "59")),
        ('{"thought": "t", "finish": 0}', Finish("t", "0")),
        ('{"thought": "t", "finish": [{"n": 1}]}', Finish("t", '[{"n": 1}]')),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_lenient_forms(text: str, expected: object, strict: bool) -> None:
    assert parse_reply(text, strict=strict) == expected


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>still thinking", "Thinking"),
        ("<think>done</think>", "Thinking"),
        (TEXT[:-1], "not closed"),
        (TEXT[:-30], "not closed"),
        ("{", "not closed"),
        ('{"thought": "x", "args": {"action": "run_sql"}', "not closed"),
        (f"```json\n{TEXT[:-1]}\n```", "not closed"),
        ("{'thought': 'why', 'action': 'run_sql'}", "cannot be read"),
        ("{“thought”: “why”, “action”: “run_sql”}", "cannot be read"),
        ('{"thought": "t", "action" "run_sql"}', "cannot be read"),
        ('{"thought": "t", "action": "a", "action": "b"}', "appears twice"),
        ('{"thought": "t", "action": "a", "args": {"n": NaN}}', "NaN"),
        ('{"thought": "t", "action": "a", "args": {"n": 1e999}}', "too large"),
        ('{"thought": "t", "action": "a", "args": {"n": "\\ud800"}}', "surrogate"),
        ('{"thought": "t", "action": "a", "args": ' + "[" * 5000 + "]" * 5000 + "}", "too deeply"),
        ('{"thought": "t", "action": "a", "args": {"n": ' + "9" * 5000 + "}}", "integer"),
        ('{"thought": "t"}', "neither"),
        ('{"thought": "t", "finish": ""}', "empty"),
        ('{"thought": "t", "finish": true}', "empty"),
        ('{"thought": "t", "action": "finish", "args": {}}', "empty"),
        ('{"thought": "t", "action": ""}', "empty"),
        ('{"thought": "t", "action": 3}', "name of a tool"),
        ('{"thought": "t", "action": "a", "args": [1]}', "JSON object"),
        ('{"thought": "t", "action": "a", "args": "SELECT 1"}', "JSON object"),
        ('{"thought": "t", "action": "a", "finish": "b"}', "both"),
        ('{"name": "run_sql", "arguments": {"sql": "SELECT 1"}}', "expected form"),
        ('<tool_call>{"name": "run_sql"', "not closed"),
        ('"action": "run_sql", "args": {}', "expected form"),
    ],
)
def test_malformed(text: str, reason: str, strict: bool) -> None:
    reply = parse_reply(text, strict=strict)
    assert isinstance(reply, Malformed)
    assert reason in reply.reason


@pytest.mark.parametrize(
    "text",
    [
        "There are 59 customers.",
        "运载火箭有三种。",
        "The set {a, b} has 2 members, { and so on.",
        '{"Brazil": 5, "Canada": 8}',
        'The last event is {"id": 7, "action": "click"}.',
        "Take the action `finish` in the menu.",
        'An open one: {"a": 1',
    ],
)
def test_prose_is_an_answer_unless_json_was_asked_for(text: str) -> None:
    assert parse_reply(text, strict=False) == Finish("", text)
    assert not isinstance(parse_reply(text, strict=True), Finish)


def test_prose_after_thinking_is_the_answer() -> None:
    assert parse_reply("<think>\nhm\n</think>\n\nThere are 59.\n", strict=False) == Finish("hm", "There are 59.")


PIECES = [*'{}[]",:\\ \n`abn01', "action", '"finish":', '"thought":', '"args":', "<think>", "```json"]
JSONISH = st.lists(st.sampled_from(PIECES)).map("".join)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ARGS = st.dictionaries(st.text(), VALUES, max_size=5)
NAMES = st.from_regex(r"[a-z][a-z_]{0,20}", fullmatch=True).filter(lambda name: name != "finish")


@given(st.text() | JSONISH | st.text(alphabet=st.characters()), st.booleans())
@example('{"a":' * 100_000, True)
@example('{"thought": ' + "[" * 200_000, False)
@example('{"finish": ' + "[" * 100 + "]" * 100 + "}", False)
@example("\ud800", False)
def test_parsing_never_raises(text: str, strict: bool) -> None:
    assert isinstance(parse_reply(text, strict=strict), ActionCall | Finish | Malformed)


@pytest.mark.parametrize("piece", ['{"a":', "{", "{'", '{"', " ", "`", '{"a":1}', '{"a":"', ", ", "<think>", '\\"'])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    begin = time.process_time()
    parse_reply(text, strict=False)
    parse_reply(text, strict=True)
    assert time.process_time() - begin < 2


@given(st.text(), NAMES, ARGS, st.booleans())
def test_a_rendered_call_parses_back(thought: str, name: str, args: dict[str, Any], strict: bool) -> None:
    message = Message("assistant", thought, tool_calls=[{"name": name, "args": args, "id": "c1"}])
    [shown] = render([message])
    assert parse_reply(str(shown.text), strict=strict) == ActionCall(thought, name, args)


# The observation that follows a malformed reply.


def test_the_observation_quotes_explains_and_shows() -> None:
    observation = parse_error_observation("garbage", "It is not JSON.", TOOLS)
    error = observation["error"]
    assert observation["ok"] is False
    assert error["type"] == "json_parse_error"
    assert error["raw_response"] == "garbage"
    assert "It is not JSON." in error["message"]
    assert "run_sql, list_tables" in error["expected"]
    assert parse_reply(json.dumps(error["example"]), strict=True) == ActionCall(
        error["example"]["thought"], "list_tables", {}
    )


def test_the_example_fills_required_arguments() -> None:
    example_ = parse_error_observation("x", "y", [RUN_SQL])["error"]["example"]
    assert example_["action"] == "run_sql"
    assert example_["args"] == {"sql": "<sql>"}


def test_without_tools_the_example_is_an_answer() -> None:
    error = parse_error_observation("x", "y", [])["error"]
    assert isinstance(parse_reply(json.dumps(error["example"]), strict=True), Finish)
    assert "action" not in error["expected"]


@given(st.text(alphabet=st.characters()))
def test_any_reply_can_be_quoted_as_json(raw: str) -> None:
    json.dumps(parse_error_observation(raw, "reason", TOOLS), ensure_ascii=False).encode()


def test_a_long_reply_is_cut_and_says_so() -> None:
    raw = parse_error_observation("x" * 5_000, "reason", TOOLS)["error"]["raw_response"]
    assert raw == "x" * RAW_LIMIT + "… (5,000 characters)"


# Instructions.


def test_the_instructions_list_tools_and_parameters() -> None:
    text = instructions(TOOLS)
    assert "- `run_sql`: Run one read-only query.\n" in text
    assert "    - `sql` (string, required): One SELECT.\n" in text
    assert '    - `mode` (one of "rows", "count", optional)\n' in text
    assert "    - `limit` (integer or null, optional)\n" in text
    assert '"finish"' in text
    assert instructions(TOOLS) == text


def test_the_instructions_without_tools_speak_of_answers_alone() -> None:
    assert '"action"' not in instructions([])


# Rendering.


def _call(name: str, identifier: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": identifier}


def _texts(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_calls_and_results_become_text_and_the_rest_stays() -> None:
    system, question = Message("system", "s"), Message("user", "q")
    answer = Message("assistant", "There are 3.")
    shown = render(
        [
            system,
            question,
            Message("assistant", "why", tool_calls=[_call("list_tables", "1")]),
            Message("tool", '{"ok": true}', tool_call_id="1"),
            answer,
        ]
    )
    assert shown[0] is system
    assert shown[1] is question
    assert shown[4] is answer
    assert _texts(shown[2:4]) == [
        ("assistant", '{"thought": "why", "action": "list_tables", "args": {}}'),
        ("user", f'{OBSERVATION}{{"ok": true}}'),
    ]
    assert shown[3].additional_kwargs == {"longthread": {"kind": "observation"}}


def test_parallel_calls_are_shown_one_after_the_other_each_with_its_result() -> None:
    shown = render(
        [
            Message("user", "q"),
            Message("assistant", "both", tool_calls=[_call("a", "1"), _call("b", "2", n=1)]),
            Message("tool", "B", tool_call_id="2"),
            Message("tool", "A", tool_call_id="1"),
        ]
    )
    assert _texts(shown[1:]) == [
        ("assistant", '{"thought": "both", "action": "a", "args": {}}'),
        ("user", f"{OBSERVATION}A"),
        ("assistant", '{"thought": "", "action": "b", "args": {"n": 1}}'),
        ("user", f"{OBSERVATION}B"),
    ]


def test_several_results_of_one_call_share_a_message() -> None:
    shown = render(
        [
            Message("assistant", "", tool_calls=[_call("a", "1")]),
            Message("tool", "first", tool_call_id="1"),
            Message("tool", "stray", tool_call_id="9"),
        ]
    )
    assert _texts(shown)[1:] == [("user", f"{OBSERVATION}first\n{OBSERVATION}stray")]


def test_thinking_blocks_are_not_shown_as_text() -> None:
    content: list[str | dict[str, Any]] = [
        {"type": "thinking", "thinking": "secret", "signature": "s"},
        {"type": "text", "text": "visible"},
    ]
    [shown] = render([Message("assistant", content, tool_calls=[_call("a", "1")])])
    assert json.loads(str(shown.text)) == {"thought": "visible", "action": "a", "args": {}}


def test_rendering_changes_nothing_it_is_given_and_repeats_exactly() -> None:
    messages: list[Message] = [
        Message("assistant", "t", tool_calls=[_call("a", "1", text="中文")]),
        Message("tool", "r", tool_call_id="1"),
    ]
    before = copy.deepcopy(messages)
    assert _texts(render(messages)) == _texts(render(messages))
    assert messages == before
    assert "中文" in str(render(messages)[0].text)
