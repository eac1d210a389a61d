"""The chat model: native tool calls, JSON in text, streaming, ids and usage."""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from longthread.demo.chat import DemoChatModel

TOOLS = [{"type": "function", "function": {"name": "list_tables", "description": "", "parameters": {"type": "object"}}}]
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
SYSTEM = SystemMessage(f"```json longthread-knowledge\n{json.dumps(FACTS)}\n```")
ROWS = {"ok": True, "data": {"sql": "SELECT 1", "columns": ["n"], "rows": [[3]], "row_count": 1, "query": "q1"}}


def test_with_bound_tools_it_calls_them() -> None:
    reply = DemoChatModel().bind_tools(TOOLS).invoke([HumanMessage("How many pets?")])
    assert [call["name"] for call in reply.tool_calls] == ["list_tables"]
    assert reply.response_metadata["finish_reason"] == "tool_calls"
    assert reply.usage_metadata is not None and reply.usage_metadata["total_tokens"] > 0


def test_a_native_conversation_ends_in_an_answer_with_the_query_cited() -> None:
    model = DemoChatModel().bind_tools(TOOLS)
    messages = [SYSTEM, HumanMessage("How many pets are there?")]
    call = model.invoke(messages)
    assert call.tool_calls[0]["name"] == "run_sql"
    answer = model.invoke([*messages, call, ToolMessage(json.dumps(ROWS), tool_call_id=call.tool_calls[0]["id"])])
    assert not answer.tool_calls
    assert "**3** [q1]" in answer.text


def test_without_tools_it_speaks_json_and_reads_observations() -> None:
    model = DemoChatModel()
    messages = [SYSTEM, HumanMessage("How many pets are there?")]
    reply = model.invoke(messages)
    action = json.loads(reply.text)
    assert action["action"] == "run_sql" and "COUNT(*)" in action["args"]["sql"]
    seen = HumanMessage("Observation: " + json.dumps(ROWS))
    finish = json.loads(model.invoke([*messages, reply, seen]).text)
    assert "**3** [q1]" in finish["finish"]


def test_an_observation_marked_by_the_run_loop_is_no_question() -> None:
    model = DemoChatModel()
    messages = [SYSTEM, HumanMessage("How many pets are there?")]
    reply = model.invoke(messages)
    marked = HumanMessage(json.dumps(ROWS), additional_kwargs={"longthread": {"kind": "observation"}})
    assert "finish" in json.loads(model.invoke([*messages, reply, marked]).text)


def test_a_second_question_in_json_mode_knows_the_first() -> None:
    model = DemoChatModel()
    messages = [
        SYSTEM,
        HumanMessage("How many pets are there?"),
        AIMessage(json.dumps({"thought": "", "finish": "3"})),
        HumanMessage("and list them"),
    ]
    action = json.loads(model.invoke(messages).text)
    assert "FROM pets" in action["args"]["sql"] and "COUNT" not in action["args"]["sql"]


def test_call_ids_repeat_for_the_same_state_and_differ_between_states() -> None:
    model = DemoChatModel().bind_tools(TOOLS)
    first = [SYSTEM, HumanMessage("How many pets are there?")]
    one, again = model.invoke(first), model.invoke(first)
    later = [*first, one, ToolMessage(json.dumps(ROWS), tool_call_id=one.tool_calls[0]["id"]), AIMessage("3")]
    other = model.invoke([*later, HumanMessage("How many pets are there?")])
    assert one.tool_calls[0]["id"] == again.tool_calls[0]["id"] != other.tool_calls[0]["id"]


async def test_streaming_gives_the_same_message_in_pieces() -> None:
    model = DemoChatModel().bind_tools(TOOLS)
    messages = [SYSTEM, HumanMessage("what tables are there?")]
    whole = model.invoke(messages)
    chunks = [chunk async for chunk in model.astream(messages)]
    assert len([chunk for chunk in chunks if chunk.text]) > 2
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert total.text == whole.text
    assert total.usage_metadata == whole.usage_metadata


def test_streaming_a_tool_call_gives_the_call() -> None:
    model = DemoChatModel().bind_tools(TOOLS)
    total = None
    for chunk in model.stream([HumanMessage("How many pets?")]):
        total = chunk if total is None else total + chunk
    assert total is not None and [call["name"] for call in total.tool_calls] == ["list_tables"]


def test_the_window_is_said_to_be_large() -> None:
    assert DemoChatModel().profile == {"max_input_tokens": 1_000_000, "tool_calling": True}
