"""However a saver was opened, nothing that it does blocks the event loop: blockbuster, which `langgraph dev` also runs
with, raises where anything would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, BlockingError
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
from longthread.store.log import now
from longthread.store.open import open_store
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

OPENED = ("async with", "with", "over a store")


@pytest.fixture
def blocking_raises() -> Iterator[BlockBuster]:
    guard = BlockBuster()
    # Other threads' short holds of a lock that a thread pool or a queue has; asyncio itself takes them so.
    for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
        guard.functions.pop(name)
    yield guard
    guard.deactivate()


@asynccontextmanager
async def opened(how: str, address: str, guard: BlockBuster) -> AsyncIterator[LongthreadSaver]:
    """The saver, with the guard on: also while it is opened, but for a plain `with`, which waits for a thread."""
    if how == "with":
        with LongthreadSaver.from_conn_string(address) as saver:
            guard.activate()
            yield saver
            guard.deactivate()
        return
    guard.activate()
    if how == "async with":
        async with LongthreadSaver.from_conn_string(address) as saver:
            yield saver
    else:
        async with open_store(address) as store:
            yield LongthreadSaver(store)
    guard.deactivate()


def agent_of(saver: LongthreadSaver, store: LongthreadStore) -> Any:
    def answer(messages: list[Any]) -> Any:
        if messages[-1].text.startswith("recall"):
            return {"action": "recall_memory", "args": {"query": "飞机 question 1"}}
        return f"answer to {messages[-1].text[:40]}"

    memory = MemoryMiddleware(saver, memory_context_window=2_000, memory_max_messages_per_thread=6)
    return create_agent(
        ScriptedChatModel(answer), [recall_tool(saver)], checkpointer=saver, store=store, middleware=[memory]
    )


@pytest.mark.parametrize("how", OPENED)
async def test_nothing_blocks_the_event_loop(how: str, store_address: str, blocking_raises: BlockBuster) -> None:
    at: Any = {"configurable": {"thread_id": "t"}}
    async with opened(how, store_address, blocking_raises) as saver:
        items = LongthreadStore.of(saver)
        agent = agent_of(saver, items)
        for number in range(8):
            await agent.ainvoke({"messages": [HumanMessage(f"question {number}: 我们的飞机 " + "word " * 60)]}, at)
        found = await agent.ainvoke({"messages": [HumanMessage("recall it")]}, at)
        assert "question 1" in next(each.text for each in found["messages"] if each.type == "tool")
        await items.aput(("a",), "k", {"text": "noodles", "many": "x" * 100_000})
        assert (await items.asearch(("a",), query="noodles"))[0].key == "k"
        assert len([each async for each in agent.aget_state_history(at)]) > 10
        assert len([each async for each in saver.alist(at, filter={"step": 1})]) >= 1
        await saver.acopy_thread("t", "copy")
        await saver.aprune(["t"])
        await saver.adelete_for_runs(["none"])
        await saver.adelete_thread("t")
        assert (await agent.aget_state(at)).values == {}
        assert (await agent.aget_state({"configurable": {"thread_id": "copy"}})).values["messages"]


async def test_a_new_store_is_made_off_the_loop(tmp_path: Path, blocking_raises: BlockBuster) -> None:
    blocking_raises.activate()
    async with LongthreadSaver.from_conn_string(str(tmp_path / "new" / "folder" / "c.db")) as saver:
        assert await saver.aget_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}) is None


async def test_the_guard_sees_a_statement_in_the_loop_s_thread_and_a_store_makes_none(
    tmp_path: Path, blocking_raises: BlockBuster
) -> None:
    async with open_store(tmp_path / "c.db") as store:
        blocking_raises.activate()
        async with store.writing() as tx:
            await tx.run("insert_thread", id="t", user_id="u", title=None, source=None, now=now())
        async with store.reading() as tx:
            assert await tx.fetch("select_position", id="t")
        with pytest.raises(BlockingError):
            store._writer.database.execute("SELECT 1")  # type: ignore[attr-defined]
        blocking_raises.deactivate()
