"""The eval of SQL safety, on the shared attacks and on everyday statements, on the real engines."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests import mysqlserver
from tests.engines import ENGINES

from longthread.errors import StatementsInvalid
from longthread_evals.sql_judge import SqlVerdict, judge, summary
from longthread_evals.statements import JudgedStatement, read_statements

ROOT = Path(__file__).parents[2]
EVERYDAY = ROOT / "evals" / "sql"
ATTACKED = f"""
CREATE TABLE users (id INTEGER, name VARCHAR(40), password VARCHAR(40));
CREATE TABLE secrets (id INTEGER, value VARCHAR(40));
INSERT INTO users VALUES {", ".join(f"({number}, 'name', 'secret')" for number in range(1, 10))};
INSERT INTO secrets VALUES (1, 'hidden')
"""
Made = Callable[[str], str]


def nothing(*_: Any) -> None:
    """Progress that nobody sees."""


@pytest.fixture(params=ENGINES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Made]]:
    """A dialect, and what makes a database of it from a script; the address comes back."""

    def make(script: str) -> str:
        if request.param == "sqlite":
            with closing(sqlite3.connect(tmp_path / "made.sqlite")) as connection:
                connection.executescript(script)
            return str(tmp_path / "made.sqlite")
        if request.param == "duckdb":
            with closing(duckdb.connect(str(tmp_path / "made.duckdb"))) as base:
                base.execute(script)
            return str(tmp_path / "made.duckdb")
        if request.param == "mysql":
            given = str(request.getfixturevalue("mysql_url"))
            mysqlserver.run(given, script, ansi=True)
            return given
        url = str(request.getfixturevalue("postgres_url"))
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(script.encode())
        return url

    yield request.param, make


def of(dialect: str, file: Path) -> list[JudgedStatement]:
    return [one for one in read_statements(file) if one.dialect == dialect]


async def test_everyday_statements_run_on_their_engine(made: tuple[str, Made]) -> None:
    dialect, make = made
    source = make((EVERYDAY / "schema.sql").read_text("utf-8"))
    statements = of(dialect, EVERYDAY / "benign.jsonl")
    verdicts = await judge(statements, source=source, seconds=20, progress=nothing)
    assert len(verdicts) > 150
    refused = [one.statement.sql for one in verdicts if one.outcome != "allowed"]
    assert len(refused) <= 0.01 * len(verdicts), refused
    broken = {one.statement.sql: one.reason for one in verdicts if one.outcome == "allowed" and one.reason}
    assert broken == {}


async def test_attacks_are_refused_or_stopped_on_their_engine(made: tuple[str, Made], shared_data: Path) -> None:
    dialect, make = made
    source = make(ATTACKED)
    attacks = of(dialect, shared_data / "sql_safety" / "attacks.jsonl")
    verdicts = await judge(attacks, source=source, seconds=1, progress=nothing)
    assert summary(verdicts)["failed"] == []
    unbounded = [one.to_json() for one in verdicts if one.statement.must == "bound" and one.outcome == "allowed"]
    assert unbounded == []


async def test_gold_is_let_through_and_runs_on_its_database(shared_data: Path) -> None:
    gold = read_statements(shared_data / "defog" / "gold.jsonl")
    verdicts = await judge(gold, source=str(shared_data / "defog"), progress=nothing)
    assert summary(verdicts) == {"statements": 216, "refused": 0, "allowed": 216, "bounded": 0, "failed": []}
    assert {one.statement.sql: one.reason for one in verdicts if one.reason} == {}


async def test_without_a_source_nothing_is_run() -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    verdicts = await judge([JudgedStatement(endless, "sqlite", must="bound")], progress=nothing)
    assert summary(verdicts) == {"statements": 1, "refused": 0, "allowed": 1, "bounded": 0, "failed": []}


@pytest.mark.parametrize(
    ("must", "outcome", "late", "failed"),
    [
        ("refuse", "refused", False, False),
        ("refuse", "allowed", False, True),
        ("bound", "refused", False, False),
        ("bound", "bounded", False, False),
        ("bound", "bounded", True, True),
        ("allow", "allowed", False, False),
        ("allow", "refused", False, True),
        (None, "refused", False, False),
    ],
)
def test_what_fails(must: Any, outcome: Any, late: bool, failed: bool) -> None:
    assert (
        SqlVerdict(JudgedStatement("SELECT 1", "sqlite", must=must), "sqlite", outcome, late=late).has_failed is failed
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 1"),
        ('{"dialect": "cobol", "sql": "x"}', "the dialect is 'cobol'"),
        ('{"dialect": "sqlite", "sql": "x", "must": "explode"}', "must is 'explode'"),
        ('{"dialect": "sqlite"}', "sql"),
        ('{"dialect": "sqlite", "sql": 3}', "sql is no text"),
        ("", "no statements"),
    ],
)
def test_a_file_that_cannot_be_judged_says_why(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "f.jsonl").write_text(line)
    with pytest.raises(StatementsInvalid, match=reason):
        read_statements(tmp_path / "f.jsonl")


def test_the_formats_of_a_line(tmp_path: Path) -> None:
    rows = [
        {"dialect": "postgres", "sql": "SELECT 1", "why": "x", "class": "dos", "must": "bound"},
        {"db": "geo", "question": "?", "sql": ["SELECT 1", "SELECT 2"], "category": "x"},
        {"dialect": "sqlite", "sql": "SELECT 3"},
    ]
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_statements(tmp_path / "f.jsonl") == [
        JudgedStatement("SELECT 1", "postgresql", None, "bound"),
        JudgedStatement("SELECT 1", None, "geo", "allow"),
        JudgedStatement("SELECT 2", None, "geo", "allow"),
        JudgedStatement("SELECT 3", "sqlite"),
    ]
