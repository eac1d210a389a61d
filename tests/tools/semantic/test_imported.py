"""dbt's semantic models and metrics, and Cube's cubes, become metrics that can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.tools.semantic.conftest import QueryMetric

from longthread.errors import CatalogInvalid, InvalidInput
from longthread.tools.semantic.imported import read_layers

Querying = Callable[..., Awaitable[QueryMetric]]
DBT = """
semantic_models:
  - name: orders
    model: ref('orders')
    defaults: {agg_time_dimension: placed_on}
    entities:
      - {name: order, type: primary, expr: id}
      - {name: customer, type: foreign, expr: customer_id}
    dimensions:
      - {name: status, type: categorical, label: 状态}
      - {name: placed_on, type: time, expr: placed, type_params: {time_granularity: day}}
    measures:
      - {name: amount, agg: sum, create_metric: true}
      - {name: order_number, agg: count, expr: "1"}
      - {name: large, agg: sum_boolean, expr: amount >= 10}
      - {name: buyers, agg: count_distinct, expr: customer_id}
  - name: customers
    model: source('shop', 'customers')
    defaults: {agg_time_dimension: joined_on}
    entities:
      - {name: customer, type: primary, expr: id}
    dimensions:
      - {name: country, type: categorical, description: Where they live.}
      - {name: status, type: categorical, expr: "'new'"}
      - {name: joined_on, type: time, expr: joined, type_params: {time_granularity: day}}
    measures:
      - {name: signups, agg: count, expr: id}
metrics:
  - name: revenue
    label: 收入
    description: The value of paid orders.
    type: simple
    type_params: {measure: amount}
    filter: "{{ Dimension('order__status') }} = 'paid'"
    config: {meta: {synonyms: [net sales]}}
  - {name: orders, type: simple, type_params: {measure: {name: order_number}}}
  - {name: large_orders, type: simple, type_params: {measure: large}}
  - {name: buyers, type: simple, type_params: {measure: buyers}}
  - {name: signups, type: simple, type_params: {measure: signups}}
  - {name: order_value, type: ratio, type_params: {numerator: revenue, denominator: {name: orders}}}
  - name: double
    type: derived
    type_params: {expr: "r * 2 - order_value", metrics: [{name: revenue, alias: r}, {name: order_value}]}
"""
REFUSED = """
metrics:
  - {name: running, type: cumulative, type_params: {measure: amount}}
  - {name: bought, type: conversion}
  - {name: grown, type: derived, type_params: {expr: a - b, metrics: [
      {name: revenue, alias: a}, {name: revenue, alias: b, offset_window: 1 month}]}}
  - {name: share, type: ratio, type_params: {numerator: {name: revenue, filter: "x"}, denominator: orders}}
  - {name: unknown, type: simple, type_params: {measure: nowhere}}
  - {name: abroad, type: simple, filter: "{{ Dimension('customer__country') }} = 'x'", type_params: {measure: amount}}
  - {name: twice, type: derived, type_params: {expr: running * 2, metrics: [{name: running}]}}
"""
CUBE = """
cubes:
  - name: orders
    sql_table: orders
    joins:
      - {name: customers, sql: "{CUBE}.customer_id = {customers.id}", relationship: many_to_one}
    measures:
      - {name: count, type: count, title: 订单数}
      - name: amount
        type: sum
        sql: amount
        description: The value of paid orders.
        filters: [{sql: "{CUBE}.status = 'paid'"}]
      - {name: value, type: number, sql: "{amount} / {count}"}
      - {name: buyers, type: count_distinct, sql: "{CUBE}.customer_id"}
      - {name: running, type: sum, sql: amount, rolling_window: {trailing: unbounded}}
      - {name: double, type: number, sql: "{running} * 2"}
    dimensions:
      - {name: id, sql: id, type: number, primary_key: true}
      - {name: amount, sql: amount, type: number}
      - {name: is_large, sql: "CASE WHEN {amount} >= 10 THEN 'yes' ELSE 'no' END", type: string}
      - {name: placed_on, sql: "{CUBE}.placed", type: time}
  - name: customers
    sql_table: customers
    joins:
      - {name: orders, sql: "${orders}.customer_id = ${CUBE}.id", relationship: one_to_many}
    measures: [{name: count, type: count}]
    dimensions:
      - {name: id, sql: id, type: number, primary_key: true}
      - {name: country, sql: country, type: string, meta: {synonyms: [国家]}}
