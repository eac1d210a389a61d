"""The fixtures of the contract's parts, and helpers that write and read."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from longthread.model.entry import Draft, Entry
from longthread.store import leases, log
from longthread.store.driver import Driver, Transaction
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import count_rows

_HAS_ASYNCIO = importlib.util.find_spec("pytest_asyncio") is not None
_asyncio = importlib.import_module("pytest_asyncio") if _HAS_ASYNCIO else pytest
"""Its fixtures may be coroutines; anyio's plugin runs those of pytest's own."""

OpenStore = Callable[[], AbstractAsyncContextManager[Driver]]
"""Opens the test's store; each call gives another driver on the same data."""

USER = "u"


class Contract:
    """A part of the contract: tests that ask for `store`, or for `open_store` to open it themselves.

    Its marks say how to run coroutines, so neither plugin needs a setting.
    """

    pytestmark = pytest.mark.asyncio if _HAS_ASYNCIO else pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop for anyio's plugin: the store is for asyncio."""
        return "asyncio"

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Override it: return a function that opens the test's store, empty when the test begins."""
        raise NotImplementedError("Override the fixture `open_store` in your subclass of StoreContract.")

    @_asyncio.fixture  # type: ignore[untyped-decorator]
    async def store(self, open_store: OpenStore) -> AsyncIterator[Driver]:
        async with open_store() as opened:
            yield opened


def draft(entry_id: str, text: str = "text", **more: Any) -> Draft:
    return Draft(id=entry_id, role="user", text=text, **more)


async def registered(tx: Transaction, worker: str) -> None:
    """Register a worker, unless it is."""
    known = (await leases.look_for_work(tx)).workers
    if worker not in known:
        await leases.register(tx, worker)


async def thread_with(store: Driver, *names: str, thread_id: str = "t", user_id: str = USER) -> list[Entry]:
    """Extend a thread, created if new, by a message for each of `names`."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        return await log.extend(tx, thread_id, [draft(name) for name in names])


async def extend(
    store: Driver, *drafts: Draft, thread_id: str = "t", parent: int | None = None, expect: int | None = None
) -> list[Entry]:
    async with store.writing() as tx:
        return await log.extend(tx, thread_id, drafts, parent=parent, expect=expect)


async def rows_of(store: Driver, thread_id: str = "t") -> dict[str, int]:
    """Count a thread's rows by table, rows of dependent tables included; only tables that have any."""
    async with store.reading() as tx:
        tables = [table for table in (await read_tables(tx)).all if table.thread]
        return {name: count for name, count in (await count_rows(tx, tables, thread_id)).items() if count}


async def position(store: Driver, thread_id: str = "t") -> tuple[int, int]:
    async with store.reading() as tx:
        return await log.position(tx, thread_id)


async def branch_ids(store: Driver, tip: int | None = None, *, thread_id: str = "t", limit: int = 10_000) -> list[str]:
    async with store.reading() as tx:
        end = (await log.position(tx, thread_id))[0] if tip is None else tip
        return [entry.id for entry in await log.branch(tx, thread_id, end, limit=limit)]
