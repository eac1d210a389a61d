"""`query_metric`: metrics by dimensions, in each dialect, without a row that counts twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.tools.semantic.conftest import SEMANTICS, SHOP, QueryMetric

from longthread.model.semantics import layer_of
from longthread.tools.semantic.query_metric import TOKENS, describe_layer
from longthread.view.tokens import estimate

pytestmark = pytest.mark.sampled(2)

Querying = Callable[..., Awaitable[QueryMetric]]
ENGINES = pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
SERVERS = [
    pytest.param("postgresql", marks=pytest.mark.postgres),
    pytest.param("mysql", marks=pytest.mark.mysql),
]


SPLITS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"metrics": ["revenue"]}, [[38]]),
    ({"metrics": "revenue, order_count"}, [[38, 5]]),
    ({"metrics": ["收入"], "by": ["国家"]}, [["France", 30], ["Germany", 7], [None, 1]]),
    ({"metrics": ["Net  Sales"], "by": "COUNTRY", "limit": 1}, [["France", 30]]),
    ({"metrics": ["客户数"], "by": ["country"], "order": ["country"]}, [["France", 2], ["Germany", 1]]),
    ({"metrics": ["revenue"], "by": ["city"], "where": "city IS NOT NULL"}, [["Paris", 30], ["Berlin", 7]]),
    ({"metrics": ["order_value"]}, [[7.6]]),
    ({"metrics": ["order_value"], "by": ["country"], "order": ["order_value"]},
     [[None, 1.0], ["Germany", 3.5], ["France", 15.0]]),
    ({"metrics": ["revenue"], "by": ["is_large"], "order": ["is_large"]}, [["no", 8], ["yes", 30]]),
    ({"metrics": ["revenue"], "by": ["country"], "where": "收入 > 5 AND country <> 'Germany'"}, [["France", 30]]),
    ({"metrics": ["order_count"], "by": ["country"], "where": "revenue > 8"}, [["France", 2]]),
    ({"metrics": ["revenue"], "where": "国家 = 'France' OR 国家 = 'Germany'"}, [[37]]),
    # Several tables: each is aggregated by itself, and a row of one that the other lacks stays.
    ({"metrics": ["revenue", "signups"], "by": ["metric_time__month"]},
     [["2024-01-01", 10, 1], ["2024-02-01", 27, 2], ["2024-04-01", 1, 0]]),
    ({"metrics": ["客户数", "order_count"], "by": ["country"], "where": "客户数 = 0"}, [[None, 0, 1]]),
    ({"metrics": ["order_count"], "where": "NOT is_open AND placed_on < '2024-03-01'"}, [[2]]),
    ({"metrics": ["revenue", "signups", "pieces"]}, [[38, 3, 13]]),
    ({"metrics": ["pieces", "revenue"], "by": ["country"]},
     [["Germany", 9, 7], ["France", 4, 30], [None, None, 1]]),
]  # fmt: skip
GRAINS: list[tuple[str, list[Any]]] = [
    ("placed_on", [["2024-01-06", 10], ["2024-02-06", 20], ["2024-02-09", 7], ["2024-04-01", 1]]),
    ("placed_on__week", [["2024-01-01", 10], ["2024-02-05", 27], ["2024-04-01", 1]]),
    ("placed_on.month", [["2024-01-01", 10], ["2024-02-01", 27], ["2024-04-01", 1]]),
    ("placed_on__quarter", [["2024-01-01", 37], ["2024-04-01", 1]]),
    ("metric_time__year", [["2024-01-01", 38]]),
]


@ENGINES
@pytest.mark.parametrize(("asked", "rows"), SPLITS)
async def test_metrics_are_split_and_filtered(
    querying: Querying, kind: str, asked: dict[str, Any], rows: list[Any]
) -> None:
    observation = await (await querying(kind))(**asked)
    assert observation["ok"], observation
    assert observation["data"]["rows"] == rows


@ENGINES
@pytest.mark.parametrize(("by", "rows"), GRAINS)
async def test_a_time_is_split_by_grain(querying: Querying, kind: str, by: str, rows: list[Any]) -> None:
    observation = await (await querying(kind))(metrics=["revenue"], by=[by])
    assert observation["data"]["rows"] == rows


@pytest.mark.parametrize("kind", SERVERS)
async def test_servers_answer_the_same(querying: Querying, kind: str) -> None:
    query = await querying(kind)
    asked = [*SPLITS, *(({"metrics": ["revenue"], "by": [by]}, rows) for by, rows in GRAINS)]
    for arguments, rows in asked:
        observation = await query(**arguments)
        assert observation["ok"], observation
        given = observation["data"]["rows"]
        # Where no value comes first, each server has its own order.
        assert len(given) == len(rows)
        assert all(row in rows for row in given)


@ENGINES
async def test_a_receipt_names_the_metric_and_shows_the_sql(querying: Querying, kind: str) -> None:
    data = (await (await querying(kind))(metrics=["revenue"], by=["country"]))["data"]
    assert data["metrics"] == ["revenue"]
    assert data["sql"].startswith('SELECT "customers"."country" AS "country", SUM("orders"."Amount") AS "revenue"')
    assert "LEFT JOIN" in data["sql"]
    assert "('sent'" not in data["sql"]


@ENGINES
@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"metrics": ["revenu"]}, "There is no metric revenu. Metrics: revenue, order_count, signups"),
        ({"metrics": []}, "Name a metric. Metrics: revenue"),
        ({"metrics": ["revenue"], "by": ["contry"]}, "There is no dimension contry. Dimensions: country, city"),
        ({"metrics": ["revenue"], "by": ["country__month"]}, "country is no time"),
        ({"metrics": ["revenue"], "by": ["placed_on__hour"]}, "known by day, not by hour. Ask for: day, week"),
        # A key leads from items to orders and not back: an order would count for each of its items.
        (
            {"metrics": ["revenue"], "by": ["product"]},
            "Its dimensions: country, placed_on, joined_on, city, is_open, is_large",
        ),
        ({"metrics": ["signups"], "where": "placed_on > '2024-01-01'"}, "signups has no dimension placed_on"),
        ({"metrics": ["pieces"], "by": ["metric_time"]}, "pieces has 0 times"),
        ({"metrics": ["revenue"], "where": "country = 'x' OR revenue > 3"}, "mixes metrics and dimensions"),
        ({"metrics": ["revenue"], "where": "amount > 3"}, "There is no dimension amount"),
        ({"metrics": ["revenue"], "where": "country = (SELECT min(country) FROM customers)"}, "holds a query"),
        ({"metrics": ["revenue"], "where": "1=1) UNION SELECT 1 FROM customers WHERE (1=1"}, "is not one expression"),
        ({"metrics": ["revenue"], "where": "country = 'x'; DROP TABLE orders"}, "This SQL is not run"),
        ({"metrics": ["revenue"], "order": ["country"]}, "Order by: revenue"),
        ({"metrics": ["revenue"], "limit": 0}, "whole number from 1"),
        ({"metrics": [1]}, "must be a list of names"),
    ],
)
async def test_an_error_names_the_fix(querying: Querying, kind: str, asked: dict[str, Any], problem: str) -> None:
    observation = await (await querying(kind))(**asked)
    assert not observation["ok"]
    assert problem in observation["error"]["message"]


WITH_PAYERS = SHOP.replace(
    "status TEXT, placed", "payer_id INTEGER REFERENCES customers (id), status TEXT, placed"
).replace("INSERT INTO orders VALUES", 'INSERT INTO orders (id, customer_id, "Amount", status, placed) VALUES')
JOINS = [
    {"table": "orders", "columns": ["customer_id"], "to": "customers", "references": ["id"]},
    {"table": "customers", "columns": ["city_id"], "to": "cities", "references": ["id"]},
]


async def test_files_have_no_keys_and_are_joined_as_declared(querying: Querying) -> None:
    query = await querying("files", SEMANTICS | {"joins": JOINS})
    assert (await query(metrics=["revenue"], by=["city"]))["data"]["rows"] == [["Paris", 30], ["Berlin", 7], [None, 1]]
    missing = await query(metrics=["pieces"], by=["country"])
    assert "pieces has no dimension country" in missing["error"]["message"]


@pytest.mark.parametrize("kind", ["files", "sqlite"])
async def test_a_join_to_several_rows_is_refused(querying: Querying, kind: str) -> None:
    """A declared join of whose key no database says that it is unique is looked at before it is used."""
    twice = SHOP.replace("id INTEGER PRIMARY KEY, country", "id INTEGER, country") + (
        "INSERT INTO customers VALUES (1, 'Spain', '2024-03-01', 1);"
    )
    if kind == "files":
        twice = twice.replace(" REFERENCES customers (id)", "")
    query = await querying(kind, SEMANTICS | {"joins": JOINS}, twice)
    error = (await query(metrics=["revenue"], by=["country"]))["error"]["message"]
    assert "customers has several rows with id = 1: joined, they would count a metric several times" in error
    assert (await query(metrics=["revenue"]))["data"]["rows"] == [[38]]


@ENGINES
async def test_two_ways_between_tables_are_not_guessed(querying: Querying, kind: str) -> None:
    query = await querying(kind, script=WITH_PAYERS)
    error = (await query(metrics=["revenue"], by=["country"]))["error"]["message"]
    assert "2 ways from orders to customers: orders.customer_id → customers or orders.payer_id → customers" in error


@ENGINES
async def test_a_declared_join_comes_before_the_keys(querying: Querying, kind: str) -> None:
    query = await querying(kind, SEMANTICS | {"joins": JOINS[:1]}, WITH_PAYERS)
    assert (await query(metrics=["revenue"], by=["country"], limit=1))["data"]["rows"] == [["France", 30]]


@ENGINES
async def test_a_table_of_the_name_of_a_part_stays_what_it_is(querying: Querying, kind: str) -> None:
    script = SHOP + "CREATE TABLE part_1 (n INTEGER); INSERT INTO part_1 VALUES (4);"
    own = {"metrics": [*SEMANTICS["metrics"], {"name": "parts", "table": "part_1", "sql": "sum(n)"}]}
    query = await querying(kind, SEMANTICS | own, script)
    assert (await query(metrics=["parts", "revenue"]))["data"]["rows"] == [[4, 38]]


@pytest.mark.parametrize("meaning", ["what it is, in many words " * 8, "它的含义，用许多话来说" * 20, None])
def test_what_a_prompt_says_of_many_metrics_has_a_bound(meaning: str | None) -> None:
    many = [{"name": f"metric_{n}", "table": "t", "sql": "count(*)", "meaning": meaning} for n in range(900)]
    [line] = describe_layer(layer_of([{"metrics": many}]))
    assert TOKENS < estimate(line) < 2.2 * TOKENS
    assert line.startswith("Metrics: metric_0")
    assert line.endswith(" more.")
    assert estimate(next(describe_layer(layer_of([{"metrics": many}]), 100))) < 220


@ENGINES
async def test_an_unknown_column_names_the_metric(querying: Querying, kind: str) -> None:
    query = await querying(kind, {"metrics": [{"name": "revenue", "table": "orders", "sql": "sum(amout)"}]})
    error = (await query(metrics=["revenue"]))["error"]["message"]
    assert error == "The SQL of the metric revenue names the column amout, which orders does not have. It has: Amount."
