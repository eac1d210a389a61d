"""The system prompt: what is known, in bounds."""

from __future__ import annotations

import json
from typing import Any

from longthread.agent.prompt import KNOWLEDGE, system_prompt
from longthread.model.facts import Facts
from longthread.view.tokens import estimate


def known(prompt: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(prompt.split(f"{KNOWLEDGE}\n")[1].split("\n```")[0])
    return found


def facts(tables: int, columns: int) -> Facts:
    names = [f"table_{n}" for n in range(tables)]
    described = [{"name": f"c{n}", "type": "TEXT", "values": ["x"] * 9} for n in range(columns)]
    schemas = {name: {"table_name": name, "columns": described} for name in names}
    return Facts(dialect="sqlite", tables=names, schemas=schemas, samples={"table_0": {"rows": [[1]]}})


def test_without_facts_there_is_no_block() -> None:
    prompt = system_prompt(Facts(), dialect="duckdb", continues=None, budget=1000)
    assert KNOWLEDGE not in prompt
    assert "duckdb" in prompt


def test_facts_are_in_whole_while_they_fit() -> None:
    data = known(system_prompt(facts(2, 3), dialect="sqlite", continues=None, budget=10_000))
    assert data["samples"] == {"table_0": {"rows": [[1]]}}
    assert data["schemas"]["table_1"]["columns"][2]["values"] == ["x"] * 9


def test_what_does_not_fit_is_left_out_from_the_least_useful_on() -> None:
    data = known(system_prompt(facts(20, 30), dialect="sqlite", continues=None, budget=9000))
    assert data["samples"] == {}
    assert "values" not in data["schemas"]["table_19"]["columns"][0]
    assert len(data["tables"]) == 20
    smaller = known(system_prompt(facts(20, 30), dialect="sqlite", continues=None, budget=2000))
    assert 0 < len(smaller["schemas"]) < 20
    assert "table_19" in smaller["schemas"], "the newest stay"


def test_a_thousand_tables_stay_in_bounds_and_say_so() -> None:
    for budget in (3000, 300, 100):
        prompt = system_prompt(facts(1000, 50), dialect="sqlite", continues=None, budget=budget)
        block = prompt.split(f"{KNOWLEDGE}\n")[1].split("\n```")[0]
        assert estimate(block) <= budget
        assert known(prompt)["shown"].endswith("of 1000")


def test_a_continued_question_is_named() -> None:
    prompt = system_prompt(Facts(), dialect="sqlite", continues="有多少客户？", budget=100)
    assert prompt.endswith("有多少客户？")