"""


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "files"])
async def test_dbt_metrics_are_taken_over(querying: Querying, tmp_path: Path, kind: str) -> None:
    (tmp_path / "models" / "marts").mkdir(parents=True)
    (tmp_path / "models" / "marts" / "orders.yml").write_text(DBT, "utf-8")
    layer = read_layers([tmp_path / "models"])
    assert layer.problems == []
    semantics = layer.semantics
    names = [each["name"] for each in semantics["metrics"]]
    assert names == ["revenue", "orders", "large_orders", "buyers", "signups", "order_value", "double", "amount"]
    assert [each["name"] for each in semantics["dimensions"]][:3] == ["order_status", "placed_on", "country"]
    assert semantics["metrics"][0] == {
        "name": "revenue",
        "meaning": "The value of paid orders.",
        "synonyms": ["收入", "net sales"],
        "table": "orders",
        "sql": "SUM(amount)",
        "where": "((status) = 'paid')",
        "time": "placed_on",
    }
    query = await querying(kind, semantics)
    every = {"metrics": ["收入", "orders", "large_orders", "buyers", "double"], "by": ["country"]}
    assert (await query(**every))["data"]["rows"] == [
        ["France", 30, 2, 2, 1, 45.0],
        ["Germany", 7, 2, 0, 1, 10.5],
        [None, 1, 1, 0, 0, 1.0],
    ]
    months = await query(metrics=["revenue", "signups"], by=["metric_time__year"])
    assert months["data"]["rows"] == [["2024-01-01", 38, 3]]


def test_what_dbt_has_and_we_have_not_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(DBT, "utf-8")
    (tmp_path / "b.yaml").write_text(REFUSED, "utf-8")
    layer = read_layers([tmp_path])
    told = {problem.partition(":")[0].removeprefix("the metric "): problem for problem in layer.problems}
    assert sorted(told) == ["abroad", "bought", "grown", "running", "share", "twice", "unknown"]
    assert "its type is cumulative. Only simple, ratio and derived" in told["running"]
    assert "it has `offset_window`" in told["grown"]
    assert "it has `filter`" in told["share"]
    assert "no semantic model here has its measure nowhere" in told["unknown"]
    assert "it is made of running" in told["twice"]
    assert len(layer.metrics) == 8


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "files"])
async def test_cubes_are_taken_over(querying: Querying, tmp_path: Path, kind: str) -> None:
    (tmp_path / "model.yml").write_text(CUBE, "utf-8")
    layer = read_layers([tmp_path / "model.yml"])
    assert [each.partition(":")[0] for each in layer.problems] == ["the metric running", "the metric double"]
    semantics = layer.semantics
    assert len(semantics["joins"]) == 1
    names = [each["name"] for each in semantics["metrics"]]
    assert names == ["orders_count", "amount", "value", "buyers", "customers_count"]
    query = await querying(kind, semantics)
    observation = await query(metrics=["订单数", "amount", "value"], by=["国家"], where="is_large = 'yes'")
    assert observation["data"]["rows"] == [["France", 2, 30, 15.0]]
    assert (await query(metrics=["amount"], by=["orders_amount"], limit=1))["data"]["rows"] == [[20, 20]]


def test_files_without_metrics_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("models: [{name: x}]", "utf-8")
    with pytest.raises(InvalidInput, match="nothing to import"):
        read_layers([tmp_path])
    (tmp_path / "a.yml").write_text("cubes: [", "utf-8")
    with pytest.raises(CatalogInvalid, match=r"a\.yml"):
        read_layers([tmp_path])
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_layers([tmp_path / "none.yml"])
