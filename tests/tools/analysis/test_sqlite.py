# ruff: noqa: E501 - a statement reads better in one line
from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from longthread.errors import SourceError, SqlFailed
from longthread.tools.analysis.limits import Interrupted
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]


async def test_the_engine_refuses_what_the_guard_refuses(opened: Opened, tmp_path: Path, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1);")
    source = await opened(path)
    before = path.read_bytes()
    for sql in (
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET a = 2",
        "DELETE FROM t",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x (a)",
        "DROP TABLE t",
        f"ATTACH '{tmp_path}/new.sqlite' AS x",
        f"VACUUM INTO '{tmp_path}/copy.sqlite'",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA table_info(t)",
        "SELECT * FROM pragma_table_info('t')",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "BEGIN",
        "SELECT 1; SELECT 2",
    ):
        with pytest.raises((SourceError, Exception)) as raised:
            await source.work(lambda connection, sql=sql: list(connection.query(sql)))  # type: ignore[misc]
        assert isinstance(raised.value, SourceError), sql
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


async def test_a_value_may_not_outgrow_the_limit(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"))
    growing = "WITH RECURSIVE c(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s FROM c WHERE n < 40) SELECT max(s) FROM c"
    with pytest.raises(SourceError, match="larger than 500,000 bytes"):
        await source.work(lambda connection: connection.query(growing).first())


async def test_text_that_is_no_utf8_is_read(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a TEXT); INSERT INTO t VALUES (CAST(x'41ff42' AS TEXT));")
    data = (await ask(await opened(path), "run_sql", sql="SELECT a, x'0102' AS b FROM t"))["data"]
    assert data["rows"] == [["A\ufffdB", "x'0102'"]]


async def test_full_text_and_spatial_tables_can_be_asked(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(
        make_sqlite(
            "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('hello world'), ('other');"
            "CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1); INSERT INTO boxes VALUES (1, 0, 5), (2, 9, 10);"
        )
    )
    assert (await ask(source, "list_tables"))["data"]["tables"] == ["boxes", "notes"]
    found = await ask(source, "run_sql", sql="SELECT body FROM notes WHERE notes MATCH 'world'")
    assert found["data"]["rows"] == [["hello world"]]
    assert (await ask(source, "run_sql", sql="SELECT id FROM boxes WHERE x0 < 4"))["data"]["rows"] == [[1]]


async def test_keys_and_comments_come_from_the_ddl(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(
        make_sqlite(
            "CREATE TABLE parent (a INT, b INT, PRIMARY KEY (b, a));"
            "CREATE TABLE child ( -- 孩子\n x INT, -- 甲\n y INT, z GENERATED ALWAYS AS (x + 1),"
            " FOREIGN KEY (x, y) REFERENCES PARENT);"
            "CREATE VIEW v AS SELECT x FROM child; CREATE VIEW broken AS SELECT * FROM parent WHERE gone = 1;"
        )
    )
    child = (await ask(source, "describe_table", table="child"))["data"]
    assert child["comment"] == "孩子"
    assert child["columns"][0]["comment"] == "甲"
    assert [column["name"] for column in child["columns"]] == ["x", "y", "z"]
    assert child["foreign_keys"] == [{"columns": ["x", "y"], "table": "parent", "references": ["b", "a"]}]
    assert (await ask(source, "describe_table", table="parent"))["data"]["primary_key"] == ["b", "a"]
    assert (await ask(source, "describe_table", table="v"))["data"]["kind"] == "view"
    broken = (await ask(source, "describe_table", table="broken"))["data"]
    assert (broken["rows"], broken["columns"]) == (None, [])
    assert (await ask(source, "sample_rows", table="broken"))["error"]["type"] == "sql_failed"


@pytest.mark.slow  # test_policy.py and test_sql_judge.py run them too
async def test_the_gold_queries_run(shared_data: Path, ask: Any) -> None:
    """Every gold query that SQLite itself can run gives, through the tools, the rows that SQLite gives."""
    failed: list[str] = []
    by_database: dict[str, list[str]] = {}
    for line in (shared_data / "defog" / "gold.jsonl").read_text().splitlines():
        gold = json.loads(line)
        by_database.setdefault(gold["db"], []).extend(gold["sql"])
    for database, queries in by_database.items():
        path = shared_data / "defog" / f"{database}.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as plain:
            async with await open_source(str(path)) as source:
                for sql in queries:
                    try:
                        expected = len(plain.execute(sql).fetchall())
                    except sqlite3.Error:
                        continue
                    observation = await ask(source, "run_sql", sql=sql)
                    if not observation["ok"] or observation["data"]["total"] != expected:
                        failed.append(f"{sql}: {observation}")
    assert failed == []


async def test_attacks_that_may_run_are_stopped(opened: Opened, make_sqlite: Any) -> None:
    rows = [(n, f"user {n}") for n in range(100)]
    source = await opened(make_sqlite("CREATE TABLE users (id INTEGER, name TEXT)", users=rows), seconds=1)
    for sql in (
        "SELECT count(*) FROM users a,users b,users c,users d,users e,users f,users g,users h,users i,users j",
        "SELECT length(hex(zeroblob(900000000)))",
        "WITH RECURSIVE c(n,s) AS (SELECT 1,'x' UNION ALL SELECT n+1,s||s FROM c WHERE n<40) SELECT max(length(s)) FROM c",
        "SELECT group_concat(a.name) FROM users a, users b, users c, users d",
    ):
        started = time.monotonic()
        with pytest.raises((SourceError, Interrupted)):
            await source.work(lambda connection, sql=sql: connection.query(sql).first())  # type: ignore[misc]
        assert time.monotonic() - started < 4, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT instr(hex(zeroblob(20000000)), hex(zeroblob(10000000))||'1')",
        "WITH z AS (SELECT zeroblob(20000000) AS b) SELECT instr(hex(b), hex(b) || '1') FROM z",
        "SELECT " + ", ".join(["hex(zeroblob(20000000))"] * 60),
        "SELECT length(a || 'x') FROM t",
        "SELECT replace(a, 'x', 'yy') FROM t",
        "SELECT length(group_concat(a)) FROM t",
        "SELECT json_array(a) FROM t",
    ],
)
async def test_a_call_that_cannot_be_stopped_is_kept_small(opened: Opened, make_sqlite: Any, sql: str) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)", t=[("x" * 2_000_000,)]), seconds=2)
    started = time.monotonic()
    with pytest.raises(SqlFailed, match="larger than"):
        await source.work(lambda connection: connection.query(sql).first())
    assert time.monotonic() - started < 2
    row = await source.work(lambda connection: connection.query("-- all of it\nSELECT a FROM t").first())
    assert row is not None and len(row[0]) == 2_000_000


