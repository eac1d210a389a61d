"""Loops of tool calls as providers want them back, through `MemoryMiddleware`, on both backends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_openai import ChatOpenAI
from tests.agent.test_middleware import Spy, agent_of, asked, on

from longthread.langgraph import LongthreadSaver, MemoryMiddleware
from longthread.testing import ProviderEmulator
from longthread.testing.emulator.faults import broken_call


def read(n: int) -> str:
    """Reads a row."""
    return f"row {n} of the table with words\n" * 60


def call(n: int, call_id: str) -> dict[str, Any]:
    return {"name": "read", "args": {"n": n}, "id": call_id, "type": "tool_call"}


async def test_no_call_of_a_turn_that_goes_on_comes_without_its_thinking(store_address: str) -> None:
    count = 0

    def reply(messages: list[BaseMessage]) -> AIMessage:
        nonlocal count
        count += 1
        if count % 20 == 0:
            return AIMessage("Done.")
        thought = {"type": "thinking", "thinking": f"I look at row {count}.", "signature": f"s{count}"}
        used = {"type": "tool_use", "id": f"c{count}", "name": "read", "input": {"n": count}}
        return AIMessage([thought, {"type": "text", "text": "Next."}, used], tool_calls=[call(count, f"c{count}")])

    spy = Spy(window=16_000)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, reply, read, spy=spy, memory_enable_summary=False)
        for n in range(3):
            await agent.ainvoke(asked(f"question {n}"), {**on(), "recursion_limit": 100})
    assert spy.over == [] and spy.watch.orphans == 0
    assert len(spy.views) == 60
    without = 0
    for view in spy.views:
        last = max(n for n, message in enumerate(view) if message.type == "human")
        replies = [message for message in view if isinstance(message, AIMessage)]
        own = [message for message in view[last:] if isinstance(message, AIMessage)]
        assert [message for message in own if "thinking" not in str(message.content)] == []
        without += any("thinking" not in str(message.content) for message in replies)
    assert without, "there was no room for all of it"


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("a", "b", "a")])
async def test_calls_with_one_id_or_none_are_answered_and_the_agent_goes_on(store_address: str, ids: list[str]) -> None:
    def reply(messages: list[BaseMessage]) -> Any:
        if isinstance(messages[-1], ToolMessage):
            return "Done."
        return AIMessage("", tool_calls=[call(n, each) for n, each in enumerate(ids)])

    spy = Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, reply, read, spy=spy)
        for _ in range(2):
            state = await agent.ainvoke(asked("Read it"), {**on(), "recursion_limit": 12})
            assert state["messages"][-1].text == "Done."
    assert [message.type for message in spy.views[1]] == ["human", "ai", *["tool"] * len(ids)]
    assert spy.over == [] and spy.watch.orphans == 0


async def test_a_call_that_could_not_be_read_does_not_break_the_thread(store_address: str) -> None:
    with ProviderEmulator([broken_call("read", '{"n": '), "Fine.", "Still fine."]) as provider:
        model = ChatOpenAI(model="emulated", base_url=provider.base_url, api_key=lambda: "k")
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            memory = MemoryMiddleware(saver, memory_context_window=8_000, memory_enable_summary=False)
            agent = create_agent(model, [read], checkpointer=saver, middleware=[memory])
            for question in ("Read row 1", "And now?", "Still there?"):
                state = await agent.ainvoke(asked(question), on())
    assert state["messages"][-1].text == "Still fine."
    sent = [request.body["messages"] for request in provider.requests]
    # LangChain gives the call a result that says so, before the next question.
    assert [each["role"] for each in sent[1]] == ["user", "assistant", "tool", "user"]
    assert "malformed" in sent[1][2]["content"]
    [broken] = sent[1][1]["tool_calls"]
    assert json.loads(broken["function"]["arguments"]) == {"unread": '{"n": '}
    assert sent[2][:4] == sent[1], "the prompt begins with the one before"
    assert [each["role"] for each in sent[2][4:]] == ["assistant", "user"]
