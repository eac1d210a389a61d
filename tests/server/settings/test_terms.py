"""Business terms and examples of a source, taught through the API, and what the next question gets of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import define

SCRIPT = [{"finish": "Yes."}]
NOTHING = {"version": 0, "description": None, "terms": [], "examples": [], "metrics": [], "changeable": True}
GMV = {"name": "GMV", "meaning": "付款订单的总额", "sql": "sum(budget_million_usd)", "synonyms": ["成交额", "turnover"]}
EXAMPLE = {"question": "Which rocket flies most?", "sql": "SELECT rocket_id FROM launches"}


def test_a_source_is_taught_and_a_question_gets_the_term(serve: Any) -> None:
    running = serve(SCRIPT)
    path = "/api/sources/demo/terms"
    assert running.client.get(path).json() == {"source": "demo", **NOTHING}
    given = {"description": "Space.", "terms": [GMV], "examples": [EXAMPLE]}
    taught = running.client.patch(path, json=given)
    assert taught.status_code == 200, taught.text
    assert taught.json() == {"source": "demo", **NOTHING, **given, "version": 1} == running.client.get(path).json()
    assert running.client.patch(path, json={"terms": [GMV]}).json()["version"] == 1  # taught twice, it is taught once
    [only] = running.client.get("/api/sources").json()["sources"]
    assert only["name"] == "demo"
    thread = running.answer("成交额是多少？")["thread_id"]
    call = running.client.get(f"/api/conversations/{thread}/calls").json()["calls"][-1]
    seen = running.client.get(f"/api/conversations/{thread}/calls/{call['step']}").json()
    assert "付款订单的总额" in str(seen)


def test_a_term_is_renamed_in_one_version_and_what_is_wrong_changes_nothing(serve: Any, store_address: str) -> None:
    metric = {"name": "flights", "table": "launches", "sql": "count(*)"}
    source = {"kind": "source", "name": "space", "address": "demo", "semantics": {"metrics": [metric]}}
    define(store_address, source)
    running = serve(SCRIPT)
    path = "/api/sources/space/terms"
    running.client.patch(path, json={"terms": [GMV], "examples": [EXAMPLE]})
    renamed = {"terms": [{"name": "Sales", "meaning": "all of it"}], "remove_terms": ["gmv"]}
    told = running.client.patch(path, json=renamed).json()
    term = {"name": "Sales", "meaning": "all of it", "sql": None, "synonyms": []}
    assert (told["version"], told["terms"], told["metrics"]) == (3, [term], ["flights"])
    for wrong, field in (
        ({"terms": [{"name": "x", "sql": "DROP TABLE launches"}], "remove_terms": ["Sales"]}, "terms[0].sql"),
        ({"terms": [{"name": "x"}]}, "terms[1].meaning"),
        ({"examples": [{"question": "x", "sql": "count(*)"}]}, "examples[1].sql"),
    ):
        answer = running.client.patch(path, json=wrong)
        assert (answer.status_code, answer.json()["code"]) == (422, "catalog_invalid")
        assert [each["at"] for each in answer.json()["errors"]] == [f"body.definition.{field}"]
    missing = running.client.patch(path, json={"remove_examples": ["Is it?"]})
    assert (missing.status_code, "GET /api/sources/" in missing.json()["detail"]) == (422, True)
    assert running.client.get(path).json() == told
    gone = running.client.patch(path, json={"remove_terms": ["sales"], "remove_examples": [EXAMPLE["question"]]})
    assert (gone.json()["terms"], gone.json()["examples"]) == ([], [])


def test_sql_over_a_column_that_is_not_there_is_not_taught(serve: Any) -> None:
    running = serve(SCRIPT)
    wrong = {"terms": [GMV], "examples": [{"question": "How many?", "sql": "SELECT nothing FROM launches"}]}
    answer = running.client.patch("/api/sources/demo/terms", json=wrong)
    assert (answer.status_code, answer.json()["code"]) == (422, "catalog_invalid")
    assert "the SQL of How many?: There is no column nothing." in answer.json()["detail"]
    assert running.client.get("/api/sources/demo/terms").json()["terms"] == []


def test_no_address_becomes_a_source_by_being_taught(serve: Any, tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_text("name\nBerlin\n")
    running = serve(SCRIPT)
    for name in (str(file), "nobody", "sqlite:///x.db"):
        path = f"/api/sources/{name.replace('/', '%2F')}/terms"
        for answer in (running.client.get(path), running.client.patch(path, json={"terms": [GMV]})):
            assert (answer.status_code, answer.json()["code"]) == (404, "definition_not_found")
    assert [each["name"] for each in running.client.get("/api/sources").json()["sources"]] == ["demo"]


def test_the_configured_source_is_taught_by_its_address(serve: Any, tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_text("name\nBerlin\n")
    running = serve(SCRIPT, source=str(file))
    path = f"/api/sources/{str(file).replace('/', '%2F')}/terms"
    taught = running.client.patch(path, json={"terms": [{"name": "town", "meaning": "not a village"}]})
    assert (taught.status_code, taught.json()["source"]) == (200, str(file))
    assert [each["name"] for each in running.client.get("/api/sources/towns/terms").json()["terms"]] == ["town"]


@pytest.mark.one_backend
def test_a_store_that_may_only_be_read_is_taught_nothing(serve: Any) -> None:
    serve(SCRIPT).stop()
    running = serve(SCRIPT, read_only=True)
    path = "/api/sources/demo/terms"
    assert running.client.get(path).json()["changeable"] is False
    assert running.client.patch(path, json={"terms": [GMV]}).json()["code"] == "store_read_only"
