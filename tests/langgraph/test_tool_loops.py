"""Loops of tool calls as providers want them back, through `MemoryMiddleware`, on both backends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_openai import ChatOpenAI
from tests.langgraph.test_middleware import Spy, agent_of, asked, on

from longthread.langgraph import LongthreadSaver, MemoryMiddleware
from longthread.langgraph.memory.message_view import LastView, last_view
from longthread.testing import ProviderEmulator, ScriptedChatModel
from longthread_testing.emulator.faults import broken_call

pytestmark = pytest.mark.one_backend


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


async def last_of(saver: LongthreadSaver) -> LastView:
    found = await last_view(saver.backing.store, "t", user_id=saver.backing.user_id)
    assert found is not None
    return found


def broken(call_id: str) -> Any:
    return invalid_tool_call(name="read", args='{"n": ', id=call_id, error="")


async def test_the_last_view_tells_a_call_that_could_not_be_read_as_the_model_got_it(store_address: str) -> None:
    reply = AIMessage("Let me see.", tool_calls=[call(1, "c")], invalid_tool_calls=[broken("x")])
    spy = Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, ScriptedChatModel([reply, "Fine.", "Still fine."]), read, spy=spy)
        for question in ("Read them", "And now?"):
            await agent.ainvoke(asked(question), on())
        told = await last_of(saver)
    assert [each["id"] for each in getattr(spy.views[-1][1], "tool_calls", [])] == ["c", "x"]
    shown = [entry for entry in told.entries if entry.how != "summary"]
    assert [entry.text for entry in shown] == [message.text for message in spy.views[-1]]
    assert shown[1].text == "Let me see."


async def test_a_result_that_comes_late_is_shown(store_address: str) -> None:
    spy = Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, lambda _: "Fine.", read, spy=spy)
        await agent.ainvoke(asked("One"), on())
        # The run was broken off after its call, and the user goes on.
        made = [HumanMessage("Two"), AIMessage("", tool_calls=[call(1, "c")])]
        await agent.aupdate_state(on(), {"messages": made}, as_node="model")
        await agent.ainvoke(asked("Three"), on())
        await agent.aupdate_state(on(), {"messages": [ToolMessage("4711", tool_call_id="c")]}, as_node="model")
        for question in ("Four", "Five"):
            await agent.ainvoke(asked(question), on())
        assert {entry.how for entry in (await last_of(saver)).entries} == {"whole"}
    assert [[message.text for message in view[2:]] for view in spy.views[1:]] == [
        ["Two", "Three"],
        ["Two", "", "4711", "Three", "Fine.", "Four"],
        ["Two", "", "4711", "Three", "Fine.", "Four", "Fine.", "Five"],
    ]
    assert spy.watch.orphans == 0


async def test_a_view_goes_on_from_one_that_a_call_was_answered_in(store_address: str) -> None:
    """LangChain's result of a call that could not be read has no id in that view, and one from then on."""
    spy, told = Spy(window=4_000), list[LastView]()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        replies = ScriptedChatModel(
            [AIMessage("Let me see.", invalid_tool_calls=[broken("x")]), "Fine.", "Still fine."]
        )
        agent = agent_of(saver, replies, read, spy=spy, memory_enable_summary=False)
        # The second question has no room whole: what is before it is a segment, which ends with the result.
        for question in ("Read it", "word " * 5_000, "And now?"):
            await agent.ainvoke(asked(question), on())
            told.append(await last_of(saver))
    assert [[entry.how for entry in each.entries] for each in told] == [
        ["whole"],
        ["whole", "whole", "whole", "cut"],
        ["whole", "whole", "whole", "cut", "whole", "whole"],
    ]
    before, after = ([message.text for message in view] for view in spy.views[1:])
    assert "malformed" in before[2]
    assert after[:4] == before
    assert spy.over == [] and spy.watch.orphans == 0
