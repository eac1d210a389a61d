"""The eval of the analyst: what counts as a query, and which outcomes of earlier evals count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, finish

from longthread import Catalog
from longthread.errors import ModelNotUsable
from longthread.llm.failures import AuthenticationFailed, ServerFailed
from longthread.testing import ScriptedModel
from longthread_evals.analyst_eval import AnalystEval, AnalystOutcome, read_outcomes
from longthread_evals.gold_questions import SqlQuestion

pytestmark = pytest.mark.one_backend

REVENUE = {"metrics": [{"name": "revenue", "table": "orders", "sql": "sum(total)"}]}


@pytest.mark.parametrize(("gold", "verdict"), [("SELECT sum(total) FROM orders", "right"), ("SELECT 1", "wrong")])
async def test_a_query_of_a_metric_is_judged_by_its_rows(
    open_analyst: OpenAnalyst, shop: str, gold: str, verdict: str
) -> None:
    model = ScriptedModel([call("query_metric", metrics=["revenue"]), finish("35.5 [q1]")], tool_calling=True)
    analyst = await open_analyst(model)
    await Catalog(analyst.store).apply([{"kind": "source", "name": "shop", "address": shop, "semantics": REVENUE}])
    question = SqlQuestion("shop", "What is the revenue?", (gold,))
    [outcome] = [each async for each in AnalystEval(analyst, "test:scripted").outcomes([[(question, shop)]])]
    assert (outcome.verdict, outcome.model, outcome.protocol) == (verdict, "test:scripted", "auto")


def line(**about: object) -> str:
    given = {"database": "shop", "question": "How many?", "verdict": "right", "sql": "", "answer": "", "calls": 1}
    return json.dumps({**given, "prompt_tokens": 0, "cached_tokens": 0, "seconds": 0.1, **about})


@pytest.mark.parametrize(
    ("about", "is_taken"),
    [
        ({"model": "a", "protocol": "sql"}, True),
        ({"model": "b", "protocol": "sql"}, False),
        ({"model": "a", "protocol": "json"}, False),
        ({}, False),
    ],
)
async def test_outcomes_of_another_model_or_protocol_are_not_taken(
    open_analyst: OpenAnalyst, tmp_path: Path, about: dict[str, str], is_taken: bool
) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join([line(**about), line(model="c", protocol="sql", verdict="wrong")]), "utf-8")
    evaluation = AnalystEval(await open_analyst(ScriptedModel([])), "a", protocol="sql", seen=read_outcomes(file))
    question = SqlQuestion("shop", "How many?", ("SELECT 1",))
    assert [each.verdict for each in evaluation.taken.values()] == (["right"] if is_taken else [])
    if is_taken:
        [taken] = [each async for each in evaluation.outcomes([[(question, "unused")]])]
        assert taken is evaluation.taken["shop", "How many?"]


async def test_an_outcome_without_a_baseline_is_not_taken_where_one_is_asked(open_analyst: OpenAnalyst) -> None:
    told = json.loads(line(model="a", protocol="auto"))
    analyst, plain = await open_analyst(ScriptedModel([])), ScriptedModel([])
    bare, with_one = AnalystOutcome(**told), AnalystOutcome(**told, baseline="wrong")
    assert AnalystEval(analyst, "a", plain, seen={("x",): bare}).taken == {}
    assert AnalystEval(analyst, "a", plain, seen={("x",): with_one}).taken == {("shop", "How many?"): with_one}


@pytest.mark.parametrize("is_baseline", [False, True])
async def test_a_server_that_fails_ends_the_eval_and_is_no_verdict(
    open_analyst: OpenAnalyst, shop: str, is_baseline: bool
) -> None:
    down = AuthenticationFailed("The key is wrong.")
    replies = [finish("Nothing.")] if is_baseline else [down]
    plain = ScriptedModel([ServerFailed("It is loading the model.")]) if is_baseline else None
    evaluation = AnalystEval(await open_analyst(ScriptedModel(replies)), "test:scripted", plain)
    question = SqlQuestion("shop", "How many?", ("SELECT 1",))
    with pytest.raises(ModelNotUsable, match="give the command again to go on") as stopped:
        [each async for each in evaluation.outcomes([[(question, shop)]])]
    assert "resume" not in str(stopped.value)
