"""No observation is longer than its bound, and what is left out can be asked for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from longthread.model.fold import Facts
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.result import Result
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.table_descriptions import Profile, comment_of, describe_tables, description

Opened = Callable[..., Awaitable[Source]]
LIMITS = Limits()


def bytes_of(data: Any) -> int:
    return len(json.dumps(data, ensure_ascii=False, default=str).encode())


def wide(columns: int, comment: str = "", values: int = 0) -> tuple[Table, Profile]:
    names = [f"measurement_{n}" for n in range(columns)]
    made = tuple(Column(name, "TEXT", comment=comment or None) for name in names)
    known = {"distinct": values, "values": ["数据" * 90] * values, "min": "a" * 200, "max": "z" * 200} if values else {}
    return Table("wide", "wide", columns=made), Profile({name: dict(known) for name in names}, rows=7)


@pytest.mark.parametrize("columns", [1, 300])
@pytest.mark.parametrize("comment", ["", "说明" * 400, "x" * 100_000])
@pytest.mark.parametrize("values", [0, 20])
def test_a_description_has_a_bound(columns: int, comment: str, values: int) -> None:
    table, found = wide(columns, comment, values)
    told = description(Schema([table]), table, table.columns, found, LIMITS)
    assert bytes_of({"ok": True, "data": told}) <= 64_000
    assert (told["columns_shown"], "next" in told) == (f"{columns} of {columns}", False)
    assert [column["name"] for column in told["columns"]] == [column.name for column in table.columns]
    assert ("in_short" in told) == (columns == 300 and bool(comment or values))


def test_columns_that_have_no_room_are_on_further_pages() -> None:
    table, found = wide(3_000)
    seen: list[str] = []
    begin: int | None = 0
    while begin is not None:
        part = description(Schema([table]), table, table.columns[begin : begin + 300], found, LIMITS, begin)
        assert bytes_of(part) <= 64_000
        # Only the beginning is what is known of the table.
        assert ("table_name" in part, "primary_key" in part) == (begin == 0, begin == 0)
        seen += [column["name"] for column in part["columns"]]
        begin = part.get("next")
    assert seen == [column.name for column in table.columns]


def test_a_part_of_a_description_is_not_learned_in_the_place_of_its_beginning() -> None:
    table, found = wide(600)
    facts = Facts()
    for begin in (0, 300):
        part = description(Schema([table]), table, table.columns[begin : begin + 300], found, LIMITS, begin)
        facts.learn("describe_table", {"ok": True, "data": part})
    assert facts.schemas["wide"]["columns"][0]["name"] == "measurement_0"


def test_a_long_comment_is_read_page_by_page() -> None:
    text = "".join(f"{n} " for n in range(20_000))
    table = Table("t", "t", comment=text)
    read, begin = "", 0
    while begin is not None:
        part = comment_of(table, begin, LIMITS) if begin else description(Schema([table]), table, (), Profile(), LIMITS)
        assert part["comment_shown"].endswith(f"of {len(text):,}")
        assert bytes_of(part) <= 64_000
        read, begin = read + part["comment"], part.get("comment_next")
    assert read == text


def test_thousands_of_tables_that_refer_to_one_are_counted() -> None:
    hub = Table("hub", "hub", columns=(Column("id", "INT"),), primary_key=("id",))
    keys = [Table(f"spoke_{n}", "s", foreign_keys=(ForeignKey(("hub_id",), "hub", ("id",)),)) for n in range(5_000)]
    told = description(Schema([hub, *keys]), hub, hub.columns, Profile(), LIMITS)
    assert bytes_of(told) <= 64_000
    assert told["referenced_by_shown"] == f"{len(told['referenced_by'])} of 5000"


def test_a_list_of_tables_has_a_bound() -> None:
    tables = [Table(f"table_{n}", "t", comment="这张表说明很多事情。" * 500) for n in range(500)]
    told = describe_tables(tables, {}, LIMITS)
    assert 0 < len(told) < 500
    assert bytes_of([list(told), told]) <= 64_000 - 4_000
    assert told["table_0"]["comment"].endswith("… (5000 characters)")


@pytest.mark.parametrize("columns", [1, 100, 1_600, 20_000])
def test_a_result_has_a_bound_whatever_its_columns(columns: int) -> None:
    names = [f"a_rather_long_column_name_{n}" for n in range(columns)]
    result = Result(names, [["数据" * 20] * columns for _ in range(20)], counted=20)
    data = result.build_observation(LIMITS, 20, beside=10_000)
    assert bytes_of(data) <= 54_000
    assert data["row_count"] >= 1
    assert all(len(row) == len(data["columns"]) for row in data["rows"])
    if columns > 1_000:
        assert f"Only the first {len(data['columns'])} of {columns} columns fit." in data["notes"][0]
        assert data["truncated"]


async def test_thousands_of_tables_are_listed_page_by_page(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    source = await opened(make_sqlite(";".join(f"CREATE TABLE table_{n:04} (id INT)" for n in range(1_200))))
    likely = (await ask(source, "list_tables"))["data"]
    assert (likely["shown"], "next" in likely) == ("20 of 1200", False)
    assert "`offset`" in likely["notes"][-1]
    seen: list[str] = []
    begin: int | None = 0
    while begin is not None:
        part = (await ask(source, "list_tables", offset=begin))["data"]
        seen, begin = seen + part["tables"], part.get("next")
    assert seen == [f"table_{n:04}" for n in range(1_200)]
    named = (await ask(source, "list_tables", pattern="table_0*", offset="500"))["data"]
    assert (named["tables"][0], named["shown"], "next" in named) == ("table_0500", "500 of 1000", False)
    assert (await ask(source, "list_tables", offset=5_000))["error"]["type"] == "invalid_input"


async def test_one_column_is_described_whole(opened: Opened, ask: Any, make_sqlite: Any) -> None:
    columns = ", ".join(f"c{n} TEXT" for n in range(300))
    rows = [tuple(f"{row}-{n}-" + "lorem ipsum dolor " * 20 for n in range(300)) for row in range(20)]
    source = await opened(make_sqlite(f"CREATE TABLE wide ({columns})", wide=rows))
    told = await ask(source, "describe_table", table="wide")
    assert bytes_of(told) <= 64_000
    assert told["data"]["columns_shown"] == "300 of 300"
    one = (await ask(source, "describe_table", table="wide", column="C7"))["data"]
    assert (one["table"], one["column"]["name"], len(one["column"]["values"])) == ("wide", "c7", 20)
    assert "table_name" not in one
    wrong = (await ask(source, "describe_table", table="wide", column="c999"))["error"]
    assert wrong["type"] == "unknown_column" and "of wide are: " in wrong["message"]
    assert (await ask(source, "describe_table", table="wide", offset=301))["error"]["type"] == "invalid_input"
    sampled = (await ask(source, "sample_rows", table="wide", limit=20))["data"]
    assert bytes_of(sampled) <= 64_000
    assert 0 < sampled["row_count"] < 20
    assert sampled["shown"] == f"{sampled['row_count']} of 20"
    assert "bytes" in sampled["notes"][-1]


LONG = "说明 it''s " * 20_000


async def test_long_comments_of_duckdb_have_a_bound(opened: Opened, ask: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.duckdb"
    with duckdb.connect(str(path)) as connection:
        for n in range(30):
            connection.execute(f"CREATE TABLE t{n} (id INT, name TEXT); COMMENT ON TABLE t{n} IS '{LONG}'")
            connection.execute(f"COMMENT ON COLUMN t{n}.name IS '{LONG}'")
    await check_comments(await opened(path), ask)


async def test_long_comments_of_postgresql_have_a_bound(opened: Opened, ask: Any, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for n in range(30):
            connection.execute(f"CREATE TABLE t{n} (id INT, name TEXT)".encode())
            connection.execute(f"COMMENT ON TABLE t{n} IS '{LONG}'".encode())
            connection.execute(f"COMMENT ON COLUMN t{n}.name IS '{LONG}'".encode())
    await check_comments(await opened(postgres_url), ask)


async def check_comments(source: Source, ask: Any) -> None:
    text = LONG.replace("''", "'")
    tables = await ask(source, "list_tables")
    assert bytes_of(tables) <= 64_000
    assert tables["data"]["shown"] == "30 of 30"
    told = await ask(source, "describe_table", table="t7")
    assert bytes_of(told) <= 64_000
    assert told["data"]["comment_shown"].endswith(f"of {len(text):,}")
    rest = await ask(source, "describe_table", table="t7", comment_from=told["data"]["comment_next"])
    assert text.startswith(told["data"]["comment"] + rest["data"]["comment"])
    column = await ask(source, "describe_table", table="t7", column="name", comment_from="100")
    assert bytes_of(column) <= 64_000
    assert text[100:].startswith(column["data"]["column"]["comment"])
