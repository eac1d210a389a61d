"""The schema: the same on both backends, new or upgraded, by several processes at once, and never in a database of
somebody else's."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.store import version_35
from tests.store.old import make_version_26, read

from longthread.errors import RowDamaged, StoreTooNew, StoreUnavailable
from longthread.gateway.rebuild import rebuild_missing
from longthread.langgraph import LongthreadSaver
from longthread.store import runs
from longthread.store.backends import migrate, sqlite
from longthread.store.backends.migrate import SCHEMA_VERSION
from longthread.store.backends.sqlite import SqliteDriver
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.schema import schema
from longthread.store.transfer.archive import export_lines
from longthread.testing.contract.history import KINDS, run_id, turn

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


@pytest.fixture
def version_26(empty: str) -> str:
    """The address of a store at version 26."""
    return make_version_26(empty)


async def test_a_store_at_version_26_opens_and_loses_nothing(backend: str, version_26: str) -> None:
    before = [json.loads(line) for line in read(f"{backend}.jsonl").strip().split("\n")]
    async with open_store(version_26) as store, store.reading() as tx:
        assert store.found_version == 26
        threads = [line["thread"] for line in before if "thread" in line]
        after = [json.loads(line) async for line in export_lines(tx, threads, lambda *_: None)]
    assert [kind for kind, _ in map(_line, after)] == [kind for kind, _ in map(_line, before)]
    for (_, was), (kind, now) in list(zip(map(_line, before), map(_line, after), strict=True))[1:-1]:
        expected = {**now, **was}
        expected.pop("lease_until", None)
        if kind == "entries" and was["id"] in ("q2", "q3"):  # wishes to go on, told by their words alone until then
            expected["metadata"] = {**was["metadata"], "continues": True}
        assert now == expected


async def test_every_row_of_version_26_is_there_after_the_upgrade(version_26: str) -> None:
    before = counts(version_26)
    await open_and_close(version_26)
    after = counts(version_26)
    assert before.pop("run_bundles") == 2
    before["runs"] += 29 + 1
    before["agents"] += 1  # the assistant, which is built in
    assert before.items() <= after.items()
    assert {name for name, rows in before.items() if not rows} <= {"recall_bound", "recall_volumes"}, before


async def upgrade_to(version: int, address: str, patch: pytest.MonkeyPatch) -> None:
    """Upgrade a store to an older version. Its views are those it had: today's name columns that come later."""
    patch.setattr(migrate, "SCHEMA_VERSION", version)
    for module in (migrate, sqlite):
        patch.setattr(module, "schema", lambda dialect, part: "" if part == "views" else schema(dialect, part))
    await open_and_close(address)


