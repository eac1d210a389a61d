"""The question sets are sound, their databases are the same everywhere, and the runner asks and counts as it says."""

from __future__ import annotations

import hashlib
import importlib
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longthread.errors import SourceNotFound
from longthread.testing.questions import Question, read_questions

EVALS = Path(__file__).parents[2] / "evals"
KINDS = (
    "list count distinct filter top-n sum average min max group-by date-range join having superlative follow-up schema"
)


@pytest.fixture(scope="module")
def evals() -> Iterator[ModuleType]:
    """evals/questions.py, which is a script beside evals/databases.py and no package."""
    sys.path.insert(0, str(EVALS))
    try:
        yield importlib.import_module("questions")
    finally:
        sys.path.remove(str(EVALS))
        for name in ("questions", "databases"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def bench(evals: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return evals.Bench(tmp_path_factory.mktemp("evals"), evals.DATA)


def questions(name: str) -> list[Question]:
    return read_questions((EVALS / "questions" / f"{name}.jsonl").read_text("utf-8"))


SETS = sorted(path.stem for path in (EVALS / "questions").glob("*.jsonl"))


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_half_chinese_and_has_all_kinds(name: str) -> None:
    asked = questions(name)
    assert (
        len({question.id for question in asked}) == len({question.question for question in asked}) or name != "chinook"
    )
    assert len({question.id for question in asked}) == len(asked)
    languages = Counter(question.lang for question in asked)
    assert languages["en"] == languages["zh"] == len(asked) / 2
    assert {question.kind for question in asked} <= set(KINDS.split())
    if len(asked) >= 50:
        assert {question.kind for question in asked} == set(KINDS.split())
    assert all((question.kind == "follow-up") == (question.follows is not None) for question in asked)


@pytest.mark.parametrize("name", SETS)
def test_gold_sql_runs_and_returns_rows(name: str, bench: Any) -> None:
    for question in questions(name):
        for sql in question.sql:
            try:
                rows = bench.rows(question.db, sql).rows
            except SourceNotFound as error:
                pytest.skip(str(error))
            assert rows, question.id
            assert any(cell is not None for cell in rows[0]), question.id
            if question.match == "scalar":
                assert (len(rows), len(rows[0])) == (1, 1), question.id


def test_the_demo_source_is_asked_for_by_its_name(bench: Any) -> None:
    assert bench.source("demo") == "demo"
    assert bench.source("shop") == str(bench.path("shop"))


def test_databases_are_the_same_each_time(evals: ModuleType, tmp_path: Path) -> None:
    from_seed = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        from_seed.append([_dump(evals.build(folder, name)) for name in evals.DATABASES])
    assert from_seed[0] == from_seed[1]
    assert from_seed[0] != [_dump(evals.build(tmp_path, name, seed=8)) for name in evals.DATABASES]


def _dump(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return hashlib.sha256("\n".join(connection.iterdump()).encode()).hexdigest()
    finally:
        connection.close()


class Asked:
    """Stands in for the product: answers each question with the SQL it was given for it."""

    def __init__(self, replies: dict[str, tuple[str, str]]) -> None:
        self.replies = replies
        self.threads: list[str | None] = []

    def __call__(self, question: str, *, thread: str | None, **_: Any) -> dict[str, Any]:
        self.threads.append(thread)
        answer, sql = self.replies[question]
        queries = [{"query": f"q{len(self.threads)}", "sql": sql}]
        return {
            "type": "finished",
            "answer": answer,
            "queries": queries,
            "thread_id": thread or f"t{len(self.threads)}",
        }


def test_the_runner_counts_right_and_wrong_answers(
    evals: ModuleType, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = "SELECT COUNT(*) AS n FROM orders"
    cancelled = f"{count} WHERE status = 'cancelled'"
    [orders] = bench.rows("shop", count).rows[0]
    [wrong] = bench.rows("shop", cancelled).rows[0]
    asked = Asked(
        {
            "right": (f"{orders} [q1]", count),
            "follow-up": (f"{wrong} [q2]", cancelled),
            "wrong rows": (f"{wrong} [q3]", cancelled),
            "wrong words": (f"{orders + 1} [q4]", count),
            "no citation": (f"{orders}", count),
            "broken": (f"{orders} [q6]", "SELECT nothing FROM nowhere"),
        }
    )
    monkeypatch.setattr(evals, "ask", asked)
    gold = {"follow-up": cancelled}
    lines = [
        Question(
            text, "shop", "en", "count", text, (gold.get(text, count),), "scalar", "right" if text in gold else None
        )
        for text in asked.replies
    ]
    outcomes = list(evals.run(bench, "some", lines, "demo"))
    assert [outcome.verdict.right for outcome in outcomes] == [True, True, False, False, False, False]
    assert asked.threads == [None, "t1", None, None, None, None]
    assert outcomes[0].to_json()["sql"] == [count]


def test_a_run_that_does_not_finish_is_wrong(evals: ModuleType, bench: Any) -> None:
    question = Question("a", "shop", "en", "count", "How many orders?", ("SELECT COUNT(*) FROM orders",), "scalar")
    outcome = evals.examine(bench, "some", question, {"type": "paused", "summary": "200 [q1]"}, {"q1": question.sql[0]})
    assert (outcome.verdict.right, outcome.verdict.reason) == (False, "the run ended paused")


def test_schema_questions_are_judged_by_their_words(evals: ModuleType, bench: Any) -> None:
    tables = Question("a", "shop", "en", "schema", "?", ("SELECT name FROM sqlite_master WHERE type = 'table'",), "set")
    columns = Question("b", "shop", "en", "schema", "?", ("SELECT name FROM pragma_table_info('categories')",), "set")
    named = "customers, categories, products, orders, order_items"
    everything = ", ".join(bench.column_names("shop"))

    def right(question: Question, answer: str) -> bool:
        verdict = evals.examine(bench, "s", question, {"type": "finished", "answer": answer}, {}).verdict
        return bool(verdict.right)

    assert right(tables, named)
    assert not right(tables, "customers, orders")
    assert right(columns, "id and name")
    assert not right(columns, everything)


def test_the_last_line_is_json(
    evals: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = {"id": "a", "db": "hr", "lang": "zh", "kind": "count", "question": "多少人？", "match": "scalar"}
    own = tmp_path / "own.jsonl"
    own.write_text(json.dumps(line | {"sql": "SELECT COUNT(*) FROM 员工"}), "utf-8")
    absent = tmp_path / "absent.jsonl"
    absent.write_text(json.dumps(line | {"db": "no-such", "sql": "SELECT 1"}), "utf-8")
    monkeypatch.setattr(evals, "ask", Asked({"多少人？": ("150 人 [q1]", "SELECT COUNT(*) FROM 员工")}))
    monkeypatch.setattr(sys, "argv", ["questions.py", str(own), str(absent), "--failures"])
    evals.main()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["questions"], last["right"]) == (1, 1)
    assert last["by_set"] == {"own": {"questions": 1, "right": 1}}
    assert list(last["skipped"]) == ["absent"]
