"""The schema: the same on both backends, made and upgraded by several processes at once, and never in a database of
somebody else's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contract.history import seen, turns
from tests.store.next_version import NEXT, become_next, set_version

from longthread.errors import StoreError, StoreTooNew, StoreUnavailable
from longthread.store.backends.sqlite import SqliteDriver
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.maintenance.space import status_of
from longthread.store.open import open_store
from longthread.store.schema import OLDEST_VERSION, SCHEMA_VERSION

Schema = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def empty(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of a database of the backend under test in which nothing is."""
    return str(tmp_path / "new.db") if backend == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the empty database `postgres_url`, past the store."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


async def open_and_close(address: str) -> None:
    async with open_store(address):
        return


async def test_both_backends_end_in_the_same_tables_with_the_same_columns(tmp_path: Path, postgres_url: str) -> None:
    path = str(tmp_path / "c.db")
    await open_and_close(path)
    await open_and_close(postgres_url)
    here, there = columns_of_sqlite(path), columns_of_postgres(postgres_url)
    assert there.pop("longthread_migrations") == ["number", "name", "applied_at"]
    assert here == there
    assert {"threads", "entries", "runs", "steps"} <= here.keys()


def columns_of_sqlite(path: str) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c "
            "WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite%' ORDER BY m.name, c.cid"
        )
        return _by_table(found)


def columns_of_postgres(url: str) -> dict[str, list[str]]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() "
            'ORDER BY table_name COLLATE "C", ordinal_position'
        )
        return _by_table(found)


def _by_table(rows: Any) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for table, column in rows:
        tables.setdefault(table, []).append(column)
    return tables


def test_text_is_ordered_by_its_bytes_on_postgresql_too(postgres_url: str, admin: psycopg.Connection[Any]) -> None:
    asyncio.run(open_and_close(postgres_url))
    others = admin.execute(
        "SELECT c.table_name, c.column_name, c.collation_name FROM information_schema.columns c "
        "JOIN information_schema.tables t USING (table_schema, table_name) WHERE c.table_schema = current_schema() "
        "AND t.table_type = 'BASE TABLE' AND c.data_type = 'text' AND c.collation_name IS DISTINCT FROM 'C'"
    ).fetchall()
    assert others == []


def rows_of_table(address: str, name: str) -> list[dict[str, Any]]:
    statement = f'SELECT * FROM "{name}" ORDER BY 1, 2'
    if "://" not in address:
        with closing(sqlite3.connect(address)) as file:
            found = file.execute(statement)
            return [dict(zip([each[0] for each in found.description], row, strict=True)) for row in found]
    with psycopg.connect(address) as connection:
        cursor = connection.execute(statement.encode())
        assert cursor.description is not None
        return [dict(zip([each.name for each in cursor.description], row, strict=True)) for row in cursor]


def counts(address: str) -> dict[str, int]:
    """How many rows each table has."""
    if "://" not in address:
        with closing(sqlite3.connect(address)) as file:
            names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: file.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
        rows = {name: connection.execute(f'SELECT count(*) FROM "{name}"'.encode()) for (name,) in found}
        return {name: cursor.fetchall()[0][0] for name, cursor in rows.items() if name != "longthread_migrations"}


UPGRADE = """
CREATE TABLE moods (thread_id TEXT PRIMARY KEY NOT NULL REFERENCES threads (id) ON DELETE CASCADE, mood TEXT NOT NULL);
INSERT INTO moods SELECT id, 'calm' FROM threads;
"""


