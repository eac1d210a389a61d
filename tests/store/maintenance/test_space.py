"""Space that is given back."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.store.samples import all_of, fill

from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.maintenance.space import reclaim, status_of
from longthread.store.open import open_store
from longthread.store.queries import queries

pytestmark = pytest.mark.one_backend

BRIEFLY = {"sqlite": "PRAGMA busy_timeout = 20", "postgres": "SET LOCAL lock_timeout = '20ms'"}
"""Less than users wait."""


async def emptied(store: Driver) -> int:
    """A store of which nearly everything was deleted; how large it was."""
    await fill(store, "kept")
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", [Draft(f"m{number}", "user", f"{number} " * 300) for number in range(2400)])
    before = (await status_of(store)).bytes
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    return before


async def test_what_was_deleted_is_given_back(store: Driver) -> None:
    before = await emptied(store)
    rows = await all_of(store)
    assert await reclaim(store, lambda what: None) == []
    after = await status_of(store)
    # On PostgreSQL each table that is written anew has 32 KB of maps after it, also one with nothing in it.
    assert before - after.bytes > 1_800_000
    assert after.free == 0
    assert await all_of(store) == rows
    assert await reclaim(store, lambda what: None) == []
    assert (await status_of(store)).bytes < after.bytes + 100_000


async def test_what_others_look_at_is_given_back_later(
    store: Driver, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(queries(store.dialect), "wait_briefly", BRIEFLY[store.dialect])
    async with open_store(store_address) as other:
        await emptied(store)
        async with other.reading() as tx:
            await log.position(tx, "kept")
            await tx.fetch("select_entry", thread_id="kept", id="m1")
            problems = await reclaim(store, lambda what: None)
            assert [text for text in problems if "Prune again" in text or "have finished" in text] == problems != []
    assert await reclaim(store, lambda what: None) == []
    assert (await status_of(store)).tables["entries"] < 300_000


@pytest.mark.parametrize("busy", [False, True])
async def test_a_file_from_before_is_written_anew_once(tmp_path: Path, busy: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr("longthread.store.backends.sqlite.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("longthread.store.backends.sqlite._PATIENCE", "PRAGMA busy_timeout=100")
    path = tmp_path / "old.db"
    async with open_store(path) as store:
        await emptied(store)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in (
        "PRAGMA journal_mode = DELETE",
        "PRAGMA auto_vacuum = NONE",
        "VACUUM",
        "PRAGMA journal_mode = WAL",
    ):
        connection.execute(statement)
    connection.execute("CREATE TABLE filler AS SELECT zeroblob(4000000) AS filler")
    connection.execute("DROP TABLE filler")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    if busy:
        connection.execute("BEGIN IMMEDIATE")
    async with open_store(path) as store:
        rows = await all_of(store)
        problems = await reclaim(store, lambda what: None)
        assert [problem.partition(",")[0] for problem in problems] == (
            ["The file cannot shrink before it is written anew"] if busy else []
        )
        connection.close()
        assert await reclaim(store, lambda what: None) == []
        assert await all_of(store) == rows
    assert path.stat().st_size < size / 2
