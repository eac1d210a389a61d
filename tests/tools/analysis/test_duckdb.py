# ruff: noqa: E501 - a statement reads better in one line
from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from longthread.errors import SourceError
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]

SCRIPT = """
CREATE TABLE rockets (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, flown BOOLEAN, seen TIMESTAMPTZ);
COMMENT ON TABLE rockets IS '运载火箭';
COMMENT ON COLUMN rockets.name IS '名称';
CREATE TABLE launches (id INTEGER, rocket_id INTEGER REFERENCES rockets(id));
INSERT INTO rockets SELECT range, 'rocket ' || range % 3, range % 2 = 0, TIMESTAMPTZ '2020-01-01 00:00:00+00' FROM range(100);
CREATE SCHEMA archive;
CREATE TABLE archive.old (price DECIMAL(9, 2));
CREATE VIEW flown AS SELECT name FROM rockets WHERE flown;
CREATE MACRO twice(x) AS x * 2;
"""


@pytest.fixture
async def source(tmp_path: Path, opened: Opened) -> Source:
    with duckdb.connect(str(tmp_path / "made.duckdb")) as connection:
        connection.execute(SCRIPT)
    return await opened(tmp_path / "made.duckdb", seconds=1)


async def test_the_catalog(source: Source, ask: Any) -> None:
    data = (await ask(source, "list_tables"))["data"]
    assert sorted(data["tables"]) == ["archive.old", "flown", "launches", "rockets"]
    assert data["about"]["rockets"] == {"rows": 100, "kind": "table", "comment": "运载火箭"}
    assert data["about"]["flown"] == {"rows": 50, "kind": "view"}
    rockets = (await ask(source, "describe_table", table="rockets"))["data"]
    columns = {column["name"]: column for column in rockets["columns"]}
    assert rockets["primary_key"] == ["id"]
    assert columns["name"]["comment"] == "名称"
    assert columns["name"]["values"] == ["rocket 0", "rocket 1", "rocket 2"]
    assert columns["flown"]["values"] == [False, True]
    assert columns["seen"]["min"].startswith("2020-01-01")
    assert rockets["referenced_by"] == [{"table": "launches", "columns": ["rocket_id"], "references": ["id"]}]
    assert (await ask(source, "sample_rows", table="archive.old"))["data"]["columns"] == ["price"]


async def test_rows(source: Source, ask: Any) -> None:
    sql = "SELECT twice(id), seen FROM rockets ORDER BY id DESC LIMIT 1"
    rows = (await ask(source, "run_sql", sql=sql))["data"]["rows"]
    assert rows[0][0] == 198
    assert rows[0][1].startswith("2020-01-01")
    assert (await ask(source, "run_sql", sql="FROM range(1000000)"))["data"]["shown"] == "100 of more than 100000"
    for sql in (
        "SUMMARIZE rockets",
        "DESCRIBE rockets",
        "EXPLAIN FROM rockets",
        "PIVOT rockets ON name USING count(*)",
    ):
        assert (await ask(source, "run_sql", sql=sql))["data"]["row_count"] > 0


async def test_an_unknown_column_is_named_with_its_neighbours(source: Source, ask: Any) -> None:
    message = (await ask(source, "run_sql", sql="SELECT nam FROM rockets"))["error"]["message"]
    assert "name (of rockets)" in message


async def test_attacks_that_may_run_are_stopped(source: Source) -> None:
    for sql in (
        "SELECT count(*) FROM range(1000000000000)",
        "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 3",
        "SELECT string_agg(repeat('x', 1000000), ',') FROM range(1000000)",
    ):
        started = time.monotonic()
        with pytest.raises(SourceError, match="stopped after|memory"):
            await source.work(lambda connection, sql=sql: connection.query(sql).first())  # type: ignore[misc]
        assert time.monotonic() - started < 5, sql


async def test_the_engine_refuses_to_write_and_to_reach_out(source: Source, tmp_path: Path) -> None:
    for sql in (
        "INSERT INTO rockets VALUES (1000, 'x', true, NULL)",
        "DROP TABLE rockets",
        "CREATE TABLE x (a INT)",
        f"COPY rockets TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/new.duckdb'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SET lock_configuration = false",
        "SET enable_external_access = true",
    ):
        with pytest.raises(SourceError):
            await source.work(lambda connection, sql=sql: list(connection.query(sql)))  # type: ignore[misc]
    assert [path.name for path in tmp_path.iterdir()] == ["made.duckdb"]
