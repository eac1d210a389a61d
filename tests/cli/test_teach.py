"""`longthread sources teach`."""

from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Run

pytestmark = pytest.mark.one_backend


def test_a_source_is_taught_listed_and_untaught(run: Run) -> None:
    gmv = ["--term", "GMV", "--synonym", "成交额", "--meaning", "paid orders", "--sql", "sum(amount)"]
    assert "version 1: the source demo" in run("sources", "teach", "demo", *gmv).stdout
    assert "Nothing has changed" in run("sources", "teach", "demo", *gmv).stdout
    run("sources", "teach", "demo", "--example", "How many?", "--sql", "SELECT count(*) FROM launches")
    run("sources", "teach", "demo", "--description", "What was launched.")
    listed = run("sources", "teach", "demo").stdout.splitlines()
    assert listed == [
        "description\tWhat was launched.",
        "term\tGMV / 成交额\tpaid orders\tsum(amount)",
        "example\tHow many?\tSELECT count(*) FROM launches",
    ]
    told = json.loads(run("sources", "teach", "demo", "--json").stdout)
    assert [term["name"] for term in told["terms"]] == ["GMV"]
    assert "成交额" in run("sources", "show", "demo").stdout
    run("sources", "teach", "demo", "--remove-term", "gmv", "--remove-example", "how many?")
    assert run("sources", "teach", "demo").stdout == "description\tWhat was launched.\n"


def test_what_cannot_be_taught_is_said(run: Run) -> None:
    for words in (
        ["--term", "x"],
        ["--term", "x", "--sql", "DROP TABLE launches"],
        ["--example", "x"],
        ["--sql", "SELECT 1"],
        ["--meaning", "x"],
        ["--term", "x", "--example", "y", "--sql", "SELECT 1"],
        ["--remove-term", "x"],
    ):
        assert run("sources", "teach", "demo", *words, code=2).exception
    assert run("sources", "teach", "nothing-there", code=2).exception
