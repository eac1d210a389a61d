"""A transaction that has ended, and a task's write that comes before who asked for it has learnt of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph._internal._constants import RESUME
from langgraph.checkpoint.base import empty_checkpoint

from longthread.errors import CommitUnknown, StoreFull
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.driver import Driver, Transaction


class _LateNews:
    """A driver whose next write transaction, once armed, is rolled back or committed; who asked for it learns that
    later."""

    def __init__(self, driver: Driver, *, fails: bool) -> None:
        self._driver = driver
        self._fails = fails
        self.armed = False
        self.ended = asyncio.Event()
        self.tell = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self._driver.reading()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        is_it, self.armed = self.armed, False
        try:
            async with self._driver.writing() as tx:
                yield tx
                if is_it and self._fails:
                    raise StoreFull(reason="the disk is full.")
        finally:
            if (
                is_it
            ):  # the thread's lock is free, as it is on PostgreSQL before the answer to COMMIT or ROLLBACK is read
                self.ended.set()
                await self.tell.wait()


def _checkpoint(number: int, messages: list[Any]) -> dict[str, Any]:
    versions = {"messages": number}
    return {
        **empty_checkpoint(),
        "id": f"c{number}",
        "channel_values": {"messages": messages},
        "channel_versions": versions,
    }


async def test_no_reference_to_what_was_rolled_back(store: Driver) -> None:
    late = _LateNews(store, fails=True)
    saver = AsyncLongthreadSaver(late)  # type: ignore[arg-type]
    at: Any = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
    human, answer = HumanMessage("hi", id="h"), AIMessage("hello", id="a")
    first = await saver.aput(at, _checkpoint(1, [human]), {}, {"messages": 1})  # type: ignore[arg-type]
    await saver.aput_writes(first, [("messages", [answer])], "task-1")
    late.armed = True
    second = _checkpoint(2, [human, answer])
    put = asyncio.create_task(saver.aput(first, second, {}, {"messages": 2}))  # type: ignore[arg-type]
    await late.ended.wait()
    # A second task of the first step; LangGraph stores writes and checkpoints side by side.
    other = asyncio.create_task(saver.aput_writes(first, [("other", 1)], "task-2"))
    await asyncio.wait([other], timeout=2)  # one that waits for the put is right as well
    late.tell.set()
    with pytest.raises(StoreFull):
        await put
    await other
    found = await AsyncLongthreadSaver(store).aget_tuple(at)
    assert found is not None
    assert {task: value for task, _, value in found.pending_writes or []} == {"task-1": [answer], "task-2": 1}


async def test_what_replaced_something_is_not_lost_to_who_has_not_learnt_of_it(store: Driver) -> None:
    late = _LateNews(store, fails=False)
    saver = AsyncLongthreadSaver(late)  # type: ignore[arg-type]
    at: Any = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
    first = await saver.aput(at, _checkpoint(1, []), {}, {"messages": 1})  # type: ignore[arg-type]
    await saver.aput_writes(first, [(RESUME, ["a"])], "task-1")
    late.armed = True
    replacing = asyncio.create_task(saver.aput_writes(first, [(RESUME, ["a", "b"])], "task-1"))
    await late.ended.wait()
    other = asyncio.create_task(saver.aput_writes(first, [("other", 1)], "task-2"))
    await asyncio.wait([other], timeout=2)  # one that waits for the other is right as well
    late.tell.set()
    await replacing
    await other
    for each in (saver, AsyncLongthreadSaver(store)):
        found = await each.aget_tuple(at)
        assert found is not None
        assert {task: value for task, _, value in found.pending_writes or []} == {"task-1": ["a", "b"], "task-2": 1}


class _LostAnswer:
    """A driver whose next write transaction, once armed, is committed, and nobody learns of that."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.armed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        is_it, self.armed = self.armed, False
        async with self._driver.writing() as tx:
            yield tx
        if is_it:
            raise CommitUnknown(reason="the server is gone.")


async def test_what_replaced_something_is_not_lost_to_who_never_learns_of_it(store: Driver) -> None:
    lost = _LostAnswer(store)
    saver = AsyncLongthreadSaver(lost)  # type: ignore[arg-type]
    at: Any = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
    first = await saver.aput(at, _checkpoint(1, []), {}, {"messages": 1})  # type: ignore[arg-type]
    await saver.aput_writes(first, [(RESUME, ["a"])], "task-1")
    lost.armed = True
    with pytest.raises(CommitUnknown):
        await saver.aput_writes(first, [(RESUME, ["a", "b"])], "task-1")
    await saver.aput_writes(first, [("other", 1)], "task-2")
    for each in (saver, AsyncLongthreadSaver(store)):
        found = await each.aget_tuple(at)
        assert found is not None
        assert {task: value for task, _, value in found.pending_writes or []} == {"task-1": ["a", "b"], "task-2": 1}
