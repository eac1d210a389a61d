"""Another program's database says how it is imported."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from longthread.errors import StoreUnavailable
from longthread.store.open import open_store


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE conversations (thread_id TEXT PRIMARY KEY, state_data TEXT)",
        "CREATE TABLE conversation_state (id INTEGER PRIMARY KEY, scid TEXT, authoritative_history TEXT)",
        "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT)",
        "CREATE TABLE thread_activity (thread_id TEXT PRIMARY KEY, label TEXT)",
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, user_id TEXT)",
    ],
)
@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_another_programs_database_names_the_import(
    backend: str, sql: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if backend == "sqlite":
        address = str(tmp_path / "old.db")
        with closing(sqlite3.connect(address)) as old, old:
            old.execute(sql)
    else:
        address = request.getfixturevalue("postgres_url")
        with psycopg.connect(address, autocommit=True) as server:
            server.execute(sql.encode())
    with pytest.raises(StoreUnavailable, match="longthread import"):
        async with open_store(address):
            pass


async def test_a_database_without_conversations_does_not(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as old, old:
        old.execute("CREATE TABLE invoices (id INTEGER)")
    with pytest.raises(StoreUnavailable) as refused:
        async with open_store(tmp_path / "old.db"):
            pass
    assert "longthread import" not in str(refused.value)
