"""Messages that change while they are stored: LangGraph runs the next step meanwhile, where it may."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.placement import LogGrowth
from longthread.store.driver import Driver

QUESTION = HumanMessage("a question", id="q")


async def put(
    saver: AsyncLongthreadSaver, config: Any, messages: list[BaseMessage], version: int, **metadata: Any
) -> Any:
    given: Any = {"channel_values": {"messages": messages}, "channel_versions": {"messages": version}}
    return await saver.aput(config, empty_checkpoint() | given, metadata, {"messages": version})  # type: ignore[arg-type]


async def contents(saver: AsyncLongthreadSaver, config: Any) -> list[Any]:
    found = await saver.aget_tuple(config)
    assert found is not None
    return [message.content for message in found.checkpoint["channel_values"]["messages"]]


@pytest.mark.parametrize(
    ("moment", "there"), [("find", False), ("add", False), ("flush", False), ("find", True), ("flush", True)]
)
async def test_what_it_is_then_is_stored_the_next_time(
    store: Driver, moment: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, answer = getattr(LogGrowth, moment), AIMessage("a draft", id="a")

    async def changing(self: LogGrowth, *args: Any, **named: Any) -> Any:
        found = await step(self, *args, **named)
        answer.content = "an answer"
        return found

    saver = AsyncLongthreadSaver(store)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    config = await put(saver, config, [QUESTION], 1)
    if there:  # the log has it already, and this saver does not know
        await put(AsyncLongthreadSaver(store), config, [QUESTION, AIMessage("a draft", id="a")], 2)
    with monkeypatch.context() as patch:
        patch.setattr(LogGrowth, moment, changing)
        config = await put(saver, config, [QUESTION, answer], 3, source="fork")  # else the other's is a rival
    config = await put(saver, config, [QUESTION, answer, HumanMessage("more", id="m")], 4)
    for reader in (saver, AsyncLongthreadSaver(store)):
        assert await contents(reader, config) == ["a question", "an answer", "more"]


async def test_a_message_that_is_in_a_list_twice_stands_at_two_places(store: Driver) -> None:
    answer = AIMessage("an answer", id="a")
    saver = AsyncLongthreadSaver(store)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    twice = [QUESTION, answer, answer]
    config = await put(saver, config, twice, 1)
    kept = saver._cache.peek("t").lists.peek(("", "messages"))
    assert kept is not None
    assert len(set(kept.seqs)) == 3
    for more in range(2, 4):
        twice = [*twice, HumanMessage(f"more {more}", id=f"m{more}")]
        config = await put(saver, config, twice, more)
        for reader in (saver, AsyncLongthreadSaver(store)):
            assert await contents(reader, config) == [message.content for message in twice]