async def test_a_store_at_version_33_opens_and_loses_nothing(
    backend: str, version_26: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        await upgrade_to(33, version_26, patch)
    assert counts(version_26)["run_bundles"] == 2
    async with open_store(version_26) as store, store.reading() as tx:
        assert store.found_version == 33
        lines = [json.loads(line) async for line in export_lines(tx, ["t"], lambda *_: None)]
        before = map(json.loads, read(f"{backend}.jsonl").strip().split("\n"))
        wanted = [line for line in before if line.get("table") == "runs" and line["row"]["id"].startswith("r0")]
        assert [line for line in lines if line.get("table") == "runs"] == wanted
        assert len(wanted) == 40


async def test_a_store_at_version_35_opens_and_loses_nothing_of_the_gateways(
    version_26: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        await upgrade_to(35, version_26, patch)
    version_35.insert(version_26)
    before = [row for name, row in version_35.rows() if name == "gateway_nodes"]
    async with open_store(version_26) as store:
        assert store.found_version == 35
        async with store.reading() as tx:
            await version_35.expect_calls(tx)
            nodes = await tx.fetch(Sql(_NODES))
        assert [tuple(row.values()) for row in nodes] == sorted(tuple(row.values()) for row in before)
        assert await rebuild_missing(store) == 0
        async with store.writing() as tx:
            await tx.run(Sql("DELETE FROM gateway_nodes"))
        assert await rebuild_missing(store) == 5, "the messages are read as before"
        async with store.reading() as tx:
            rebuilt = await tx.fetch(Sql(_NODES))
        anew = [row for row in rebuilt if row["place"] >= 0]
        assert len(rebuilt) > len(anew), "replies are found by themselves, too"
        # Entry 4 of one thread has a call with 1.0, which is 1 now. From there on, that thread has other nodes.
        others = {(row["thread_id"], row["seq"]) for row, now in zip(nodes, anew, strict=True) if row != now}
        assert {seq for _, seq in others} == {4, 5, 6, 7}
        assert len({thread_id for thread_id, _ in others}) == 1
        assert [{**row, "node": 0} for row in anew] == [{**row, "node": 0} for row in nodes]


async def test_a_store_at_version_47_keeps_its_memories_and_they_outlive_their_threads(
    version_26: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        await upgrade_to(47, version_26, patch)
    before = {name: rows_of_table(version_26, name) for name in ("memories", "memory_sources", "memory_uses")}
    assert all(before.values()), "the sample has some of each"
    async with open_store(version_26) as store:
        assert store.found_version == 47
    after = {name: rows_of_table(version_26, name) for name in before}
    for row in after["memories"]:
        assert (row.pop("said_at") is None) == (row["session_id"] is None), "when a thread said it last"
    new = dict.fromkeys(("origin", "source_deleted_at"))
    assert after == before | {"memories": [row | new for row in before["memories"]]}
    of_threads = [row for row in before["memories"] if row["session_id"] is not None]
    assert of_threads
    async with open_store(version_26) as store, store.writing() as tx:
        await tx.run(Sql("DELETE FROM threads"))
    left = {row["id"]: row for row in rows_of_table(version_26, "memories")}
    assert len(left) == len(before["memories"])
    for row in of_threads:
        assert left[row["id"]]["session_id"] is None and left[row["id"]]["source_deleted_at"] is not None


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


_NODES = (
    "SELECT t.id AS thread_id, n.seq, n.place, n.node, n.call "
    "FROM gateway_nodes n JOIN threads t ON t.number = n.thread "
    "ORDER BY t.id, n.seq, n.place"
)


async def test_a_damaged_bundle_is_named_and_nothing_is_changed(backend: str, version_26: str) -> None:
    statement = "UPDATE run_bundles SET body = {} WHERE thread_id = 't'"
    if backend == "sqlite":
        with closing(sqlite3.connect(version_26)) as file, file:
            file.execute(statement.format("x'01ff'"))
    else:
        with psycopg.connect(version_26) as connection:
            connection.execute(statement.format("'\\x01ff'").encode())
    before = counts(version_26)
    with pytest.raises(RowDamaged, match="r00000 to r00036 of thread t.*Restore a backup.*DELETE FROM run_bundles"):
        await open_and_close(version_26)
    assert counts(version_26) == before


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


def _line(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return (line["table"], line["row"]) if "table" in line else ("", line)


async def test_an_upgraded_store_has_the_schema_of_a_new_one(version_26: str, store_address: str) -> None:
    await open_and_close(version_26)
    await open_and_close(store_address)
    assert schema_of(version_26) == schema_of(store_address)


async def test_an_upgraded_store_goes_on(version_26: str) -> None:
    async with open_store(version_26) as store:
        async with store.writing() as tx:
            await turn(tx, 40)
        async with store.reading() as tx:
            found = await runs.list_runs(tx, "t", limit=100)
            assert [run.id for run in found] == [run_id(number) for number in range(40, -1, -1)]
            telling = [number for number in range(41) if KINDS[number % len(KINDS)] != "silent"]
            assert len(await runs.steps_from(tx, "t", 0)) == 2 * len(telling)
    async with LongthreadSaver.from_conn_string(version_26) as saver:
        last = await saver.aget_tuple({"configurable": {"thread_id": "graph"}})
        assert last is not None
        said = [message.content for message in last.checkpoint["channel_values"]["messages"]]
        assert said == ["question 0", "答 1", "question 1", "答 3"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("version", [1, 12, 25, 27, 32])
async def test_a_store_of_another_version_is_told_what_brings_it_up(
    backend: str, version_26: str, version: int
) -> None:
    if backend == "sqlite":
        with closing(sqlite3.connect(version_26)) as file:
            file.execute(f"PRAGMA user_version = {version}")
    else:
        with psycopg.connect(version_26) as connection:
            connection.execute("DELETE FROM longthread_migrations")
            connection.execute("INSERT INTO longthread_migrations VALUES (%s, '', '')", [version])
    before = schema_of(version_26)
    for migrates in (True, False):
        with pytest.raises(StoreUnavailable, match=f"version {version}, .*commit ef76715 .*longthread db upgrade"):
            async with open_store(version_26, migrates=migrates):
                raise AssertionError("it cannot be opened")
    assert schema_of(version_26) == before


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
    """What SQLite's catalog says, but for orders that mean nothing: an upgrade adds columns and indexes later."""
    with closing(sqlite3.connect(path)) as file:
        objects = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        found: Schema = {name: _table(file, name) for kind, name, _, _ in objects if kind == "table"}
    found["words"] = [(name, *sorted(_plain(sql))) for kind, name, _, sql in objects if kind == "table"]
    found["others"] = [(*each[:3], *_plain(each[3] or "")) for each in objects if each[0] != "table"]
    return found


def _table(file: sqlite3.Connection, name: str) -> list[tuple[Any, ...]]:
    indexes = sorted(each[1:] for each in file.execute(f'PRAGMA index_list("{name}")'))
    parts = ("table_list", "table_xinfo", "foreign_key_list")
    return [*indexes, *(row for part in parts for row in file.execute(f'PRAGMA {part}("{name}")'))]


def _plain(sql: str) -> list[str]:
    """The words of a statement, without comments."""
    return re.findall(r"\w+|'[^']*'|[^\w\s\"]", re.sub(r"--[^\n]*", "", sql))


async def test_several_may_open_an_empty_database_at_once(empty: str) -> None:
    await asyncio.gather(*(open_and_close(empty) for _ in range(6)))
    async with open_store(empty) as store:
        assert store.found_version == SCHEMA_VERSION


@pytest.mark.parametrize("begun", ["empty", "version_26"])
async def test_an_upgrade_that_fails_changes_nothing(begun: str, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = make_version_26(empty) if begun == "version_26" else empty
    before = schema_of(address)

    def broken(dialect: str, part: str) -> str:
        return schema(dialect, part) + "\nDROP TABLE there_is_none;\n" * (part == "views")

    for module in (migrate, sqlite):
        monkeypatch.setattr(module, "schema", broken)
    with pytest.raises(StoreUnavailable, match="there_is_none"):
        await open_and_close(address)
    assert schema_of(address) == before
    monkeypatch.undo()
    await open_and_close(address)
    async with open_store(address) as store:
        assert store.found_version == SCHEMA_VERSION


async def test_a_store_of_a_newer_version_is_left_alone(
    backend: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "SCHEMA_VERSION", 9999)
    await open_and_close(empty)
    monkeypatch.undo()
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
    from longthread.tools.analysis.url import SourceUrl

    return replace(SourceUrl.parse(url), database=database).text()


async def test_a_file_tells_its_version_and_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_store(path) as store:
        assert isinstance(store, SqliteDriver)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("PRAGMA application_id").fetchone() == (0x4C4F4E47,)
