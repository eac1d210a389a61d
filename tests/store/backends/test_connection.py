"""One connection to a SQLite file, and the thread that uses it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.contract.base import USER, branch_ids, draft, extend, thread_with

from longthread.errors import StoreError
from longthread.store import listing, log
from longthread.store.backends import sqlite
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.backends.sqlite_transaction import SqliteTransaction
from longthread.store.driver import Transaction, one
from longthread.store.open import open_store
from longthread.store.queries import Sql


async def test_who_rolls_back_waits_for_the_thread_that_may_be_at_work(tmp_path: Path) -> None:
    connection = await StoreConnection.open(tmp_path / "c.db")
    begun, go_on = threading.Event(), threading.Event()

    def work(database: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait()
        database.execute("BEGIN")

    task = asyncio.create_task(connection.apart(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    giving_up = asyncio.create_task(connection.rollback())
    await asyncio.sleep(0.01)
    assert not giving_up.done()
    go_on.set()
    await giving_up
    assert not connection.database.in_transaction
    await connection.close()
    await connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.database.execute("SELECT 1")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await connection.execute("SELECT 1")


async def test_who_reads_after_another_has_the_same_connection(tmp_path: Path) -> None:
    async def cache_size(tx: Transaction) -> int:
        [row] = await tx.fetch(Sql("PRAGMA cache_size"))
        return int(row["cache_size"])

    async with open_store(tmp_path / "c.db") as store:
        async with store.reading() as tx:
            await tx.fetch(Sql("PRAGMA cache_size = 1234"))
        for _ in range(sqlite.READERS):
            async with store.reading() as tx:
                assert await cache_size(tx) == 1234
        async with store.reading() as tx, store.reading() as at_once:
            assert await cache_size(tx) == 1234
            assert await cache_size(at_once) != 1234


async def test_a_store_may_be_closed_while_others_read_and_write(tmp_path: Path) -> None:
    for _ in range(20):
        ended: list[BaseException] = []

        async with open_store(tmp_path / "c.db") as store:

            async def use(store=store, ended=ended) -> None:  # type: ignore[no-untyped-def]
                try:
                    while True:
                        async with store.reading() as tx:
                            await one(tx, "select_thread", id="t", user_id="u")
                            await asyncio.sleep(0)
                        async with store.writing() as tx:
                            await tx.run("insert_thread", id="t", user_id="u", title=None, source=None, now="")
                except StoreError as error:
                    ended.append(error)

            tasks = [asyncio.create_task(use()) for _ in range(6)]
            await asyncio.sleep(0.01)
        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        assert len(ended) == 6


async def test_a_read_of_one_batch_and_a_write_are_one_hand_over_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path / "c.db") as store:
        handed = 0
        submit = ThreadPoolExecutor.submit

        def counted(thread: ThreadPoolExecutor, *work: Any, **named: Any) -> Any:
            nonlocal handed
            handed += 1
            return submit(thread, *work, **named)

        monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
        async with store.writing() as tx:
            await tx.later("insert_thread", id="t", user_id="u", title=None, source=None, now=log.now())
            await tx.later("update_source", id="t", source="here")
        assert handed == 1
        for _ in range(5):  # more than there are readers: none is left in a transaction
            async with store.reading() as tx:
                asked = "select_thread", {"id": "t", "user_id": "u"}
                [[thread], _] = await tx.fetch_all(asked, ("select_position", {"id": "t"}), last=True)
                assert thread["source"] == "here"
        assert handed == 6
        assert not any(reader.database.in_transaction for reader in store._all)  # type: ignore[attr-defined]


async def test_no_statement_and_no_commit_runs_in_the_loop_s_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    connect = sqlite3.connect

    def watched(*given: Any, **named: Any) -> sqlite3.Connection:
        database = connect(*given, **named)
        database.set_trace_callback(lambda _: threads.add(threading.get_ident()))
        return database

    monkeypatch.setattr(sqlite3, "connect", watched)
    async with open_store(tmp_path / "c.db") as store:
        async with store.writing() as tx:
            await tx.run("insert_thread", id="a", user_id="u", title=None, source=None, now=log.now())
        async with store.reading() as tx:
            assert len(await listing.list_threads(tx, user_id="u")) == 1
        async with store.maintaining() as tx:
            await tx.run("vacuum_all")
        async with store.dedicated() as tx:
            await tx.fetch("select_position", id="a")
    assert len(threads) > 2
    assert threading.get_ident() not in threads


async def test_a_write_that_begins_after_it_was_cancelled_leaves_no_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, done = threading.Event(), threading.Event(), SqliteTransaction._done

    def wait(self: SqliteTransaction, *given: Any) -> list[Any]:
        reached.set()
        go_on.wait()
        return done(self, *given)

    async with open_store(tmp_path / "c.db") as store:
        await thread_with(store)
        monkeypatch.setattr(SqliteTransaction, "_done", wait)
        writing = asyncio.create_task(extend(store, draft("lost")))
        await asyncio.to_thread(reached.wait)
        writing.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await extend(store, draft("next"))
        assert await branch_ids(store) == ["next"]


async def test_nothing_is_committed_after_a_cancellation_that_somebody_handled(tmp_path: Path) -> None:
    go_on = threading.Event()
    async with open_store(tmp_path / "c.db") as store:
        await thread_with(store)
        with pytest.raises(StoreError, match="nothing of it was written"):
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("lost")])
                keeping = asyncio.create_task(store._writer.apart(lambda _: go_on.wait()))  # type: ignore[attr-defined]
                await asyncio.sleep(0)
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await tx.fetch("select_position", id="t")  # what it takes along is never done
                go_on.set()
                await log.create_thread(tx, "part", user_id=USER)
        await keeping
        await extend(store, draft("next"))
        assert await branch_ids(store) == ["next"]


async def test_a_task_that_only_writes_lets_others_run(tmp_path: Path) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with open_store(tmp_path / "c.db") as store:
        await thread_with(store)
        running = asyncio.create_task(others())
        for number in range(20):
            await extend(store, draft(f"{number}"))
            assert turns > number
        running.cancel()
