"""Calls that could not be read: on the wire they are no calls, or have their results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_openai import ChatOpenAI

from longthread.context.window import ViewRequest, fit, item_of
from longthread.langgraph.memory.message_view import StateMessages, as_sent
from longthread.messages.langchain import from_langchain
from longthread.messages.message import readable
from longthread_evals.view_watch import orphans

BROKEN = '{"path": "/a'


def broken(call_id: str | None = "x", name: str | None = "read") -> Any:
    return invalid_tool_call(name=name, args=BROKEN, id=call_id, error="no JSON")


def seen(*messages: BaseMessage, budget: int = 20_000) -> list[Any]:
    spots = StateMessages().spots(messages)
    return list(as_sent(fit(spots, ViewRequest(budget=budget)).messages, spots, messages))


def wire(messages: list[Any]) -> list[dict[str, Any]]:
    """What OpenAI's client sends."""
    body: Any = ChatOpenAI(model="m", api_key=lambda: "k")._get_request_payload(messages)
    return list(body["messages"])


def test_a_message_without_such_calls_is_the_same() -> None:
    for message in (HumanMessage("q"), AIMessage("a", tool_calls=[tool_call(name="t", args={}, id="c")])):
        ours = from_langchain(message)
        assert readable(ours) is ours


@pytest.mark.parametrize("results", [["x"], ["x", "x"], ["c", "x"], ["c"]])
def test_as_many_of_them_are_calls_as_have_results(results: list[str]) -> None:
    calls = [tool_call(name="read", args={}, id="c")] if "c" in results else []
    reply = AIMessage("", tool_calls=calls, invalid_tool_calls=[broken(), broken()], id="a")
    view = seen(HumanMessage("q"), reply, *[ToolMessage("said", tool_call_id=each) for each in results])
    assert orphans(view) == 0
    assert [call["id"] for call in view[1].tool_calls] == sorted(results)
    assert view[1].text.count(BROKEN) == 2 - results.count("x")
    assert len(view) == 2 + len(results)


@pytest.mark.parametrize("call_id", ["x", "", None])
@pytest.mark.parametrize("text", ["", "Let me see."])
def test_a_call_that_could_not_be_read_is_text_and_no_orphan(call_id: str | None, text: str) -> None:
    reply = AIMessage(text, invalid_tool_calls=[broken(call_id)], id="a")
    reply.additional_kwargs["tool_calls"] = [{"id": call_id, "function": {"name": "read", "arguments": BROKEN}}]
    assert orphans([reply]) == 1
    view = seen(HumanMessage("q"), reply, HumanMessage("And?"))
    assert orphans(view) == 0
    assert [message.type for message in view] == ["human", "ai", "human"]
    assert BROKEN in view[1].text and view[1].text.startswith(text)
    sent = wire(view)
    assert sent[1] == {"role": "assistant", "content": view[1].text}
    assert seen(HumanMessage("q"), reply, HumanMessage("And?"), AIMessage("So."), HumanMessage("Or?"))[:3] == view


def test_calls_beside_it_that_were_read_stay_as_they_are() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    good = {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "/b"}}
    bad = {"type": "tool_use", "id": "x", "name": "read", "input": {}, "partial_json": BROKEN}
    calls = [tool_call(name="read", args={"path": "/b"}, id="c")]
    reply = AIMessage([thought, bad, good], tool_calls=calls, invalid_tool_calls=[broken()], id="a")
    view = seen(HumanMessage("q"), reply, ToolMessage("text", tool_call_id="c"))
    assert orphans(view) == 0
    assert view[1].tool_calls == calls
    content = view[1].content
    assert [block["type"] for block in content] == ["thinking", "text", "tool_use"]
    assert (content[0], content[2]) == (thought, good)
    assert BROKEN in content[1]["text"]
    assert reply.invalid_tool_calls and len(reply.content) == 3, "the log's message is not touched"


def test_a_result_that_there_is_for_it_stays_with_it() -> None:
    """As of a middleware that tells the model what was wrong."""
    reply = AIMessage("Let me see.", invalid_tool_calls=[broken(), broken("y")], id="a")
    said = ToolMessage("That was no JSON.", tool_call_id="x")
    view = seen(HumanMessage("q"), reply, said)
    assert orphans(view) == 0
    assert [message.type for message in view] == ["human", "ai", "tool"]
    assert view[1].text.count(BROKEN) == 1
    sent = wire(view)
    [call] = sent[1]["tool_calls"]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("x", {"unread": BROKEN})


def test_what_it_costs_is_what_is_sent() -> None:
    reply = AIMessage("", invalid_tool_calls=[invalid_tool_call(name="w", args="word " * 900, id="x", error="")])
    assert 800 < item_of(from_langchain(reply)).tokens < 1_000
    assert item_of(from_langchain(reply)).calls == ()
    assert item_of(readable(from_langchain(reply))).tokens == item_of(from_langchain(reply)).tokens
    view = seen(HumanMessage("q"), reply, HumanMessage("And?"), budget=500)
    assert sum(item_of(from_langchain(message)).tokens for message in view) <= 500
    assert orphans(view) == 0
