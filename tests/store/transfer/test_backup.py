"""A backup holds all that cannot be derived, from either backend to either; what was changed since is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from tests.store.samples import all_of, fill

from longthread.errors import BackupDamaged, InvalidInput, StoreError
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.maintenance.space import status_of
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.transfer.backup import check_backup, restore_backup, write_backup

LEFT_OUT = {"workers", "background_jobs", "gateway_nodes"}
"""And the index of recall: a server makes all of them again."""


def silent(done: int, total: int, what: str) -> None:
    """Progress that nobody looks at."""


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Driver]:
    async with open_store(tmp_path / "backup.db") as opened:
        yield opened


@asynccontextmanager
async def changed(file: Driver, sql: str) -> AsyncIterator[Driver]:
    """The file of a store, after somebody has changed it."""
    with closing(sqlite3.connect(file.where, isolation_level=None)) as connection:
        assert connection.execute(sql).rowcount > 0
    yield file


async def test_every_table_comes_back_that_is_not_made_again(store: Driver, file: Driver, other_address: str) -> None:
    for thread_id in ("a", "b"):
        await fill(store, thread_id)
    async with store.writing() as tx:  # what means something with the store's own salt and work alone
        await tx.run(Sql("UPDATE thread_clients SET owner = 'hash of a key'"))
        await tx.run(Sql("UPDATE runs SET crashes = 2, stop_by = 'somebody'"))
    before = await all_of(store, derived=True)
    assert {row["owner"] for row in before["thread_clients"]} == {"hash of a key"}
    contents = await write_backup(store, file, silent)
    kept = {name for name in before if name not in LEFT_OUT and not name.startswith("recall_")}
    assert {*contents.tables} == kept >= {"entries", "provider_keys", "queued_questions", "share_links", "board_links"}
    async with open_store(other_address) as target:
        await restore_backup(file, target, silent)
        after = await all_of(target, derived=True)
        leases = ("owner", "status")
        for name in kept:
            told = [[{**row, **dict.fromkeys(leases)} for row in rows[name]] for rows in (before, after)]
            assert told[0] == told[1], name
    assert await check_backup(file) == contents


async def test_a_changed_backup_is_refused_and_names_the_tables(store: Driver, file: Driver) -> None:
    await fill(store, "a")
    await write_backup(store, file, silent)
    for sql, table in (
        ("UPDATE entries SET text = 'another' WHERE seq = 1", "entries"),
        ("DELETE FROM provider_keys", "provider_keys"),
        ("UPDATE longthread_backup SET threads = threads + 1", "threads"),
    ):
        async with changed(file, sql):
            with pytest.raises(BackupDamaged, match=f"not as it was written: .*{table}"):
                await check_backup(file)


async def test_a_store_with_entries_of_no_thread_is_not_taken_for_whole(file: Driver) -> None:
    async with open_store(Path(file.where).with_name("source.db")) as source:
        for thread_id in ("a", "b"):
            await fill(source, thread_id)
        async with changed(source, "UPDATE threads SET id = 'c' WHERE id = 'b'"):
            with pytest.raises(StoreError, match=r"source.db has \d+ rows of entries, and \d+ of them can be read"):
                await write_backup(source, file, silent)


async def test_numbers_and_times_that_are_spelled_otherwise_are_the_same(file: Driver, other_address: str) -> None:
    async with open_store(Path(file.where).with_name("source.db")) as source:
        await fill(source, "a")
        with closing(sqlite3.connect(source.where, isolation_level=None)) as connection:
            config = '{"b": 1e2, "a": [1.50, -0.0, 12345678901234567890.5], "a": 1.0}'
            assert connection.execute("UPDATE tools SET schema = ?", [config]).rowcount > 0
            assert connection.execute("UPDATE tools SET created_at = '2026-01-02T03:04:05Z'").rowcount > 0
        contents = await write_backup(source, file, silent)
        async with open_store(other_address) as target:
            await restore_backup(file, target, silent)
            assert (await status_of(target)).rows["tools"] == contents.tables["tools"].rows == 1


async def test_only_a_new_store_takes_a_backup_and_a_refused_one_leaves_nothing(
    store: Driver, file: Driver, other_address: str
) -> None:
    await fill(store, "a")
    await write_backup(store, file, silent)
    async with open_store(other_address) as target:
        async with target.writing() as tx:
            await log.create_thread(tx, "theirs", user_id="u")
        before = await all_of(target)
        with pytest.raises(InvalidInput, match="already has rows of threads"):
            await restore_backup(file, target, silent)
        assert await all_of(target) == before


async def test_what_a_server_learned_before_gives_way(store: Driver, file: Driver, other_address: str) -> None:
    await fill(store, "a")
    await write_backup(store, file, silent)
    async with open_store(other_address) as target:
        async with target.writing() as tx:
            await tx.run(Sql("INSERT INTO gateway_salt (id, salt) VALUES ('x', 'y')"))
        await restore_backup(file, target, silent)
        async with target.reading() as tx, file.reading() as theirs:
            salts = [await each.fetch(Sql("SELECT id, salt FROM gateway_salt")) for each in (tx, theirs)]
        assert [dict(row) for row in salts[0]] == [dict(row) for row in salts[1]]


async def test_another_store_is_no_backup(store: Driver, file: Driver) -> None:
    with pytest.raises(InvalidInput, match="is no backup"):
        await check_backup(file)
