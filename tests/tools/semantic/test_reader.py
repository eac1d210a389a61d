"""What is declared of metrics is checked when it is stored, and each problem names its place."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tools.semantic.conftest import SEMANTICS, read

METRIC = {"name": "revenue", "table": "orders", "sql": "sum(amount)"}


def test_what_is_declared_is_stored_as_it_is() -> None:
    made, problems = read(SEMANTICS)
    assert problems == []
    assert made["metrics"] == SEMANTICS["metrics"]
    assert made["dimensions"][4] == {"name": "product", "table": "items", "sql": "product"}
    assert read({}) == ({}, [])


@pytest.mark.parametrize(
    ("semantics", "problem"),
    [
        ({"metrics": [{**METRIC, "name": "net revenue"}]}, "metrics[0].name: net revenue must be letters"),
        ({"metrics": [{**METRIC, "name": "net__revenue"}]}, "two _ in a row"),
        ({"metrics": [{**METRIC, "sql": "amount"}]}, "amount stands outside an aggregate. Write sum(amount)"),
        ({"metrics": [{**METRIC, "sql": "sum(amount) + fee"}]}, "fee stands outside an aggregate"),
        ({"metrics": [{**METRIC, "sql": "1"}]}, "it aggregates nothing"),
        ({"metrics": [{**METRIC, "sql": "sum(amount) OVER ()"}]}, "it has a window"),
        ({"metrics": [{**METRIC, "sql": "(SELECT sum(amount) FROM x)"}]}, "is not one expression"),
        ({"metrics": [{**METRIC, "sql": "sum(amount), count(*)"}]}, "is not one expression"),
        ({"metrics": [{**METRIC, "sql": "sum(amount) AS x"}]}, "is not one expression"),
        ({"metrics": [{**METRIC, "sql": "sum(amount)) FROM secrets WHERE (1 = 1"}]}, "is not one expression"),
        ({"metrics": [{**METRIC, "sql": "sum(load_extension('x'))"}]}, "metrics[0].sql"),
        ({"metrics": [{**METRIC, "where": "sum(amount) > 3"}]}, "metrics[0].where: it aggregates"),
        ({"metrics": [{**METRIC, "where": "id IN (SELECT id FROM x)"}]}, "holds a query"),
        ({"metrics": [{**METRIC, "time": "placed_on"}]}, "placed_on is no dimension with a `grain`"),
        ({"metrics": [{**METRIC, "grain": "day"}]}, "grain: there is no such field"),
        ({"metrics": [METRIC, {"name": "aov", "sql": "revenue / orders"}]}, "orders is no metric. Give a `table`, or"),
        ({"metrics": [{"name": "aov", "sql": "sum(amount)"}]}, "Without a `table`, it calculates with metrics"),
        ({"metrics": [{"name": "a", "sql": "b"}, {"name": "b", "sql": "a + 1"}]}, "a is calculated from itself"),
        ({"metrics": [METRIC, {"name": "x", "sql": "revenue", "where": "a = 1"}]}, "where: it is of a metric with a"),
        ({"metrics": [METRIC, {**METRIC, "name": "Revenue"}]}, "metrics[1].name: Revenue stands there twice"),
        ({"metrics": [METRIC], "dimensions": [{"name": "revenue", "table": "x"}]}, "dimensions[0].name"),
        ({"dimensions": [{"name": "metric_time", "table": "x"}]}, "is reserved"),
        ({"dimensions": [{"name": "day", "table": "x", "sql": "placed", "grain": "second"}]}, "it must be one of hour"),
        ({"dimensions": [{"name": "country", "table": "x", "sql": "max(country)"}]}, "it aggregates"),
        ({"dimensions": [{"name": "country"}]}, "dimensions[0].table: it is missing"),
        ({"joins": [{"table": "a", "columns": ["x"], "to": "b", "references": []}]}, "as many columns as `references`"),
        ({"metrics": ["revenue"]}, "metrics[0]: it must be an object"),
        ({"measures": []}, "measures: there is no such field"),
    ],
)
@pytest.mark.parametrize("spec", ["shop.sqlite", "shop.duckdb", "postgresql://db.example/shop"])
def test_what_cannot_be_a_metric_is_told(semantics: dict[str, Any], problem: str, spec: str) -> None:
    assert problem in "\n".join(read(semantics, spec)[1])


def test_a_dimension_of_several_rows_is_refused() -> None:
    _, problems = read({"dimensions": [{"name": "tag", "table": "x", "sql": "unnest(tags)"}]}, "shop.duckdb")
    assert "several rows for one" in problems[0]
