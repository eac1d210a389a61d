"""Migrations: the same on both backends, step by step as in one go, by several processes at once, and never in a
database of somebody else's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.memory.talking import say
from tests.store.samples import all_of

from longthread.errors import StoreTooNew, StoreUnavailable
from longthread.memory.vectors import embed_thread
from longthread.model.entry import Draft
from longthread.store import log, migrate
from longthread.store.open import open_store
from longthread.store.queries import Sql, migrations
from longthread.store.sqlite import SqliteDriver
from longthread.testing.embedding import HashEmbedder

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


def test_every_migration_is_there_for_both_backends() -> None:
    [on_sqlite, on_postgres] = [[(number, name) for number, name, _ in migrations(d)] for d in ("sqlite", "postgres")]
    assert on_sqlite == on_postgres
    assert [number for number, _ in on_sqlite] == list(range(1, len(on_sqlite) + 1))


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


async def test_step_by_step_is_as_in_one_go(
    backend: str, empty: str, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrations(backend)
    for last in range(1, len(every) + 1):
        monkeypatch.setattr(migrate, "migrations", lambda dialect, last=last: every[:last])
        async with open_store(empty) as store:
            assert store.found_version == last - 1
    monkeypatch.undo()
    await open_and_close(store_address)
    assert schema_of(empty) == schema_of(store_address)


def schema_of(address: str) -> Schema:
    """All that a database says of its tables, views, indexes and triggers."""
    if "://" not in address:
        with closing(sqlite3.connect(address)) as connection:
            rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
            return {"all": rows.fetchall()}
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
        "done": "SELECT number, name FROM longthread_migrations ORDER BY 1",
    }
    with psycopg.connect(address) as connection:
        return {name: connection.execute(sql).fetchall() for name, sql in parts.items()}


async def test_what_the_first_version_stored_is_there_after_the_last(
    backend: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrations(backend)
    monkeypatch.setattr(migrate, "migrations", lambda dialect: every[:4])
    async with open_store(empty) as store, store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u", title="T")
        await log.extend(
            tx, "t", [Draft(id="a", role="user", text="深", payload=b"\x00", metadata={"kind": "question"})]
        )
        await log.extend(tx, "t", [Draft(id="b", role="assistant", text="b")])
        await log.extend(tx, "t", [Draft(id="c", role="assistant", text="c")], parent=1)
        before = await log.entries_between(tx, "t", 1, 9)
    monkeypatch.undo()
    async with open_store(empty) as store, store.reading() as tx:
        assert await log.entries_between(tx, "t", 1, 9) == before
        assert await log.position(tx, "t") == (3, 3)
        assert (await log.find_thread(tx, "t", user_id="u")).title == "T"


async def test_old_signatures_are_made_anew(backend: str, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every, embedder = migrations(backend), HashEmbedder()
    before = next(number for number, name, _ in every if name == "signatures") - 1
    monkeypatch.setattr(migrate, "migrations", lambda dialect: every[:before])
    async with open_store(empty) as store:
        await say(store, ["one", "two"])
        await embed_thread(store, embedder, "t")
        made = (await all_of(store, derived=True))["recall_signatures"]
        async with store.writing() as tx:
            await tx.run(Sql("UPDATE recall_signatures SET stamp = 'of old'"))
    monkeypatch.undo()
    async with open_store(empty) as store:
        assert (await all_of(store, derived=True))["recall_signatures"] == []
        await embed_thread(store, embedder, "t")
        assert (await all_of(store, derived=True))["recall_signatures"] == made


async def test_system_messages_get_vectors_that_had_none(
    backend: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, embedder = migrations(backend), HashEmbedder()
    before = next(number for number, name, _ in every if name == "instructions") - 1
    monkeypatch.setattr(migrate, "migrations", lambda dialect: every[:before])
    async with open_store(empty) as store:
        await say(store, ["one"])
        async with store.writing() as tx:
            await log.extend(tx, "t", [Draft("s", "system", "two"), Draft("u", "user", "three")])
        await embed_thread(store, embedder, "t")
        async with store.writing() as tx:  # as the versions before it left them
            await tx.run(Sql("DELETE FROM memory_vectors WHERE seq = 2"))
    monkeypatch.undo()
    async with open_store(empty) as store:
        await embed_thread(store, embedder, "t")
        there = (await all_of(store, derived=True))["memory_vectors"]
        assert sorted(row["seq"] for row in there) == [1, 2, 3]


async def test_several_may_open_an_empty_database_at_once(empty: str) -> None:
    await asyncio.gather(*(open_and_close(empty) for _ in range(6)))
    async with open_store(empty) as store:
        assert store.found_version == migrate.latest(store.dialect)


async def test_a_migration_that_fails_changes_nothing(
    backend: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrations(backend)
    broken = [*every, (len(every) + 1, "broken", "CREATE TABLE half (id BIGINT);\nDROP TABLE there_is_none;\n")]
    for version, known in ((0, broken), (len(every), every), (len(every), broken)):
        monkeypatch.setattr(migrate, "migrations", lambda dialect, known=known: known)
        if known is broken:
            with pytest.raises(StoreUnavailable, match="there_is_none"):
                await open_and_close(empty)
        else:
            await open_and_close(empty)
            before = schema_of(empty)
        if version and known is broken:
            assert schema_of(empty) == before
    monkeypatch.undo()
    async with open_store(empty) as store:
        assert store.found_version == len(every)


async def test_a_store_of_a_newer_version_is_left_alone(
    backend: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrations(backend)
    newer = [*every, (9999, "newer", "CREATE TABLE newer (id BIGINT);\n")]
    monkeypatch.setattr(migrate, "migrations", lambda dialect: newer)
    await open_and_close(empty)
    monkeypatch.undo()
    with pytest.raises(StoreTooNew, match=f"9999, and this Longthread knows {len(every)}"):
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
    from sqlalchemy.engine import make_url

    return make_url(url).set(database=database).render_as_string(hide_password=False)


async def test_a_file_tells_its_version_and_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_store(path) as store:
        assert isinstance(store, SqliteDriver)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (migrate.latest("sqlite"),)
        assert connection.execute("PRAGMA application_id").fetchone() == (0x4C4F4E47,)
