"""Listings and descriptions of tables are told to a model in a third of their tokens."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_text import observed_text, schema_text
from longthread.tools.analysis.schema_values import SourceValues
from longthread.tools.analysis.table_descriptions import Profile, description
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.view.tokens import ANY, estimate


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A database of 29 tables with keys, and some rows."""
    path = tmp_path / "many.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for n in range(29):
            connection.execute(
                f"CREATE TABLE department_{n} (id INTEGER PRIMARY KEY, customer_name TEXT, city TEXT, amount REAL, "
                f"created_at TEXT, parent_id INTEGER REFERENCES department_{max(0, n - 1)} (id))"
            )
            rows = [(k, f"Kunde {k}", ["Köln", "北京"][k % 2], k * 1.5, f"2024-01-{k + 1:02}", None) for k in range(20)]
            connection.executemany(f"INSERT INTO department_{n} VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    return str(path)


async def measured(spec: str) -> dict[str, int]:
    """The tokens of a source's listing and of all its descriptions, as JSON and as told, and of its plain DDL."""
    source = await open_source(spec)
    try:
        schema = await source.schema()
        calls: list[tuple[str, dict[str, str]]] = [("list_tables", {})]
        calls += [("describe_table", {"table": label}) for label in schema.tables]
        tools = {tool.name: tool for tool in analysis_tools(source)}
        sizes = dict.fromkeys(["list_tables", "describe_table", "list_tables told", "describe_table told"], 0)
        for action, arguments in calls:
            observation = await tools[action].call(arguments)
            told = observed_text(action, observation)
            assert told is not None
            assert all(name in told for name in (schema.tables if action == "list_tables" else arguments.values()))
            sizes[action] += estimate(json.dumps(observation, ensure_ascii=False, separators=(",", ":")))
            sizes[f"{action} told"] += estimate(told)
        ddl = schema_text(
            schema, SourceValues(), dialect="sqlite", budget=10**6, family=ANY, likely=lambda: list(schema.tables)
        )
        return sizes | {"ddl": estimate(ddl.text)}
    finally:
        await source.close()


@pytest.mark.parametrize("spec", ["demo", "many"])
async def test_tables_are_told_in_a_third_of_their_tokens(spec: str, many: str) -> None:
    sizes = await measured(many if spec == "many" else spec)
    assert 3 * sizes["list_tables told"] <= sizes["list_tables"]
    assert 3 * sizes["describe_table told"] <= sizes["describe_table"]
    assert 5 * sizes["list_tables told"] <= sizes["ddl"]
    assert sizes["describe_table told"] <= 3 * sizes["ddl"]


def told_of(table: Table, found: Profile, dialect: str = "sqlite", others: tuple[Table, ...] = ()) -> str:
    data = description(Schema([table, *others]), table, table.columns, found, Limits())
    return observed_text("describe_table", {"ok": True, "data": {"dialect": dialect, **data}}) or ""


def test_a_description_tells_keys_comments_values_and_ranges() -> None:
    key = ForeignKey(("kunde",), "kunden", ("nr",))
    table = Table(
        "orders",
        "orders",
        comment="One row an order.\nIgnore this line.",
        columns=(
            Column("id", "INTEGER", primary_key=True),
            Column("kunde", "INTEGER"),
            Column("Order Date", "TEXT", comment="when it\ncame"),
            Column("状态", "TEXT"),
            Column("name", "TEXT"),
            Column("size", "size", labels=("small", "large")),
            Column("empty", "TEXT"),
        ),
        primary_key=("id",),
        foreign_keys=(key,),
    )
    line = Table("lines", "lines", foreign_keys=(ForeignKey(("order_id",), "orders", ("id",)),))
    columns: dict[str, dict[str, Any]] = {
        "id": {"distinct": 9, "min": 1, "max": 9},
        "kunde": {"distinct": 4, "min": 1, "max": 4, "values": [1, 2, 3, 4]},
        "Order Date": {"distinct": 9, "min": "2024-01-01", "max": "2024-12-31"},
        "状态": {"distinct": 2, "values": ["已付", "it's"]},
        "name": {"distinct": 50, "values": ["x" * 40, *"abcdefghij"], "note": "9 of 9 values are numbers."},
        "empty": {"distinct": 0},
    }
    assert told_of(table, Profile(columns, rows=9), others=(line,)).splitlines() == [
        "CREATE TABLE orders ( -- 9 rows. One row an order. Ignore this line.",
        "id INTEGER PRIMARY KEY,",
        "kunde INTEGER REFERENCES kunden (nr),",
        "\"Order Date\" TEXT, -- when it came; '2024-01-01' to '2024-12-31'",
        "\"状态\" TEXT, -- '已付', 'it''s'",
        f"name TEXT, -- '{'x' * 29}…', 'a', 'b', … (50); 9 of 9 values are numbers.",
        "size size, -- 'small', 'large'",
        "empty TEXT,",
        ");",
        "-- Referenced by: lines (order_id)",
        "-- `column` shows all that is known of one.",
    ]


@pytest.mark.parametrize(("dialect", "name"), [("mysql", "`Order Date`"), ("postgresql", '"Order Date"')])
def test_names_are_quoted_as_the_dialect_does(dialect: str, name: str) -> None:
    table = Table("t", "t", columns=(Column("Order Date", "date"),))
    assert f"\n{name} date," in told_of(table, Profile(), dialect)


def test_keys_of_several_columns_stand_behind_the_columns() -> None:
    key = ForeignKey(("a", "b"), "other", ("x", "y"))
    columns = (Column("a", "INT", primary_key=True), Column("b", "INT", primary_key=True))
    told = told_of(Table("t", "t", "view", None, columns, ("a", "b"), (key,)), Profile(rows=None))
    assert told.splitlines() == [
        "CREATE VIEW t (",
        "a INT,",
        "b INT,",
        "PRIMARY KEY (a, b),",
        "FOREIGN KEY (a, b) REFERENCES other (x, y),",
        ");",
    ]


def test_what_is_left_out_is_said_with_how_to_get_it() -> None:
    columns = tuple(Column(f"measurement_{n}", "TEXT") for n in range(3_000))
    table = Table("wide", "wide", comment="说明" * 9_000, columns=columns)
    data = description(Schema([table]), table, columns[:300], Profile(rows=7, sampled_rows=5), Limits())
    lines = (observed_text("describe_table", {"ok": True, "data": data}) or "").splitlines()
    shown = f"300 of 3000 columns, more from `offset` {data['next']} on, comment from `comment_from` 8000 on"
    assert f"-- Shown: {shown}." in lines
    assert "-- Values: from the first 5 rows." in lines


async def test_a_listing_tells_views_comments_and_where_it_goes_on() -> None:
    data = {
        "fingerprint": "f",
        "tables": ["a", "V 表"],
        "shown": "2 of 900",
        "about": {
            "a": {"rows": None, "kind": "table"},
            "V 表": {"rows": 5, "kind": "view", "approximate": True, "comment": "It\nsums."},
        },
        "columns": {"a": ["x", "y"]},
        "next": 500,
        "notes": ["a: 3 lines were skipped."],
    }
    assert (observed_text("list_tables", {"ok": True, "data": data}) or "").splitlines() == [
        "2 of 900 tables, with their rows:",
        "a",
        "V 表 (view): about 5 -- It sums.",
        "-- More from `offset` 500 on.",
        "-- a: 3 lines were skipped.",
    ]


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        ("list_tables", {"ok": False, "error": {"type": "x", "message": "y"}}),
        ("list_tables", {"ok": True, "data": {"tables": ["a"]}}),
        ("list_tables", {"ok": True, "data": "3 tables"}),
        ("list_tables", {"ok": True, "data": {"fingerprint": "f", "tables": None, "shown": "1", "about": []}}),
        ("describe_table", {"ok": True, "data": {"table": "t", "column": {"name": "a"}}}),
        ("describe_table", {"ok": True, "data": {"table": "t", "comment": "long", "comment_next": 9}}),
        ("describe_table", {"ok": True, "data": {"table_name": "t", "columns": ["a"], "columns_shown": "1 of 1"}}),
        ("run_sql", {"ok": True, "data": {"columns": ["a"], "columns_shown": "1 of 1"}}),
    ],
)
def test_any_other_result_stays_as_it_is(action: str, observation: dict[str, Any]) -> None:
    assert observed_text(action, observation) is None
