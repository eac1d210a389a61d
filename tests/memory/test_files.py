"""What was deleted is in no file of a store once it was written anew; of a PostgreSQL server its log may hold it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from tests.conftest import new_server
from tests.contract.deletion import fill as fill_run
from tests.memory.canary import CANARY, in_files, in_folder, marks, places
from tests.memory.talking import say
from tests.memory.test_forget import KEPT, pass_over, plant, plant_everywhere, vectors
from tests.memory.test_memories import OWNER

from longthread.errors import StoreError
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.memory.forget import delete_thread, forget_deleted, forget_memory, forget_thread, forget_user
from longthread.memory.user_memories import Memories
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pg"


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """A URL of a server of this test's own, as its package makes it."""
    made = new_server(folder)
    with psycopg.connect(made.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield made.get_uri()
    made.cleanup()


def run_sql(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


async def fail(store: Driver) -> None:
    """Have the server refuse statements with the word in them."""
    with pytest.raises(StoreError):
        async with store.reading() as tx:
            await tx.fetch(Sql("SELECT CAST(:word AS INTEGER)"), word=CANARY)


def in_tables(folder: Path, wanted: Sequence[bytes]) -> set[str]:
    """The files of a server that hold any of it, but for its log, which the server overwrites when it recycles it."""
    return {path for path in in_folder(folder, wanted) if not path.startswith("pg_wal/")}


@pytest.mark.postgres
async def test_who_was_forgotten_is_in_no_file_of_the_embedded_server(folder: Path) -> None:
    async with open_store(f"embedded:{folder}") as store:
        await plant(store, "theirs", KEPT, user_id="kept")
        wanted = await plant_everywhere(store)
        await fail(store)
        async with store.maintaining() as tx:
            await tx.run(Sql("CHECKPOINT"))
        await fill_run(store, "t4", word=CANARY)
        planted = in_folder(folder, wanted)
        assert {path.partition("/")[0] for path in planted} == {"base", "pg_wal"}
        assert (await forget_user(store, "u", anew=True)).problems == []
        for _ in range(2):
            assert in_tables(folder, wanted) == set()
            await pass_over(store)
    assert in_tables(folder, wanted) == set()
    assert in_folder(folder, [KEPT.encode()])


@pytest.mark.postgres
@pytest.mark.parametrize("forget", [forget_thread, forget_user])
async def test_what_a_checkpoint_has_taken_in_of_its_tasks_is_forgotten_where_it_was_before(
    folder: Path, forget: Any
) -> None:
    async with open_store(f"embedded:{folder}") as store:
        saver, other = AsyncLongthreadSaver(store, user_id="u"), AsyncLongthreadSaver(store, user_id="u")
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        at = await saver.aput(config, empty_checkpoint(), {}, {})
        await other.aput_writes(at, [("note", CANARY)], CANARY)
        await saver.aput(at, empty_checkpoint(), {}, {})
        async with store.maintaining() as tx:
            await tx.run(Sql("CHECKPOINT"))
            assert await tx.fetch(Sql("SELECT task_id FROM checkpoint_writes")) == []
        assert any(path.startswith("base/") for path in in_folder(folder, [CANARY.encode()]))
        given: Any = {"user_id": "u"} if forget is forget_thread else {}
        assert (await forget(store, "t" if given else "u", **given, anew=True)).problems == []
        assert in_tables(folder, [CANARY.encode()]) == set()


@pytest.mark.postgres
async def test_what_was_deleted_before_goes_from_the_tables(server: str, folder: Path) -> None:
    async with open_store(server) as store:
        wanted = await plant_everywhere(store)
        run_sql(server, "CHECKPOINT")
        for thread_id in ("t", "t2", "t3"):
            await AsyncLongthreadSaver(store, user_id="u").adelete_thread(thread_id)
        for memory in await Memories(store).list_(OWNER):
            await forget_memory(store, memory.id, user_id="u")
        assert any(path.startswith("base/") for path in in_folder(folder, wanted))
        assert await forget_deleted(store) == []
        assert in_tables(folder, wanted) == set()


async def test_what_a_saver_deleted_is_in_no_file_afterwards(store: Driver, store_address: str) -> None:
    await plant(store, "t", CANARY)
    wanted = marks(*await vectors(store, "t"))
    async with reader(store_address):
        await AsyncLongthreadSaver(store, user_id="u").adelete_thread("t", with_memories=True)
        assert in_files(store_address, wanted)
    assert await forget_deleted(store) == []
    assert places(store_address, wanted) == set()
    assert in_files(store_address, wanted) == set()
    await pass_over(store)
    assert in_files(store_address, wanted) == set()


@asynccontextmanager
async def reader(address: str) -> AsyncIterator[None]:
    """Somebody who sees the store as it is now, as long as the block goes on."""
    sqlite = "://" not in address
    with closing(sqlite3.connect(address) if sqlite else psycopg.connect(address)) as connection:
        connection.execute("BEGIN" if sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM entries")
        yield


async def test_what_somebody_still_reads_is_told_and_goes_later(
    store: Driver, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.store.maintenance.space.PATIENCE", 0.1)
    await say(store, [f"My bird is {CANARY}."])
    async with reader(store_address):
        gone = await forget_thread(store, "t", user_id="u", anew=True)
        assert in_files(store_address, marks())
        assert len([text for text in gone.problems if "When that has ended" in text or "have finished" in text]) in (
            1,
            2,
        )
    assert await forget_deleted(store) == []
    assert in_files(store_address, marks()) == set()


@pytest.mark.parametrize("backend", ["postgres"])
async def test_who_reads_but_for_a_moment_is_waited_for(store: Driver, store_address: str) -> None:
    await say(store, [f"My bird is {CANARY}."])
    waits = asyncio.Event()

    def listen(what: str) -> None:
        if what.startswith("waiting"):
            waits.set()

    async with reader(store_address):
        await delete_thread(store, "t", user_id="u")
        forgetting = asyncio.create_task(forget_deleted(store, say=listen))
        await waits.wait()
    assert await forgetting == []
    assert in_files(store_address, marks()) == set()


@pytest.mark.parametrize("backend", ["postgres"])
async def test_a_table_that_cannot_be_had_is_told_and_goes_later(store: Driver, store_address: str) -> None:
    await say(store, [f"My bird is {CANARY}."])
    await delete_thread(store, "t", user_id="u")
    with psycopg.connect(store_address) as connection:
        connection.execute("LOCK TABLE entries IN SHARE MODE")
        [problem] = await forget_deleted(store)
    assert problem.startswith("Not written anew: entries.")
    assert problem.endswith("longthread forget --deleted.")
    assert in_files(store_address, marks())
    assert await forget_deleted(store) == []
    assert in_files(store_address, marks()) == set()


async def test_others_go_on_meanwhile(store: Driver, store_address: str) -> None:
    done = asyncio.Event()

    async def go_on(number: int) -> int:
        async with open_store(store_address) as other:
            turn = 0
            while turn < 5 or not done.is_set():
                await say(other, [f"{n}" for n in range(turn + 1)], thread_id=f"mine {number}")
                turn += 1
        return turn

    await say(store, [f"My bird is {CANARY}."])
    others = [asyncio.create_task(go_on(number)) for number in range(2)]
    await delete_thread(store, "t", user_id="u")
    try:
        problems = await forget_deleted(store)
    finally:
        done.set()
    assert min(await asyncio.gather(*others)) >= 5
    assert [
        text for text in problems if "longthread forget --deleted" not in text and "have finished" not in text
    ] == []
    assert await forget_deleted(store) == []
    assert in_files(store_address, marks()) == set()


@pytest.mark.postgres
async def test_a_servers_data_from_before_is_kept_to_itself_too(folder: Path) -> None:
    made: Any = new_server(folder)
    try:
        async with open_store(made.get_uri()) as store:
            await fail(store)
        assert in_folder(folder, marks()) == {"log"}
        for after in ([], ["ALTER SYSTEM SET wal_recycle = on"]):
            async with open_store(f"embedded:{folder}") as store:
                assert in_folder(folder, marks()) == set()
                await fail(store)
                async with store.reading() as tx:
                    [row] = await tx.fetch(Sql("SELECT current_setting('wal_recycle') AS recycle"))
                assert row["recycle"] == "off"
                run_sql(made.get_uri(), *after)
        async with open_store(f"embedded:{folder}") as store, store.reading() as tx:
            [row] = await tx.fetch(Sql("SELECT current_setting('wal_recycle') AS recycle"))
            assert row["recycle"] == "on"
    finally:
        made.cleanup()


async def test_long_work_can_be_stopped_and_the_store_goes_on(store: Driver) -> None:
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e8) SELECT max(i) FROM n"

    async def work() -> None:
        async with store.maintaining() as tx:
            await tx.run(Sql(count if store.dialect == "sqlite" else "SELECT pg_sleep(1000)"))

    working = asyncio.create_task(work())
    await asyncio.sleep(0.2)
    working.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await working
        await say(store, ["hello"])
        assert await forget_deleted(store) == []
