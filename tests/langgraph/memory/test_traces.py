"""A turn of a LangGraph agent as a collector sees it: the turn, its model calls, and what it looked up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from tests.otel.collector import Collector, collecting

from longthread.langgraph import LongthreadSaver, MemoryMessagesState, MemoryMiddleware, memory_node, recall_tool
from longthread.otel.export import exporting
from longthread.settings import Settings
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

SECRET = "the goldfish is called Rex"
ON: RunnableConfig = {"configurable": {"thread_id": "t"}}
LOOKS_UP = {"action": "recall_memory", "args": {"query": SECRET}}
SCRIPT = [LOOKS_UP, {"finish": f"{SECRET}."}, {"finish": "You are welcome."}]


async def turns(address: str, script: Sequence[Any], *questions: str, **settings: Any) -> Collector:
    with collecting() as collector:
        async with (
            exporting(Settings.of(otel_endpoint=collector.url, **settings)),
            LongthreadSaver.from_conn_string(address) as saver,
        ):
            given: Any = {"checkpointer": saver, "middleware": [MemoryMiddleware(saver)], "name": "pets"}
            agent: Any = create_agent(ScriptedChatModel(script), [recall_tool(saver)], **given)
            for question in questions:
                await agent.ainvoke({"messages": [("user", question)]}, ON)
    return collector


async def test_each_turn_is_an_agents_and_its_calls_are_below_it(store_address: str) -> None:
    collector = await turns(store_address, SCRIPT, f"Is it so that {SECRET}?", "Thanks.")
    first, second = collector.named("invoke_agent")
    assert first.name == second.name == "invoke_agent pets"
    assert collector.children(first) == ["chat scripted"] * 2
    assert collector.children(second) == ["chat scripted"]
    assert {each.attributes["gen_ai.conversation.id"] for each in collector.named("chat")} == {"t"}
    call = collector.named("chat")[1].attributes
    assert call["longthread.view.planned"] is False and call["longthread.view.tokens_before"] > 0
    assert call["gen_ai.usage.input_tokens"] > 0
    [looked] = collector.named("retrieval")
    assert (looked.attributes["gen_ai.retrieval.top_k"], looked.attributes["gen_ai.conversation.id"]) == (5, "t")
    assert "longthread.recall.hits" in looked.attributes
    assert collector.point("longthread_views", how="grown").value == 2
    assert not any(b"goldfish" in body for body in collector.bodies)


async def test_contents_go_out_where_it_is_asked_for(store_address: str) -> None:
    collector = await turns(store_address, SCRIPT[1:], f"Is it so that {SECRET}?", otel_contents=True)
    [call] = collector.named("chat")
    assert json.loads(call.attributes["gen_ai.input.messages"])[-1] == {
        "role": "user",
        "parts": [{"type": "text", "content": f"Is it so that {SECRET}?"}],
    }
    assert SECRET in call.attributes["gen_ai.output.messages"]


async def test_a_failed_call_and_its_turn_say_the_error_and_not_its_words(store_address: str) -> None:
    with collecting() as collector:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            agent: Any = create_agent(ScriptedChatModel([ValueError(SECRET)]), middleware=[MemoryMiddleware()])
            with pytest.raises(ValueError, match="goldfish"):
                await agent.ainvoke({"messages": [("user", "Is it so?")]}, ON)
    assert {(each.failed, each.attributes["error.type"]) for each in collector.spans} == {(True, "ValueError")}
    assert not any(b"goldfish" in body for body in collector.bodies)


def test_a_node_plans_and_is_no_call(store_address: str) -> None:
    """Its graph asks the model itself."""
    import asyncio

    with collecting() as collector, LongthreadSaver.from_conn_string(store_address) as saver:

        async def run() -> None:
            async with exporting(Settings.of(otel_endpoint=collector.url)):
                model = ScriptedChatModel([{"finish": "Yes."}])
                memory = memory_node(saver, model=model)
                builder: Any = StateGraph(MemoryMessagesState)
                builder.add_node("memory", memory)
                builder.add_node("model", lambda state: {"messages": [AIMessage("Yes.")]})
                builder.add_edge(START, "memory")
                builder.add_edge("memory", "model")
                await asyncio.to_thread(builder.compile(checkpointer=saver).invoke, {"messages": [("user", "Hi")]}, ON)

        asyncio.run(run())
    assert collector.spans == []
    assert collector.point("longthread_views", how="planned").value == 1