async def test_an_upgrade_runs_once_and_loses_nothing(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_store(empty) as store:
        await turns(store, 9)
        before = await seen(store)
    rows = counts(empty)
    become_next(monkeypatch, UPGRADE)
    await asyncio.gather(*(open_and_close(empty) for _ in range(6)))
    assert counts(empty) == rows | {"moods": 1}
    assert rows_of_table(empty, "moods") == [{"thread_id": "t", "mood": "calm"}]
    async with open_store(empty) as store:
        assert store.found_version == NEXT
        assert await seen(store) == before


@pytest.mark.parametrize("upgrade", [False, True])
async def test_what_another_process_did_before_the_lock_is_not_done_again(
    backend: str, empty: str, upgrade: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if upgrade:
        await open_and_close(empty)
    become_next(monkeypatch, UPGRADE)
    connection: Any = StoreConnection if backend == "sqlite" else psycopg.AsyncConnection
    execute, others = connection.execute, [empty]

    async def execute_later(self: Any, sql: Any, *values: Any) -> Any:
        if sql in ("BEGIN IMMEDIATE", "SELECT pg_advisory_xact_lock(%s)") and others:
            await open_and_close(others.pop())
        return await execute(self, sql, *values)

    monkeypatch.setattr(connection, "execute", execute_later)
    await open_and_close(empty)
    assert not others, "another one opened it between the look and the lock"
    assert ("moods" in counts(empty)) == upgrade
    async with open_store(empty) as store:
        assert store.found_version == NEXT


async def test_a_store_that_is_only_read_is_not_upgraded(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await open_and_close(empty)
    before = schema_of(empty)
    become_next(monkeypatch, UPGRADE)
    with pytest.raises(StoreUnavailable, match=f"version {SCHEMA_VERSION}, and --read-only.*longthread db upgrade"):
        async with open_store(empty, read_only=True):
            raise AssertionError("it cannot be opened")
    for read_only in (True, False):
        async with open_store(empty, migrates=False, read_only=read_only) as store:
            found = await status_of(store)
            assert (found.schema, found.latest) == (SCHEMA_VERSION, NEXT)
    assert schema_of(empty) == before


async def test_a_store_of_version_49_is_as_a_new_one_and_keeps_what_it_has(empty: str, tmp_path: Path) -> None:
    async with open_store(empty) as store:
        await turns(store, 8)
        written = await seen(store)
    new = columns_of(empty)
    become_version_49(empty)
    assert columns_of(empty) != new
    async with open_store(empty) as store:
        assert store.found_version == 49
        assert await seen(store) == written
    assert columns_of(empty) == new


def columns_of(address: str) -> dict[str, list[str]]:
    return columns_of_postgres(address) if "://" in address else columns_of_sqlite(address)


def become_version_49(address: str) -> None:
    """Take away what version 50 added."""
    added = [name for name in columns_of(address) if name.startswith("access_")]
    parts = [("runs", "asker"), ("runs", "key_id"), ("queued_questions", "asker"), ("queued_questions", "key_id")]
    statements = [f"DROP TABLE {name}" for name in reversed(added)]
    statements += [f"ALTER TABLE {table} DROP COLUMN {column}" for table, column in parts]
    if "://" in address:
        with psycopg.connect(address) as connection:
            for statement in statements:
                connection.execute(f"{statement} CASCADE".encode())
    else:
        with closing(sqlite3.connect(address)) as file:
            for statement in statements:
                file.execute(statement)
            file.commit()
    set_version(address, 49)


def test_each_version_from_the_first_release_on_has_its_upgrade() -> None:
    wanted = {f"upgrade_{number}.sql" for number in range(OLDEST_VERSION, SCHEMA_VERSION)}
    for dialect in ("sqlite", "postgres"):
        folder = files("longthread.store") / "sql" / dialect / "schema"
        assert {each.name for each in folder.iterdir() if each.name.startswith("upgrade")} == wanted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("version", [1, 26, 48])
async def test_a_store_from_before_the_first_release_is_told_the_commit_that_upgrades_it(
    empty: str, version: int
) -> None:
    await open_and_close(empty)
    set_version(empty, version)
    before = schema_of(empty)
    for migrates in (True, False):
        with pytest.raises(
            StoreUnavailable, match=f"version {version}, .*commit 9a783799 .*longthread db upgrade.* 49"
        ):
            async with open_store(empty, migrates=migrates):
                raise AssertionError("it cannot be opened")
    assert schema_of(empty) == before


@pytest.mark.parametrize("version", [48, 9999])
async def test_a_file_of_a_version_that_is_refused_keeps_its_bytes(tmp_path: Path, version: int) -> None:
    path = tmp_path / "c.db"
    await open_and_close(str(path))
    with closing(sqlite3.connect(path)) as file:  # as another program may leave it
        file.execute("PRAGMA journal_mode = DELETE")
        file.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for migrates in (True, False):
        with pytest.raises(StoreError, match=f"version {version}"):
            async with open_store(path, migrates=migrates):
                raise AssertionError("it cannot be opened")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def schema_of(address: str) -> Schema:
    """All that a database says of its tables, views, indexes and triggers."""
    if "://" not in address:
        return _schema_of_file(address)
    parts = {
        "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
        "FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, ordinal_position",
        "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1",
        "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2",
        "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema() ORDER BY 1",
        "triggers": "SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger "
        "WHERE NOT tgisinternal ORDER BY 1, 2",
        "functions": "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace "
        "ORDER BY 1, 2",
        "statistics": "SELECT attrelid::regclass::text, attname, attstattarget, attstorage FROM pg_attribute "
        "JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = current_schema()::regnamespace AND attnum > 0 "
        "AND NOT attisdropped ORDER BY 1, 2",
        "options": "SELECT relname, reloptions FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
        "ORDER BY 1",
        "operators": "SELECT oprname, oprleft::regtype::text, oprright::regtype::text, oprcode::text FROM pg_operator "
        "WHERE oprnamespace = current_schema()::regnamespace ORDER BY 1, 2, 3",
    }
    with psycopg.connect(address) as connection:
        return {name: connection.execute(sql).fetchall() for name, sql in parts.items()}


def _schema_of_file(path: str) -> Schema:
    with closing(sqlite3.connect(path)) as file:
        objects = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        return {"objects": objects, "version": file.execute("PRAGMA user_version").fetchall()}


async def test_several_may_open_an_empty_database_at_once(empty: str) -> None:
    await asyncio.gather(*(open_and_close(empty) for _ in range(6)))
    async with open_store(empty) as store:
        assert store.found_version == SCHEMA_VERSION


@pytest.mark.parametrize("begun", ["empty", "older"])
async def test_an_upgrade_that_fails_changes_nothing(begun: str, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if begun == "older":
        await open_and_close(empty)
    before = schema_of(empty)
    with monkeypatch.context() as patch:
        become_next(patch, UPGRADE, views="\nDROP TABLE there_is_none;\n")
        with pytest.raises(StoreUnavailable, match="there_is_none"):
            await open_and_close(empty)
    assert schema_of(empty) == before
    become_next(monkeypatch, UPGRADE)
    await open_and_close(empty)
    async with open_store(empty) as store:
        assert store.found_version == NEXT


async def test_a_store_of_a_newer_version_is_left_alone(empty: str) -> None:
    await open_and_close(empty)
    set_version(empty, 9999)
    with pytest.raises(StoreTooNew, match=f"9999, and this Longthread knows {SCHEMA_VERSION}"):
        await open_and_close(empty)


@pytest.mark.postgres
@pytest.mark.parametrize("made", ["TABLE messages (id INT)", "VIEW threads AS SELECT 1 AS x"])
def test_tables_of_another_program_are_refused_and_left_alone(
    postgres_url: str, admin: psycopg.Connection[Any], made: str
) -> None:
    admin.execute(f"CREATE {made}")
    before = columns_of_postgres(postgres_url)
    with pytest.raises(StoreUnavailable, match=r"another program \((messages|threads)\).*of its own"):
        asyncio.run(open_and_close(postgres_url))
    with pytest.raises(StoreUnavailable, match=r"another program \((messages|threads)\).*of its own"):
        asyncio.run(_look(postgres_url))
    assert columns_of_postgres(postgres_url) == before


async def _look(address: str) -> None:
    async with open_store(address, creates=False, migrates=False):
        raise AssertionError("there is no store")


@pytest.mark.postgres
def test_a_schema_of_its_own_lies_beside_another_programs_tables(
    postgres_url: str, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("CREATE TABLE threads (id INT)")
    separator = "&" if "?" in postgres_url else "?"
    own = f"{postgres_url}{separator}options=-csearch_path%3Down"
    with pytest.raises(StoreUnavailable, match="names no schema"):
        asyncio.run(open_and_close(own))
    admin.execute("CREATE SCHEMA own")
    asyncio.run(open_and_close(own))
    [[tables]] = admin.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == 1


@pytest.mark.postgres
def test_a_database_that_cannot_hold_all_text_is_refused(postgres_server: str, postgres_url: str) -> None:
    name = f"{psycopg.conninfo.conninfo_to_dict(postgres_url)['dbname']}_ascii"
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        try:
            with pytest.raises(StoreUnavailable, match="encoding is SQL_ASCII"):
                asyncio.run(open_and_close(_other(postgres_url, name)))
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _other(url: str, database: str) -> str:
    from longthread.tools.analysis.address import SourceUrl

    return replace(SourceUrl.parse(url), database=database).text()


async def test_a_file_tells_its_version_and_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_store(path) as store:
        assert isinstance(store, SqliteDriver)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA application_id").fetchone() == (0x4C4F4E47,)
