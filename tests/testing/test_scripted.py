from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.tools import tool

from longthread.testing import ScriptedChatModel, ScriptExhausted


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = {"thought": "sum them", "action": "add", "args": {"a": 1, "b": 2}}


def _gather(model: Any, question: str = "q") -> AIMessageChunk:
    chunks = list(model.stream(question))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert isinstance(total, AIMessageChunk)
    return total


def test_raw_text_comes_back_as_it_is() -> None:
    model = ScriptedChatModel(['{"thought": "half', "好"])
    assert model.invoke("q").content == '{"thought": "half'
    assert model.invoke("q").content == "好"
    assert model.used == 2


def test_an_object_is_json_text_without_tools_and_a_native_call_with_them() -> None:
    text = ScriptedChatModel([CALL]).invoke("q")
    assert json.loads(str(text.content)) == CALL
    assert text.tool_calls == []
    native = ScriptedChatModel([CALL]).bind_tools([add]).invoke("q")
    assert native.content == "sum them"
    assert [(call["name"], call["args"]) for call in native.tool_calls] == [("add", {"a": 1, "b": 2})]


def test_a_finish_is_json_text_without_tools_and_plain_text_with_them() -> None:
    finish = {"thought": "done", "finish": "3"}
    assert json.loads(str(ScriptedChatModel([finish]).invoke("q").content)) == finish
    assert ScriptedChatModel([finish]).bind_tools([add]).invoke("q").content == "3"


def test_a_list_makes_several_calls_with_different_ids() -> None:
    message = ScriptedChatModel([[CALL, CALL]]).bind_tools([add]).invoke("q")
    assert len({call["id"] for call in message.tool_calls}) == 2


def test_ids_repeat_for_the_same_history_and_differ_for_another() -> None:
    def identifier(question: str) -> str | None:
        return ScriptedChatModel([CALL]).bind_tools([add]).invoke(question).tool_calls[0]["id"]

    assert identifier("q") == identifier("q")
    assert identifier("q") != identifier("another")


def test_an_exception_is_raised_and_the_next_call_goes_on() -> None:
    model = ScriptedChatModel([TimeoutError("slow"), "ok"])
    with pytest.raises(TimeoutError, match="slow"):
        model.invoke("q")
    assert model.invoke("q").content == "ok"


def test_a_function_sees_the_messages() -> None:
    def echo(messages: list[BaseMessage]) -> str:
        return str(messages[-1].text).upper()

    once = ScriptedChatModel([echo])
    assert once.invoke("abc").content == "ABC"
    with pytest.raises(ScriptExhausted):
        once.invoke("abc")
    always = ScriptedChatModel(echo)
    assert [always.invoke(text).content for text in ("a", "b")] == ["A", "B"]


def test_a_script_that_runs_out_says_how_many_were_used() -> None:
    model = ScriptedChatModel(["one"])
    model.invoke("q")
    with pytest.raises(ScriptExhausted, match=r"has 1 replies, all used.*'again'"):
        model.invoke("again")
    with pytest.raises(ScriptExhausted, match="has 0 replies"):
        ScriptedChatModel([], loop=True).invoke("q")


def test_a_loop_begins_again() -> None:
    model = ScriptedChatModel(["a", "b"], loop=True)
    assert [model.invoke("q").content for _ in range(5)] == ["a", "b", "a", "b", "a"]


@pytest.mark.parametrize("reply", [{"thought": "no"}, [{"finish": "x"}], 3])
def test_what_is_no_reply_is_refused(reply: Any) -> None:
    with pytest.raises(TypeError):
        ScriptedChatModel([reply]).invoke("q")


def test_calls_record_copies_of_the_messages_and_the_tools() -> None:
    model = ScriptedChatModel(["a", "b"])
    question = HumanMessage("q")
    model.bind_tools([add]).invoke([question])
    question.content = "changed later"
    model.invoke("second", stop=["X"])
    first, second = model.calls
    assert first.messages[0].content == "q"
    assert first.tool_names == ["add"]
    assert (second.tool_names, second.options) == ([], {"stop": ["X"]})


@pytest.mark.parametrize("reply", ["", "a longer text in several pieces 中文", CALL, [CALL, CALL]])
def test_a_stream_adds_up_to_the_whole_reply(reply: Any) -> None:
    whole = ScriptedChatModel([reply]).bind_tools([add]).invoke("q")
    streamed = _gather(ScriptedChatModel([reply]).bind_tools([add]))
    assert streamed.content == whole.content
    assert streamed.tool_calls == whole.tool_calls
    assert streamed.usage_metadata == whole.usage_metadata


async def test_it_streams_in_pieces_on_the_event_loop_too() -> None:
    model = ScriptedChatModel(["a longer text in several pieces"])
    texts = [str(chunk.text) async for chunk in model.astream("q")]
    assert len([text for text in texts if text]) > 2
    assert "".join(texts) == "a longer text in several pieces"


def test_a_message_keeps_its_blocks_usage_and_metadata() -> None:
    message = AIMessage(
        content=[{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "v"}],
        additional_kwargs={"reasoning_content": "r"},
        response_metadata={"finish_reason": "stop"},
        usage_metadata={"input_tokens": 5, "output_tokens": 6, "total_tokens": 11},
    )
    for given in (ScriptedChatModel([message]).invoke("q"), _gather(ScriptedChatModel([message]))):
        assert given.content == message.content
        assert given.additional_kwargs == message.additional_kwargs
        assert given.usage_metadata == message.usage_metadata
        assert given.response_metadata["finish_reason"] == "stop"
    assert message.id is None


async def test_it_drives_an_agent() -> None:
    model = ScriptedChatModel([CALL, {"finish": "It is 3."}])
    result = await create_agent(model, [add]).ainvoke({"messages": [HumanMessage("1 + 2?")]})
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert result["messages"][2].content == "3"
    assert result["messages"][-1].content == "It is 3."
    assert len(model.calls[1].messages) == 3
