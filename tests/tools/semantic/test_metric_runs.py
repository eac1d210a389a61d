"""Runs that ask for metrics: the model sees names and meanings, the receipt says the metric and its SQL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, events_of, finish

from longthread import Catalog
from longthread.errors import CatalogInvalid
from longthread.model.run import Event
from longthread.runs.analyst import Analyst
from longthread.testing import ScriptedChatModel, ScriptedModel

pytestmark = pytest.mark.one_backend

SEMANTICS: dict[str, Any] = {
    "metrics": [
        {
            "name": "revenue",
            "meaning": "the value of all orders",
            "synonyms": ["收入"],
            "table": "orders",
            "sql": "sum(total)",
        },
        {"name": "order_value", "sql": "revenue / order_count"},
        {"name": "order_count", "table": "orders", "sql": "count(*)"},
        {"name": "clients", "table": "customers", "sql": "count(*)"},
    ],
    "dimensions": [{"name": "country", "table": "customers", "synonyms": ["国家"]}],
}
BY_COUNTRY = call("query_metric", metrics=["收入"], by=["国家"])
CHART = call("chart", type="bar", x="country", y="revenue")


async def ask(analyst: Analyst, source: str, question: str = "Revenue by country?", **options: Any) -> list[Event]:
    handle = await analyst.ask(question, source=source, thread_id="t", user_id=analyst.settings.user, **options)
    return await events_of(handle)


async def apply(analyst: Analyst, source: str, semantics: dict[str, Any] = SEMANTICS) -> None:
    definition = {"kind": "source", "name": "shop", "address": source, "semantics": semantics}
    await Catalog(analyst.store).apply([definition])


async def test_the_receipt_of_a_metric_names_it(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([BY_COUNTRY, CHART, finish("中国的收入是 25 [q1]。"), finish("25 [q1]")])
    analyst = await open_analyst(model)
    await apply(analyst, shop)
    ended = (await ask(analyst, shop, "各国的收入是多少？"))[-1].data
    [query] = ended["queries"]
    assert query["metrics"] == ["revenue"]
    assert query["columns"] == ["country", "revenue"]
    assert 'SUM("orders"."total") AS "revenue"' in query["sql"]
    assert ended["citations"] == [{"number": "25", "query": "q1"}]
    told = "\n".join(message.text for message in model.calls[0].messages)
    told += json.dumps(model.calls[0].tools, ensure_ascii=False)
    assert "revenue (收入): the value of all orders" in told
    assert "country (国家)" in told
    assert "sum(" not in told.casefold()
    # Its whole result can be read again, as that of any query.
    again = (await ask(analyst, shop, "And China's?"))[-1].data
    assert again["citations"] == [{"number": "25", "query": "q1"}]


async def test_a_source_without_metrics_has_no_tool_for_them(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([finish("Hello.")])
    analyst = await open_analyst(model)
    await ask(analyst, shop, "Hello")
    names = model.calls[0].tool_names
    assert "run_sql" in names
    assert "query_metric" not in names


async def test_the_sql_protocol_shows_the_names_and_meanings(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedModel(["```sql\nSELECT sum(total) AS revenue FROM orders\n```"])
    analyst = await open_analyst(model)
    await apply(analyst, shop)
    assert (await ask(analyst, shop, protocol="sql"))[-1].data["answer"] == "Revenue: **35.50** [q1]."
    prompt = model.calls[0].messages[0].text
    assert "\n-- Metrics: revenue (收入): the value of all orders; order_value; order_count; clients." in prompt
    assert "\n-- Dimensions: country (国家)." in prompt


@pytest.mark.parametrize("rows", [True, False])
async def test_a_policy_holds_for_metrics(open_analyst: OpenAnalyst, shop: str, tmp_path: Path, rows: bool) -> None:
    """Rows that a user may not read are in no metric, and a hidden table has none."""
    policies = tmp_path / "policies.json"
    tables = {"orders": {"rows": "customer_id = 1"} if rows else {"hidden": True}}
    policies.write_text(json.dumps({"sources": [{"source": shop, "tables": tables}]}), "utf-8")
    model = ScriptedChatModel([call("query_metric", metrics=["revenue"]), finish("10.5 [q1]")])
    analyst = await open_analyst(model, source_policies=policies)
    await apply(analyst, shop)
    events = await ask(analyst, shop)
    told = json.dumps(model.calls[0].tools, ensure_ascii=False)
    result = model.calls[1].messages[-1].text
    if rows:
        assert "[[10.5]]" in result
        assert events[-1].data["queries"][0]["metrics"] == ["revenue"]
    else:
        assert "There is no metric revenue. Metrics: clients." in result
        assert "revenue" not in told and "order_value" not in told


async def test_metrics_are_versioned_with_their_source(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([])
    catalog = Catalog(analyst.store)
    await apply(analyst, shop)
    [change] = await catalog.apply([{"kind": "source", "name": "shop", "address": shop, "semantics": SEMANTICS}])
    assert change.action == "unchanged"
    changed = {"metrics": [{"name": "Revenue", "table": "orders", "sql": "sum(total) * 2"}]}
    await catalog.teach("shop", {"semantics": changed})
    body = (await catalog.taught_source("shop")).body
    assert body["semantics"]["metrics"][0]["name"] == "Revenue"
    assert len(body["semantics"]["metrics"]) == 4
    with pytest.raises(CatalogInvalid, match=r"semantics\.metrics\[0\]\.sql: it aggregates nothing"):
        await apply(analyst, shop, {"metrics": [{"name": "x", "table": "orders", "sql": "1"}]})
    await catalog.apply([{"kind": "source", "name": "shop", "address": shop}])
    assert "semantics" not in (await catalog.taught_source("shop")).body
