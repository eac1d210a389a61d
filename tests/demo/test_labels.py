"""Labels of enumerations: told by `describe_table` on every engine, and found by the demo model as values."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver
from tests.engines import ENGINES

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import labels_of_checks, labels_of_type
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.tool import Tool

pytestmark = pytest.mark.one_backend

LABELS = {
    "level": ["gold", "silver", 'it\'s "new"'],
    "state": ["open", "shut"],
    "many": ["gold", "silver", 'it\'s "new"'],
    "plain": None,
}
_ROWS = "INSERT INTO members (id, level, state, plain) VALUES (1, 'gold', 'open', 'x'), (2, 'gold', 'open', 'y')"
_LISTED = """'gold', 'silver', 'it''s "new"'"""
_MADE = {
    "sqlite": f"""CREATE TABLE members (id INTEGER PRIMARY KEY, level TEXT NOT NULL CHECK (level IN ({_LISTED})),
        "state" TEXT, many TEXT, plain TEXT, CHECK ("State" IN ('open', 'shut') AND id > 0),
        CONSTRAINT c CHECK (many IS NULL OR many IN ({_LISTED}))); {_ROWS};""",
    "duckdb": f"""CREATE TYPE tier AS ENUM ({_LISTED});
        CREATE TABLE members (id INTEGER PRIMARY KEY, level tier, state TEXT CHECK (state = 'open' OR state = 'shut'),
            many tier[], plain TEXT); {_ROWS};""",
    "postgresql": f"""CREATE TYPE tier AS ENUM ({_LISTED}); CREATE DOMAIN rank AS tier NOT NULL;
        CREATE TABLE members (id int PRIMARY KEY, level tier, state varchar(9) CHECK (state IN ('open', 'shut')),
            many rank[], plain text CHECK (plain <> 'z')); {_ROWS};""",
    "mysql": f"""CREATE TABLE members (id int PRIMARY KEY, level enum({_LISTED}), state enum('open', 'shut'),
        many set({_LISTED}), plain varchar(9)); {_ROWS};""",
}


@pytest.fixture(params=ENGINES)
async def tools(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[dict[str, Tool]]:
    """The analyst's tools over a table of members."""
    engine = request.param
    made = _MADE[engine]
    if engine in ("sqlite", "duckdb"):
        url = str(tmp_path / f"members.{engine}")
        if engine == "sqlite":
            with closing(sqlite3.connect(url)) as connection:
                connection.executescript(made)
        else:
            duckdb.connect(url).execute(made).close()
    else:
        url = str(request.getfixturevalue(f"{'postgres' if engine == 'postgresql' else engine}_url"))
        if engine == "mysql":
            mysqlserver.run(url, made)
        else:
            with psycopg.connect(url, autocommit=True) as server:
                server.execute(made.encode())
    async with await open_source(url) as source:
        yield {tool.name: tool for tool in analysis_tools(source)}


async def test_labels_are_told(tools: dict[str, Tool]) -> None:
    data = (await tools["describe_table"].call({"table": "members"}))["data"]
    columns = {column["name"]: column for column in data["columns"]}
    assert {name: columns[name].get("labels") for name in LABELS} == LABELS
    assert columns["level"]["values"] == ["gold"] and columns["level"]["distinct"] == 1


async def test_the_demo_model_finds_them_as_values(tools: dict[str, Tool], converse: Any) -> None:
    talk = converse(tools)
    for question, count in (("How many gold members are there?", 2), ("有多少 silver members？", 0)):
        await talk.ask(question)
        assert talk.rows == [[count]], question


@pytest.mark.parametrize(
    ("statement", "dialect", "labels"),
    [
        ("CHECK (((level)::text = ANY ((ARRAY['a'::character varying])::text[])))", "postgresql", {"level": ("a",)}),
        ("CHECK ((level <> ''::text))", "postgresql", {}),
        ("CHECK(((m = 'a') OR (m = 'b')))", "duckdb", {"m": ("a", "b")}),
        ("CREATE TABLE t (a TEXT CHECK (a NOT IN ('x')), b INT CHECK (b IN (1, 2)))", "sqlite", {}),
        ("CREATE TABLE t (a TEXT, b TEXT, CHECK (a = 'x' OR b = 'y'))", "sqlite", {}),
        ("CREATE TABLE t (a TEXT, CHECK (a IN ('x') OR length(a) > 3))", "sqlite", {}),
        ("CREATE TABLE t ([a b] TEXT CHECK ([a b] IN ('x', 'y''z')))", "sqlite", {"a b": ("x", "y'z")}),
        ("CREATE TABLE t (a TEXT CHECK (a in ('x') what is this", "sqlite", {}),
    ],
)
def test_conditions_that_list_labels(statement: str, dialect: str, labels: dict[str, tuple[str, ...]]) -> None:
    assert labels_of_checks(statement, dialect) == labels


def test_types_that_list_labels() -> None:
    assert labels_of_type("ENUM('a', 'b''c')[]") == ("a", "b'c")
    assert labels_of_type("set('x','y')") == ("x", "y")
    assert labels_of_type("enumeration") == labels_of_type("VARCHAR") == ()
