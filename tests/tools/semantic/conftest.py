"""A shop as SQLite, DuckDB and files without keys, and its metrics."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver

from longthread.model.semantics import layer_of
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.catalog.fields import FieldReader
from longthread.tools.semantic.expressions import read_semantics
from longthread.tools.semantic.query_metric import semantic_tools

SHOP = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, country TEXT, joined DATE, city_id INTEGER REFERENCES cities (id));
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), "Amount" INTEGER, status TEXT, placed DATE);
CREATE TABLE items (order_id INTEGER REFERENCES orders (id), product TEXT, pieces INTEGER);
INSERT INTO cities VALUES (1, 'Paris'), (2, 'Berlin');
INSERT INTO customers VALUES
    (1, 'France', '2024-01-05', 1), (2, 'Germany', '2024-02-07', 2), (3, 'France', '2024-02-20', 1);
INSERT INTO orders VALUES
    (1, 1, 10, 'paid', '2024-01-06'), (2, 1, 20, 'paid', '2024-02-06'), (3, 2, 5, 'open', '2024-02-08'),
    (4, 2, 7, 'paid', '2024-02-09'), (5, NULL, 1, 'paid', '2024-04-01');
INSERT INTO items VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 1), (4, 'c', 9);
"""
SEMANTICS: dict[str, Any] = {
    "metrics": [
        {
            "name": "revenue",
            "meaning": "the value of all paid orders",
            "table": "orders",
            "sql": "sum(amount)",
            "where": "status = 'paid' OR status = 'sent'",
            "synonyms": ["收入", "net sales"],
        },
        {"name": "order_count", "table": "orders", "sql": "count(*)", "synonyms": ["订单数"]},
        {"name": "signups", "table": "customers", "sql": "count(*)"},
        {"name": "order_value", "sql": "revenue / order_count", "meaning": "paid value of an order"},
        {"name": "pieces", "table": "items", "sql": "sum(pieces)"},
        {"name": "客户数", "table": "customers", "sql": "count(DISTINCT id)"},
    ],
    "dimensions": [
        {"name": "country", "table": "customers", "sql": "country", "synonyms": ["国家"]},
        {"name": "placed_on", "table": "orders", "sql": "placed", "grain": "day"},
        {"name": "joined_on", "table": "customers", "sql": "joined", "grain": "day"},
        {"name": "city", "table": "cities", "sql": "name"},
        {"name": "product", "table": "items"},
        {"name": "is_open", "table": "orders", "sql": "status = 'open' OR amount > 15"},
        {"name": "is_large", "table": "orders", "sql": "CASE WHEN amount >= 10 THEN 'yes' ELSE 'no' END"},
    ],
}

QueryMetric = Callable[..., Awaitable[dict[str, Any]]]
"""`await query(metrics=[…], by=[…])`: the observation."""


def read(semantics: dict[str, Any], spec: str = "shop.sqlite") -> tuple[dict[str, Any], list[str]]:
    """The semantics as they are stored, and what is wrong with them."""
    problems: list[Any] = []
    return read_semantics(FieldReader({"semantics": semantics}, problems), spec), [str(each) for each in problems]


def write_shop(kind: str, folder: Path, script: str = SHOP) -> Path:
    """Write the shop as a database of a kind; as `files`, one CSV a table."""
    path = folder / f"shop.{kind}"
    if kind == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
        return path
    with duckdb.connect(":memory:" if kind == "files" else str(path)) as database:
        database.execute(script)
        if kind == "files":
            path.mkdir()
            for table in ("cities", "customers", "orders", "items"):
                database.execute(f"COPY {table} TO '{path / table}.csv'")
    return path


def write_to_server(kind: str, url: str, script: str) -> None:
    if kind == "mysql":
        mysqlserver.run(url, script, ansi=True)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script.encode())


@pytest.fixture
async def querying(
    tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[..., Awaitable[QueryMetric]]]:
    """Opens a shop with metrics, and returns its `query_metric`."""
    opened = []

    async def open_shop(kind: str, semantics: dict[str, Any] = SEMANTICS, script: str = SHOP) -> QueryMetric:
        if kind in ("postgresql", "mysql"):
            spec: str = request.getfixturevalue("mysql_url" if kind == "mysql" else "postgres_url")
            write_to_server(kind, spec, script)
        else:
            spec = str(write_shop(kind, tmp_path, script))
        source = await open_source(spec, limits=Limits(isolated=False))
        opened.append(source)
        made, problems = read(semantics, source.spec)
        assert problems == []
        [tool] = semantic_tools(source, layer_of([made]))

        async def query(**arguments: Any) -> dict[str, Any]:
            return await tool.call(arguments)

        return query

    yield open_shop
    for source in opened:
        await source.close()
