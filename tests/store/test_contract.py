"""The contract of the store, on every backend."""

from __future__ import annotations

import pytest
from tests.contract import OpenStore, StoreContract
from tests.store.samples import fill

from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store as open_at
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import read_rows

CANARY = "canary-4711"


class TestContract(StoreContract):
    @pytest.fixture
    def open_store(self, store_address: str) -> OpenStore:
        return lambda: open_at(store_address)

    async def test_a_deleted_thread_leaves_no_trace_in_any_table(self, store: Driver) -> None:
        for thread_id in (CANARY, "kept"):
            await fill(store, thread_id)
        before = await tables_of(store, CANARY)
        assert {"threads", "entries", "runs", "steps", "events", "folds", "memories"} <= before
        async with store.writing() as tx:
            await log.delete_thread(tx, CANARY, user_id="u")
        assert await tables_of(store, CANARY) == set()
        once = {"memories", "memory_sources", "memory_uses", "board_cards", "board_link_threads"}
        assert await tables_of(store, "kept") == before - once, "both threads' have one id: the first's are there"


async def tables_of(store: Driver, thread_id: str) -> set[str]:
    """The tables that have a row of the thread, or one that refers to it."""
    found: set[str] = set()
    async with store.reading() as tx:
        for table in (await read_tables(tx)).all:
            async for row in read_rows(tx, table, thread_id):
                if table.thread or thread_id in row.values():
                    found.add(table.name)
    return found
