"""`longthread sources teach` and `longthread sources metrics`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

pytestmark = pytest.mark.one_backend

CUBES = """
cubes:
  - name: launches
    sql_table: launches
    measures:
      - {name: flights, type: count, title: 发射次数}
      - {name: running, type: sum, sql: id, rolling_window: {trailing: unbounded}}
    dimensions:
      - {name: outcome, sql: outcome, type: string, description: How it ended.}
"""


def test_a_source_is_taught_listed_and_untaught(run: Run) -> None:
    gmv = ["--term", "GMV", "--synonym", "成交额", "--meaning", "paid orders", "--sql", "sum(rocket_id)"]
    assert "version 1: the source demo" in run("sources", "teach", "demo", *gmv).stdout
    assert "Nothing has changed" in run("sources", "teach", "demo", *gmv).stdout
    run("sources", "teach", "demo", "--example", "How many?", "--sql", "SELECT count(*) FROM launches")
    run("sources", "teach", "demo", "--description", "What was launched.")
    listed = run("sources", "teach", "demo").stdout.splitlines()
    assert listed == [
        "description\tWhat was launched.",
        "term\tGMV / 成交额\tpaid orders\tsum(rocket_id)",
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


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--term", "GMV", "--sql", "sum(amount)"], "the SQL of GMV: There is no column amount."),
        (["--term", "GMV", "--sql", "launches.outcom = 'x'"], "There is no column launches.outcom."),
        (["--term", "GMV", "--sql", "SELECT 1 FROM orders"], "There is no table orders."),
        (
            ["--example", "How?", "--sql", "SELECT nothing FROM launches"],
            "the SQL of How?: There is no column nothing.",
        ),
    ],
)
def test_sql_that_the_source_cannot_run_is_not_taught(run: Run, words: list[str], problem: str) -> None:
    assert problem in str(run("sources", "teach", "demo", *words, code=2).exception)
    assert run("sources", "teach", "demo", code=2).exception, "it is still unknown"


def test_sql_of_several_tables_and_of_one_that_is_not_there_yet_is_taught(run: Run, tmp_path: Path) -> None:
    share = "count(*) FILTER (WHERE launches.outcome = 'success') * 1.0 / count(DISTINCT rockets.id)"
    assert not run("sources", "teach", "demo", "--term", "share", "--sql", share).stderr
    later = run("sources", "teach", str(tmp_path / "later.csv"), "--term", "GMV", "--sql", "sum(amount)")
    assert "version 1: the source later" in later.stdout
    assert later.stderr.startswith("The SQL was not compared with the source: There is no source at")


def test_metrics_are_imported_listed_and_asked(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cubes.yml"
    file.write_text(CUBES, "utf-8")
    refused = run("sources", "metrics", "demo", str(file), code=2)
    assert "the metric running: it has `rolling_window`" in str(refused.exception)
    assert "--skip imports the others" in str(refused.exception)
    made = run("sources", "metrics", "demo", str(file), "--skip")
    assert made.stdout == "Imported 1 metric, 1 dimension, 0 joins, version 1: the source demo.\n"
    assert "Left out: the metric running" in made.stderr
    assert run("sources", "metrics", "demo").stdout.splitlines() == [
        "metric\tflights / 发射次数\t\tCOUNT(*)",
        "dimension\toutcome\tHow it ended.\toutcome",
    ]
    assert json.loads(run("sources", "metrics", "demo", "--json").stdout)["metrics"][0]["table"] == "launches"
    assert "semantics:" in run("sources", "show", "demo").stdout
    args = '{"metrics": ["发射次数"], "by": ["outcome"]}'
    tried = run("tools", "run", "query_metric", "--args", args, "--source", "demo").stdout
    assert "flights" in tried


def test_what_cannot_be_imported_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text("models: []", "utf-8")
    assert "nothing to import" in str(run("sources", "metrics", "demo", str(tmp_path / "x.yml"), code=2).exception)
    assert run("sources", "metrics", "nothing-there", code=2).exception
    args = '{"metrics": ["x"]}'
    tried = run("tools", "run", "query_metric", "--args", args, "--source", "demo", code=2)
    assert "The source has no metrics" in str(tried.exception)
