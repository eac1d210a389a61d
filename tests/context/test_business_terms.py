"""Business terms: taught once, checked by the guard, and told to a model whose question is about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.test_views import check
from tests.script import finish

from longthread import Catalog
from longthread.context.source_facts import TOKENS, likely, lines
from longthread.errors import CatalogInvalid, DefinitionNotFound, InvalidInput
from longthread.model.catalog import Example, SourceDefinition, Term
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel
from longthread.view.tokens import estimate

pytestmark = pytest.mark.one_backend

GMV: dict[str, Any] = {
    "name": "GMV",
    "meaning": "the value of all paid orders",
    "sql": "sum(orders.amount)",
    "synonyms": ["成交额", "gross merchandise value"],
}
BIG: dict[str, Any] = {"name": "大客户", "sql": "orders.amount > 100"}
REPEAT: dict[str, Any] = {"question": "Which customers ordered twice?", "sql": "SELECT customer_id FROM orders"}
TAUGHT: dict[str, Any] = {"terms": [GMV, BIG], "examples": [REPEAT]}

SOURCE = SourceDefinition(
    "1",
    "shop",
    "demo",
    terms=(
        Term("GMV", "the value of all paid orders", "sum(amount)", ("成交额", "gross merchandise value")),
        Term("大客户", "一年内下单超过一百次"),
        Term("churn rate", "customers who left, as a share"),
        Term("AOV", "average order value"),
    ),
    examples=(Example("Which customers ordered twice?", "SELECT 1"), Example("每个城市有多少订单？", "SELECT 2")),
)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What was GMV in March?", "GMV"),
        ("gmv by month", "GMV"),
        ("ＧＭＶ是多少", "GMV"),
        ("上个月的成交额是多少？", "GMV"),
        ("show the Gross Merchandise  Value", "GMV"),
        ("有多少大客户？", "大客户"),
        ("How many customers churned, as a rate?", "churn rate"),
        ("customers who ordered more than twice", "Which customers ordered twice?"),
        ("按城市看订单", "每个城市有多少订单？"),
    ],
)
def test_what_a_question_is_about_comes_first(question: str, first: str) -> None:
    found = likely([SOURCE], [question])
    assert (found[0].name if isinstance(found[0], Term) else found[0].question) == first


@pytest.mark.parametrize("question", ["How many rockets are there?", "火箭有多少枚？", "", "gmvx, xaov"])
def test_a_question_about_something_else_is_told_nothing(question: str) -> None:
    assert likely([SOURCE], [question]) == []


def test_terms_of_the_questions_before_follow_those_of_this_one() -> None:
    found = likely([SOURCE], ["and the AOV?", "What was GMV in March?"])
    assert [each.name for each in found if isinstance(each, Term)][:2] == ["AOV", "GMV"]


def test_what_is_told_has_a_bound() -> None:
    many = [Term(f"margin {n}", "the margin of a product line, " * 20) for n in range(200)]
    told = lines(["x " * 200], likely([SourceDefinition("1", "s", "demo", terms=many)], ["margin"]))
    assert 1 < len(told) < 20
    assert sum(map(estimate, told)) <= TOKENS


async def test_teaching_twice_changes_nothing_and_a_version_is_kept_of_each_change(store: Driver) -> None:
    catalog = Catalog(store, user="ann")
    first = await catalog.teach("demo", TAUGHT)
    assert (first.action, first.definition.name, first.definition.version) == ("created", "demo", 1)
    assert (await catalog.teach("demo", TAUGHT)).action == "unchanged"
    changed = await catalog.teach("demo", {"terms": [{"name": "gmv", "meaning": "paid and shipped"}]})
    assert (changed.action, changed.definition.version) == ("changed", 2)
    source = await catalog.source("demo")
    assert [(term.name, term.meaning) for term in source.terms] == [("gmv", "paid and shipped"), ("大客户", None)]
    await catalog.teach("demo", {}, {"terms": ["大客户"], "examples": [REPEAT["question"]]})
    left = await catalog.source("demo")
    assert ([term.name for term in left.terms], left.examples, left.version) == (["gmv"], (), 3)
    [change] = await catalog.apply([{"kind": "source", "name": "demo", "address": "demo", **TAUGHT}])
    assert change.action == "changed"
    [change] = await catalog.apply([{"kind": "source", "name": "demo", "address": "demo", **TAUGHT}])
    assert change.action == "unchanged"
    with pytest.raises(InvalidInput, match="There is no term ARPU"):
        await catalog.teach("demo", {}, {"terms": ["ARPU"]})
    with pytest.raises(DefinitionNotFound):
        await catalog.teach("no-such-source", TAUGHT)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"terms": [{"name": "x", "sql": "1; DROP TABLE orders"}]}, r"terms\[0\]\.sql"),
        ({"terms": [{"name": "x", "sql": "(SELECT load_extension('evil'))"}]}, r"terms\[0\]\.sql"),
        ({"terms": [{"name": "x"}]}, r"terms\[0\]\.meaning"),
        ({"terms": [{"meaning": "x"}]}, r"terms\[0\]\.name"),
        ({"terms": ["x"]}, r"terms\[0\]: it must be an object"),
        ({"terms": [{"name": "x", "meaning": "y", "formula": "z"}]}, "formula: there is no such field"),
        ({"examples": [{"question": "x", "sql": "DELETE FROM orders"}]}, r"examples\[0\]\.sql"),
        ({"examples": [{"question": "x", "sql": "sum(amount)"}]}, r"examples\[0\]\.sql"),
        ({"examples": [{"question": "x"}]}, r"examples\[0\]\.sql: it is missing"),
    ],
)
async def test_what_cannot_be_taught_is_told_and_nothing_is_kept(
    store: Driver, given: dict[str, Any], problem: str
) -> None:
    catalog = Catalog(store)
    with pytest.raises(CatalogInvalid, match=problem):
        await catalog.apply([{"kind": "source", "name": "shop", "address": "demo", **given}])
    assert await catalog.definitions("source") == []


async def test_a_model_is_told_the_terms_of_its_question_and_of_those_before(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedChatModel([finish("Twelve."), finish("Seven."), finish("none")])
    analyst = await open_analyst(model)
    await Catalog(analyst.store).teach(shop, {"description": "Orders of one shop.", **TAUGHT})
    for question in ("上个月的成交额是多少？", "and by country?"):
        await (await analyst.ask(question, thread_id="t", source=shop, user_id=analyst.settings.user)).wait()
    await check(analyst, "t", model)
    await (
        await analyst.ask("How many rockets?", thread_id="other", source="demo", user_id=analyst.settings.user)
    ).wait()
    first, second, other = ("\n".join(message.text for message in made.messages) for made in model.calls)
    for told in (first, second):
        assert "The database: Orders of one shop." in told
        assert (
            "- GMV (also: 成交额, gross merchandise value): the value of all paid orders SQL: sum(orders.amount)"
            in told
        )
        assert "大客户" not in told
    assert "Business terms" not in other
    assert model.calls[0].messages[0].text == model.calls[1].messages[0].text


async def test_what_a_user_may_not_see_is_not_told(open_analyst: OpenAnalyst, shop: str, tmp_path: Path) -> None:
    policies = tmp_path / "policies.json"
    tables = {"orders": {"hidden": True}}
    policies.write_text(json.dumps({"sources": [{"source": shop, "tables": tables}]}), "utf-8")
    model = ScriptedChatModel([finish("no")])
    analyst = await open_analyst(model, source_policies=policies)
    clients = {"name": "clients", "meaning": "those in customers, GMV or not"}
    await Catalog(analyst.store).teach(shop, {**TAUGHT, "terms": [GMV, BIG, clients], "description": "See orders."})
    question = "GMV of 大客户 and clients: which customers ordered twice?"
    await (await analyst.ask(question, thread_id="t", source=shop, user_id=analyst.settings.user)).wait()
    told = model.calls[0].messages[-1].text
    assert "- clients: those in customers" in told
    assert "orders" not in told
