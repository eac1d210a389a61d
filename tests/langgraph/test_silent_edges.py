"""What LangGraph applications meet at the edges is told, and nobody waits for what never comes."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Annotated, Any

import pytest
from langchain.agents import AgentState, create_agent
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import _messages_delta_reducer
from tests.langgraph.test_middleware import SUMMARIES, agent_of, asked, on
from tests.script import call

from longthread.langgraph import LongthreadSaver, MemoryMiddleware, recall_tool
from longthread.store.open import open_store
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend


class Deltas(AgentState[Any]):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]  # type: ignore[misc]


async def test_a_graph_with_delta_channels_has_its_memory(store_address: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    def reply(messages: list[BaseMessage]) -> Any:
        if messages[0].type == "system":  # of a summary or of topics
            return "."
        asks = messages[-1].type == "human" and "what" in messages[-1].text
        return call("recall_memory", query="number") if asks else "fine"

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        # Two messages may stay, and a turn waits for the summary of what is before its question.
        memory = MemoryMiddleware(saver, patience=3600, memory_max_messages_per_thread=2)
        model = ScriptedChatModel(reply)
        agent = create_agent(model, [recall_tool(saver)], middleware=[memory], state_schema=Deltas, checkpointer=saver)
        for number in range(8):
            state = await agent.ainvoke(asked(f"number {number}"), on())
        state = await agent.ainvoke(asked("what numbers were there?"), on())
        assert len(state["messages"]) <= 8
        found = json.loads(state["messages"][-2].text)["data"]["found"]
    assert {each["text"] for each in found} <= {f"number {number}" for number in range(8)}
    assert len(found) == 5
    assert [each.message for each in caplog.records if each.name.startswith("longthread")] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("whose", ["the saver's block", "the store's block"])
async def test_a_program_that_ends_amid_a_summary_says_nothing_of_closed_databases(
    store_address: str, caplog: pytest.LogCaptureFixture, whose: str
) -> None:
    caplog.set_level(logging.WARNING)
    begun, go_on = threading.Event(), threading.Event()

    def reply(messages: list[BaseMessage]) -> Any:
        if str(messages[0].text).startswith(SUMMARIES):
            begun.set()
            go_on.wait(30)
        return "fine"

    async def turns(saver: LongthreadSaver) -> None:
        agent = agent_of(saver, reply, patience=0, memory_max_messages_per_thread=4, memory_summary_threshold=2)
        for number in range(12):
            await agent.ainvoke(asked(f"number {number}"), on())
        assert await asyncio.to_thread(begun.wait, 30)

    if whose == "the saver's block":
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            await turns(saver)
    else:
        async with open_store(store_address) as store:
            await turns(LongthreadSaver(store))
    go_on.set()
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert [each.message for each in caplog.records if each.name.startswith("longthread")] == []
