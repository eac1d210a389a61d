"""Transfer: export and import, copy to another backend, forget; and a store's status."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.contract.base import USER, Contract, OpenStore, branch_ids, extend, thread_with
from tests.contract.base import draft as message
from tests.contract.catalog import definitions
from tests.contract.graphs import at, graph_on, told, turn
from tests.contract.history import seen, turns
from tests.contract.memories import contents, kept
from tests.contract.recall import come_again, silent

from longthread.errors import InvalidInput
from longthread.memory.forget import forget_thread, forget_user
from longthread.memory.index.indexer import index_thread
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.store.maintenance.space import reclaim, size_of, status_of
from longthread.store.open import open_store as open_at
from longthread.store.transfer import threads as transfer
from longthread.store.transfer.backup import check_backup, restore_backup, write_backup
from longthread.store.transfer.copy import compare_stores, copy_store
from longthread.tools.catalog.definitions import Catalog


@asynccontextmanager
async def another_store(name: str = "other.db") -> AsyncIterator[Driver]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_at(Path(folder) / name) as store:
            yield store


async def ids(store: Driver) -> list[str]:
    async with store.reading() as tx:
        return await transfer.thread_ids(tx)


async def fill(store: Driver) -> None:
    """Store two threads, one with runs of every kind and one of a graph that waits; a memory and a catalog."""
    await turns(store, 40)
    await extend(store, message("other", "another way"), parent=3)
    await turn(graph_on(store), "one", at("graph"))
    await turn(graph_on(store), "ask", at("graph"))
    await Catalog(store).apply(definitions())


async def looked_at(store: Driver) -> Any:
    threads = (await seen(store), await branch_ids(store), await told(store, "graph"))
    return *threads, await contents(store), (await Catalog(store).agent("a")).system_prompt


class TransferContract(Contract):
    """`longthread.store.transfer.archive`, `importing`, `copying`, `backup`, `status` and `space`;
    `longthread.memory.forget`."""

    async def test_a_thread_that_was_exported_is_the_same_when_it_is_imported(self, store: Driver) -> None:
        await fill(store)
        before = await looked_at(store)
        await come_again(store)
        after = await looked_at(store)
        assert after[1:] == before[1:]
        assert {**after[0], "uses": before[0]["uses"]} == before[0], "which memories were used is not the thread's"

    async def test_a_copy_in_another_store_and_back_again_is_the_same(self, store: Driver) -> None:
        await fill(store)
        before = await looked_at(store)
        async with another_store() as other:
            outcome = await copy_store(store, other, silent)
            assert (outcome.written, outcome.refused) == (2, [])
            assert await looked_at(other) == before
            compared = await compare_stores(store, other, silent)
            assert (compared.source, compared.target, compared.differing) == (2, 2, ())
            await turn(graph_on(other), "more", at("more"))
            await forget_user(store, USER)
            await forget_thread(store, "graph", user_id="default")
            assert await ids(store) == []
            back = await copy_store(other, store, silent)
            assert (back.written, [refusal.what for refusal in back.refused]) == (3, [])
            assert await looked_at(store) == before
            await extend(other, message("later", "later"))
            assert [each.what for each in (await copy_store(other, store, silent)).refused] == ["thread t"]
            assert (await copy_store(other, store, silent, update=True)).updated == 1
            assert (await branch_ids(store))[-1] == "later"
        ended = await graph_on(store).ainvoke(Command(resume="yes"), at("graph"))
        assert ended["messages"][-1].text == "answer to yes"

    async def test_a_store_is_not_copied_to_itself(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            with pytest.raises(InvalidInput, match="cannot be copied to itself"):
                await copy_store(first, second, silent)

    async def test_who_is_forgotten_has_left_nothing_and_others_have(self, store: Driver) -> None:
        for name, user in (("t", USER), ("theirs", "other")):
            async with store.writing() as tx:
                await log.create_thread(tx, name, user_id=user)
                await log.extend(tx, name, [message("a", f"secret of {user}")])
            await index_thread(store, name)
        await kept(store, "a secret")
        gone = await forget_user(store, USER, anew=True)
        assert (gone.threads, gone.rows["entries"], gone.rows["memories"]) == (1, 1, 1)
        assert await ids(store) == ["theirs"]
        assert await contents(store) == []
        assert await forget_user(store, USER) is not None
        async with store.reading() as tx:
            assert await listing.search_threads(tx, "secret", user_id=USER) == []
            assert len(await listing.search_threads(tx, "secret", user_id="other")) == 1

    async def test_a_store_says_what_it_holds_and_shrinks(self, store: Driver) -> None:
        await turns(store, 9)
        found = await status_of(store)
        assert (found.rows["threads"], found.rows["entries"], found.rows["runs"], found.live) == (1, 24, 9, 0)
        assert (found.dialect, found.schema) == (store.dialect, found.latest)
        assert found.bytes == await size_of(store) > 0
        await extend(store, *(message(f"m{n}", os.urandom(5000).hex()) for n in range(200)))
        large = await size_of(store)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        await reclaim(store, lambda _: None)
        assert await size_of(store) < large
        assert await ids(store) == []

    async def test_a_backup_is_of_one_moment_and_comes_back_as_it_was(
        self, store: Driver, open_store: OpenStore
    ) -> None:
        await fill(store)
        before, written = await looked_at(store), asyncio.Event()
        entries = (await status_of(store)).rows["entries"]

        def ask_while_it_runs(done: int, total: int, what: str) -> None:
            written.set()

        async def write_meanwhile(other: Driver) -> None:
            await written.wait()
            for number in range(30):
                await extend(other, message(f"later {number}", "later"))
                await thread_with(other, "a", thread_id=f"zz {number}")

        async with open_store() as writer, another_store() as file, another_store("restored.db") as target:
            writing = asyncio.create_task(write_meanwhile(writer))
            contents = await write_backup(store, file, ask_while_it_runs)
            await writing
            assert len(await ids(store)) == 32
            assert (contents.threads, contents.tables["entries"].rows) == (2, entries)
            assert await check_backup(file) == contents
            await restore_backup(file, target, silent)
            assert (await status_of(target)).rows["entries"] == entries
            assert await looked_at(target) == before
            with pytest.raises(InvalidInput, match="already has rows of threads"):
                await restore_backup(file, target, silent)
