"""What `langgraph dev` serves in `test_server.py`: an agent whose memory is built before any saver is open."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime

from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
from longthread.testing import ScriptedChatModel

ADDRESS = os.environ["SERVED_DATABASE"]


@asynccontextmanager
async def saver() -> AsyncIterator[LongthreadSaver]:
    async with LongthreadSaver.from_conn_string(ADDRESS) as opened:
        yield opened


def plainly_opened() -> AbstractContextManager[LongthreadSaver]:
    return LongthreadSaver.from_conn_string(ADDRESS)


@asynccontextmanager
async def items() -> AsyncIterator[LongthreadStore]:
    async with LongthreadStore.from_conn_string(ADDRESS) as opened:
        yield opened


async def note(text: str, runtime: ToolRuntime) -> str:
    """Note something."""
    assert runtime.store is not None
    await runtime.store.aput(("notes",), "one", {"text": text})
    return str([item.value for item in await runtime.store.asearch(("notes",), query="noodles")])


def _answer(messages: list[Any]) -> Any:
    said = messages[-1].text
    if said.startswith("recall "):
        return {"action": "recall_memory", "args": {"query": said.removeprefix("recall ")}}
    if said.startswith("note "):
        return {"action": "note", "args": {"text": said.removeprefix("note ")}}
    return f"You said: {said[:2000]}"


agent = create_agent(
    ScriptedChatModel(_answer),
    [recall_tool(), note],
    middleware=[MemoryMiddleware(context_window=4_000, max_messages_per_thread=6)],
)
