"""Thinking in the forms of providers: whole or not at all, and what is left is what they accept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_openai import ChatOpenAI

from longthread.context.window import ViewRequest, fit, item_of
from longthread.langgraph.memory.message_view import StateMessages, as_sent
from longthread.messages.langchain import from_langchain, to_langchain
from longthread.messages.message import without_thinking

RAW = '{"n": '


def seen(messages: Sequence[BaseMessage], budget: int) -> list[AnyMessage]:
    spots = StateMessages().spots(messages)
    return as_sent(fit(spots, ViewRequest(budget=budget)).messages, spots, messages)


def items(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """What OpenAI's client sends to its Responses."""
    model = ChatOpenAI(model="m", api_key=lambda: "k", use_responses_api=True)
    body: Any = model._get_request_payload(list(messages))
    return list(body["input"])


def refused(sent: Sequence[dict[str, Any]]) -> list[str]:
    """Items that OpenAI refuses: those that need the reasoning before them, and reasoning that lacks its item."""
    found, before = [], ""
    for item in sent:
        own = str(item.get("id") or "")
        if own[:3] in ("fc_", "msg", "ws_") and before[:3] not in ("rs_", "ws_"):
            found.append(own)
        if before.startswith("rs_") and not own:
            found.append(before)
        before = own
    return found


def reasoning(name: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": "gAAAA" * 100}


def turn(n: int, more: Sequence[dict[str, Any]] = ()) -> list[BaseMessage]:
    call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "read", "arguments": "{}"}
    said = {"type": "text", "text": f"answer {n}", "id": f"msg_{n}", "annotations": []}
    calls = [tool_call(name="read", args={}, id=f"c{n}")]
    return [
        HumanMessage(f"question {n} " + "words " * 200, id=f"h{n}"),
        AIMessage([reasoning(f"a{n}"), call], tool_calls=calls, id=f"a{n}"),
        ToolMessage("row\n" * 100, tool_call_id=f"c{n}", id=f"t{n}"),
        AIMessage([reasoning(f"b{n}"), *more, said], id=f"b{n}"),
    ]


@pytest.mark.parametrize("budget", [3_000, 6_000, 9_000, 50_000])
@pytest.mark.parametrize("hosted", [False, True])
def test_items_of_responses_go_with_their_reasoning_or_without_ids(budget: int, hosted: bool) -> None:
    search = [{"type": "web_search_call", "id": "ws_0", "status": "completed", "action": {"query": "q"}}]
    messages = [m for n in range(8) for m in turn(n, search if hosted else [])]
    sent = items(seen([*messages, HumanMessage("last", id="z")], budget))
    assert refused(sent) == []
    bare = [item for item in sent if item.get("type") == "function_call" and "id" not in item]
    assert bool(bare) == (budget < 9_000)
    assert any(item.get("type") == "reasoning" for item in sent)
    texts = [part["text"] for item in sent if item.get("role") == "assistant" for part in item["content"]]
    assert "answer 7" in texts


def test_a_view_that_shows_an_item_without_its_reasoning_is_seen_by_this_check() -> None:
    sent = items(turn(1))
    assert refused(sent) == []
    assert refused([item for item in sent if item.get("type") != "reasoning"]) == ["fc_1", "msg_1"]
    assert refused([sent[1], sent[3]]) == ["rs_a1"]


def test_a_call_of_responses_that_could_not_be_read_goes_with_its_reasoning() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": RAW}
    bad = invalid_tool_call(name="read", args=RAW, id="c", error="")
    reply = AIMessage([reasoning("1"), call], invalid_tool_calls=[bad], id="a")
    sent = items(seen([HumanMessage("q"), reply, HumanMessage("And?")], 20_000))
    assert refused(sent) == []
    assert [item.get("type") for item in sent] == ["message", "message", "message"]
    assert RAW in str(sent[1])


def test_the_older_form_of_responses_is_without_ids_too() -> None:
    kwargs = {"reasoning": reasoning("1"), "__openai_function_call_ids__": {"c": "fc_1"}}
    calls = [tool_call(name="read", args={}, id="c")]
    said = AIMessage([{"type": "text", "text": "so"}], tool_calls=calls, additional_kwargs=kwargs, id="msg_1")
    bare = without_thinking(from_langchain(said))
    assert (bare.additional_kwargs, bare.id, bare.tool_calls) == ({}, None, calls)
    assert refused(items([to_langchain(bare)])) == []
    assert said.id == "msg_1" and said.additional_kwargs == kwargs


def test_the_standard_form_is_without_the_ids_of_items_and_keeps_those_of_calls() -> None:
    call: Any = {"type": "tool_call", "id": "c", "name": "read", "args": {}, "extras": {"item_id": "fc_1", "x": 1}}
    said = AIMessage([{"type": "reasoning", "id": "rs_1", "reasoning": "hm"}, call, {"type": "text", "text": "so"}])
    assert without_thinking(from_langchain(said)).content == [
        {**call, "extras": {"x": 1}},
        {"type": "text", "text": "so"},
    ]


def test_ids_of_calls_stay_where_thinking_is_no_item() -> None:
    used = {"type": "tool_use", "id": "c", "name": "read", "input": {}}
    said = AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "so"}, used])
    assert without_thinking(from_langchain(said)).content == [{"type": "text", "text": "so"}, used]


@pytest.mark.parametrize(
    "said",
    [
        AIMessage([{"type": "thinking", "thinking": "word " * 4_000, "signature": "s"}], id="a"),
        AIMessage([{"type": "thinking", "thinking": "word " * 4_000}, {"type": "text", "text": " "}], id="a"),
        AIMessage("", additional_kwargs={"reasoning_content": "word " * 4_000}, id="a"),
    ],
)
def test_one_that_is_nothing_but_thinking_is_no_empty_message_without(said: AIMessage) -> None:
    assert item_of(from_langchain(said)).silent
    messages = [HumanMessage("why?", id="q"), said, *[HumanMessage(f"hello {n}", id=f"h{n}") for n in range(3)]]
    assert seen(messages, 20_000) == messages
    fitted = fit(StateMessages().spots(messages), ViewRequest(2_000))
    assert [message.text for message in fitted.messages] == ["why?", "hello 0", "hello 1", "hello 2"]
    assert [(s.first, s.last, s.how, s.why) for s in fitted.segments if s.how == "left out"] == [
        (2, 2, "left out", "budget")
    ]


def test_a_loop_of_calls_keeps_its_thinking_when_a_result_is_large() -> None:
    """DeepSeek wants `reasoning_content` back until the turn is over."""
    for kwargs, content in (
        ({"reasoning_content": "short thought"}, ""),
        ({}, [{"type": "thinking", "thinking": "hm", "signature": "s"}]),
    ):
        call = AIMessage(content, tool_calls=[tool_call(name="r", args={}, id="c")], additional_kwargs=kwargs, id="a")
        messages = [
            HumanMessage("q", id="q"),
            call,
            ToolMessage("row of the table\n" * 9_000, tool_call_id="c", id="t"),
        ]
        assert seen(messages, 20_000)[1] == call