async def test_many_searches_in_one_row_end_in_time(opened: Opened, make_sqlite: Any) -> None:
    """Within a row nothing is interrupted: the more calls, the smaller the values."""
    source = await opened(make_sqlite("CREATE TABLE t (a)"))
    searches = ", ".join(["instr(a, b)"] * 800)
    growing = "WITH RECURSIVE c(n, a) AS (SELECT 1, '0' UNION ALL SELECT n + 1, a || a FROM c WHERE n < {}) "
    longest = growing + "SELECT {} FROM (SELECT a, substr(a, 1, length(a) / 2) || '1' AS b FROM c WHERE n = {})"
    started = time.monotonic()
    with pytest.raises(SqlFailed, match="larger than"):
        await source.work(lambda connection: connection.query(longest.format(19, searches, 19)).first())
    await source.work(lambda connection: connection.query(longest.format(14, searches, 14)).first())
    assert time.monotonic() - started < 5


async def test_an_explanation_needs_no_explanation(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"))
    for sql in ("EXPLAIN QUERY PLAN SELECT a || a FROM t", "-- how\n/* is it */ explain SELECT a FROM t"):
        assert await source.work(lambda connection, sql=sql: connection.query(sql).first())  # type: ignore[misc]


async def test_json_is_read_as_rows(opened: Any, make_sqlite: Any, ask: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)", t=[("[1, 2]",)]))
    found = await ask(source, "run_sql", sql="SELECT j.value, k.type FROM t, json_each(t.a) j, json_tree(t.a) k")
    assert found["data"]["row_count"] == 6
    assert not (await ask(source, "run_sql", sql="SELECT * FROM fts5vocab('t', 'row')"))["ok"]


@pytest.mark.parametrize("of", ["file FROM pragma_database_list", "name AS file FROM pragma_function_list"])
async def test_statistics_read_no_more_than_a_query_may(opened: Opened, ask: Any, make_sqlite: Any, of: str) -> None:
    source = await opened(make_sqlite(f"CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT {of}"))
    refused = await ask(source, "run_sql", sql="SELECT * FROM v")
    assert refused["error"]["type"] == "sql_refused"
    described = await ask(source, "describe_table", table="v")
    assert described["ok"]
    assert [set(each) & {"distinct", "min", "max", "values", "note"} for each in described["data"]["columns"]] == [
        set()
    ]
    listed = (await ask(source, "list_tables"))["data"]
    assert "v" in str(listed["tables"])
    assert (await ask(source, "describe_table", table="t"))["data"]["columns"][0]["values"] == [1]
