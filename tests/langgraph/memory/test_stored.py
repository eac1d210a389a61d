"""A pass waits for the put of a message that a run has just made, and for nothing that does not come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from longthread.langgraph import LongthreadSaver
from longthread.langgraph.memory import long_term
from longthread.langgraph.memory.long_term import LongTermMemory
from longthread.settings import Settings
from longthread.store import checkpoints

pytestmark = pytest.mark.one_backend

AT: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


class Memory(LongTermMemory):
    """Counts how often it looks into the log."""

    def __init__(self, saver: LongthreadSaver) -> None:
        super().__init__(saver.backing, Settings())
        self.looks = 0
        self.looked = asyncio.Event()

    async def _is_there(self, thread_id: str, message_id: str) -> bool:
        found = await super()._is_there(thread_id, message_id)
        self.looks += 1
        self.looked.set()
        return found

    async def waiting(self) -> asyncio.Task[None]:
        """Begin to wait for the message "b", and return when it has looked once."""
        task = asyncio.create_task(self._wait_until_stored("t", "b"))
        await self.looked.wait()
        return task


@pytest.fixture
async def saver(store_address: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LongthreadSaver]:
    monkeypatch.setattr(long_term, "_STORED_SECONDS", 600)
    async with LongthreadSaver.from_conn_string(store_address) as opened:
        yield opened


async def put(saver: LongthreadSaver, config: RunnableConfig, *ids: str) -> RunnableConfig:
    messages = [HumanMessage(each, id=each) for each in ids]
    given: Any = {"channel_values": {"messages": messages}, "channel_versions": {"messages": len(ids)}}
    return await saver.aput(config, empty_checkpoint() | given, {}, {"messages": len(ids)})


async def test_a_message_that_was_just_made_is_looked_for_when_its_put_has_ended(saver: LongthreadSaver) -> None:
    first = await put(saver, AT, "a")
    memory = Memory(saver)
    task = await memory.waiting()
    await put(saver, first, "a", "b")
    await task
    assert memory.looks == 2
    assert saver.backing.puts._watched == {}


async def test_a_put_that_does_not_bring_the_message_is_the_last_that_is_waited_for(saver: LongthreadSaver) -> None:
    first = await put(saver, AT, "a")
    memory = Memory(saver)
    task = await memory.waiting()
    await put(saver, first, "a", "c")
    await task
    assert memory.looks >= 2


async def test_nothing_is_waited_for_where_no_message_was_made(saver: LongthreadSaver) -> None:
    memory = Memory(saver)
    await memory._wait_until_stored("t", None)
    assert memory.looks == 0


async def test_a_put_that_is_going_on_is_waited_for(saver: LongthreadSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await put(saver, AT, "a")
    reached, go = asyncio.Event(), asyncio.Event()
    stored = checkpoints.put

    async def held(*args: Any) -> None:
        reached.set()
        await go.wait()
        await stored(*args)

    monkeypatch.setattr(checkpoints, "put", held)
    putting = asyncio.create_task(put(saver, first, "a", "b"))
    await reached.wait()
    memory = Memory(saver)
    task = await memory.waiting()
    go.set()
    await asyncio.gather(task, putting)
    assert memory.looks == 2


async def test_a_saver_that_is_closed_is_not_kept_open(saver: LongthreadSaver) -> None:
    memory = Memory(saver)
    task = await memory.waiting()
    await saver.backing.home.close()
    await task
    assert memory.looks == 1
