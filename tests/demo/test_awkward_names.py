"""Tables and columns with awkward names are described, sampled and asked of on every engine, with every name quoted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver
from tests.engines import ENGINES

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.toolbox import analysis_tools
from longthread_demo.query.audit import audit_sql
from longthread_demo.query.plan import Condition, Dimension, PlannedMeasure, QueryPlan, field_of
from longthread_demo.query.render import sql_of
from longthread_demo.schema import Link, schema_of
from longthread_demo.talk import DemoCall, Exchange

NAMES = [
    "at", "order", "group", "desc", "select", "user", "limit", "offset", "qualify", "pivot", "rank", "key", "rows",
    "Mixed Case", "UPPER", "two words", "a.b", "it's", 'say "hi"', "back`tick", "[bracket]", "2024", "1st", "订单",
    "金额 (元)", "semi;colon", "dash--dash", "per%cent", "colon:name", "a,b", "tab\tname", "è", "?", "$1", "@x", "#x",
]  # fmt: skip


def _script(dialect: str) -> list[str]:
    """Two tables for each name: what is sold, with that name and columns of it, and of what kind."""
    made: list[str] = []
    for name in NAMES:
        q = quote_identifier(name, dialect)
        one, value = quote_identifier(f"{name} kind", dialect), quote_identifier(f"{name} value", dialect)
        made.append(f"CREATE TABLE {one} ({q} VARCHAR(20) PRIMARY KEY, {value} VARCHAR(20))")
        made.append(f"CREATE TABLE {q} ({q} VARCHAR(20), {value} INTEGER)")
        made.append(f"INSERT INTO {one} VALUES ('a', 'first'), ('b', 'second')")
        made.append(f"INSERT INTO {q} VALUES ('a', 10), ('a', 20), ('b', 5), ('c', 7)")
    return made


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database of that engine with all the tables."""
    dialect, path = str(request.param), str(tmp_path / f"names.{request.param}")
    if dialect == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(";".join(_script(dialect)))
        return path
    if dialect == "duckdb":
        with duckdb.connect(path) as database:
            for statement in _script(dialect):
                database.execute(statement)
        return path
    url = str(request.getfixturevalue("postgres_url" if dialect == "postgresql" else "mysql_url"))
    if dialect == "mysql":
        mysqlserver.run(url, ";".join(_script(dialect)))
    else:
        with psycopg.connect(url, autocommit=True) as server:
            for statement in _script(dialect):
                server.execute(statement.encode())
    return url


async def test_every_name_is_described_sampled_and_asked_of(address: str) -> None:
    source = await open_source(address)
    tools = {tool.name: tool for tool in analysis_tools(source)}

    async def data(tool: str, **args: Any) -> Any:
        seen = await tools[tool].call(args)
        assert seen["ok"], (args, seen)
        return seen["data"]

    try:
        for name in NAMES:
            kind, value = f"{name} kind", f"{name} value"
            described = [DemoCall("describe_table", {"table": table}) for table in (name, kind)]
            seen = [Exchange(call, await tools[call.name].call(call.args)) for call in described]
            schema = schema_of({"dialect": source.dialect, "tables": [name, kind]}, seen)
            assert [row[1] for row in (await data("sample_rows", table=name))["rows"]] == [10, 20, 5, 7]

            total = PlannedMeasure("sum", name, field_of(name, value))
            large = Condition(field_of(name, value), ">", (5,))
            own = QueryPlan(name, measures=(total,), dimensions=(Dimension((field_of(name, name),)),), order=total)
            rows = (await data("run_sql", sql=sql_of(own, schema)))["rows"]
            assert [list(row) for row in rows] == [["a", 30], ["c", 7], ["b", 5]], name

            listed = QueryPlan(name, shown=(field_of(name, name),), conditions=(large,), order=field_of(name, value))
            rows = (await data("run_sql", sql=sql_of(listed, schema)))["rows"]
            assert [row[0] for row in rows] == ["a", "a", "c"], name

            schema = replace(schema, links=(Link(name, (name,), kind, (name,), declared=False),))
            by_kind = QueryPlan(name, measures=(total,), dimensions=(Dimension((field_of(kind, value),)),))
            rows = (await data("run_sql", sql=sql_of(by_kind, schema)))["rows"]
            assert [list(row) for row in rows] == [["first", 30], ["second", 5]], name
            rows = (await data("run_sql", sql=audit_sql(by_kind, schema)))["rows"]
            assert [list(row) for row in rows] == [[4, 1, 7]], name
    finally:
        await source.close()
