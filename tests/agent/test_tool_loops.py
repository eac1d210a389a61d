"""Loops of tool calls as providers want them back, through `MemoryMiddleware`, on both backends."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from tests.agent.test_middleware import Spy, agent_of, asked, on

from longthread.langgraph import LongthreadSaver


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
