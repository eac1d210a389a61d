"""The chat model: native tool calls, JSON in text, streaming, ids and usage."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from longthread.messages.message import Message
from longthread.tools.tool import Tool
from longthread_demo.chat import DemoModel, reply_to


async def _call(args: Any) -> dict[str, Any]:
    return {"ok": True}


TOOLS = [Tool("list_tables", "", {"type": "object"}, _call)]
FACTS = {
    "source": "s",
    "dialect": "sqlite",
    "tables": ["pets"],
    "schemas": {
        "pets": {
            "table_name": "pets",
            "rows": 3,
            "primary_key": ["id"],
            "columns": [
                {"name": "id", "type": "INTEGER", "primary_key": True},
                {"name": "name", "type": "TEXT", "values": ["Rex"]},
            ],
        }
    },
}
SYSTEM = Message("system", f"```json longthread-knowledge\n{json.dumps(FACTS)}\n```")
ROWS = {"ok": True, "data": {"sql": "SELECT 1", "columns": ["n"], "rows": [[3]], "row_count": 1, "query": "q1"}}


def test_with_bound_tools_it_calls_them() -> None:
    reply = reply_to([Message("user", "How many pets?")], TOOLS)
    assert [call["name"] for call in reply.tool_calls] == ["list_tables"]
    assert reply.response_metadata["finish_reason"] == "tool_calls"
    assert reply.usage_metadata is not None and reply.usage_metadata["total_tokens"] > 0


def test_a_native_conversation_ends_in_an_answer_with_the_query_cited() -> None:
    messages = [SYSTEM, Message("user", "How many pets are there?")]
    call = reply_to(messages, TOOLS)
    assert call.tool_calls[0]["name"] == "run_sql"
    result = Message("tool", json.dumps(ROWS), tool_call_id=call.tool_calls[0]["id"])
    answer = reply_to([*messages, call, result], TOOLS)
    assert not answer.tool_calls
    assert answer.text.startswith("There are **3** pets [q1].")


def test_without_tools_it_speaks_json_and_reads_observations() -> None:
    messages = [SYSTEM, Message("user", "How many pets are there?")]
    reply = reply_to(messages)
    action = json.loads(reply.text)
    assert action["action"] == "run_sql" and "COUNT(*)" in action["args"]["sql"]
    seen = Message("user", "Observation: " + json.dumps(ROWS))
    finish = json.loads(reply_to([*messages, reply, seen]).text)
    assert finish["finish"].startswith("There are **3** pets [q1].")


def test_an_observation_marked_by_the_run_loop_is_no_question() -> None:
    messages = [SYSTEM, Message("user", "How many pets are there?")]
    reply = reply_to(messages)
    marked = Message("user", json.dumps(ROWS), additional_kwargs={"longthread": {"kind": "observation"}})
    assert "finish" in json.loads(reply_to([*messages, reply, marked]).text)


def test_a_second_question_in_json_mode_knows_the_first() -> None:
    messages = [
        SYSTEM,
        Message("user", "How many pets are there?"),
        Message("assistant", json.dumps({"thought": "", "finish": "3"})),
        Message("user", "and list them"),
    ]
    action = json.loads(reply_to(messages).text)
    assert 'FROM "pets"' in action["args"]["sql"] and "COUNT" not in action["args"]["sql"]


def test_call_ids_repeat_for_the_same_state_and_differ_between_states() -> None:
    first = [SYSTEM, Message("user", "How many pets are there?")]
    one, again = reply_to(first, TOOLS), reply_to(first, TOOLS)
    later = [
        *first,
        one,
        Message("tool", json.dumps(ROWS), tool_call_id=one.tool_calls[0]["id"]),
        Message("assistant", "3"),
    ]
    other = reply_to([*later, Message("user", "How many pets are there?")], TOOLS)
    assert one.tool_calls[0]["id"] == again.tool_calls[0]["id"] != other.tool_calls[0]["id"]


async def test_streaming_gives_the_same_message_in_pieces() -> None:
    messages = [SYSTEM, Message("user", "what tables are there?")]
    *pieces, last = [chunk async for chunk in DemoModel().stream(messages, TOOLS)]
    assert len([chunk for chunk in pieces if chunk.text]) > 2
    assert last.message == reply_to(messages, TOOLS)
    assert "".join(chunk.text for chunk in pieces) == last.message.text


async def test_it_thinks_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    on: list[threading.Thread] = []

    def reply(*given: Any) -> Message:
        on.append(threading.current_thread())
        return reply_to(*given)

    monkeypatch.setattr("longthread_demo.chat.reply_to", reply)
    assert [chunk async for chunk in DemoModel().stream([SYSTEM, Message("user", "what tables are there?")], TOOLS)]
    [thread] = on
    assert thread is not threading.main_thread()


def test_the_window_is_said_to_be_large() -> None:
    assert (DemoModel.window, DemoModel.tool_calling) == (1_000_000, True)
