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
from evals.verdicts import GoldQuestion, read_questions

from longthread.errors import SourceNotFound
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.testing import ScriptedChatModel

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
        for name in ("questions", "databases", "files", "old_workbook", "verdicts"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def bench(evals: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return evals.Bench(tmp_path_factory.mktemp("evals"), evals.DATA)


def questions(name: str) -> list[GoldQuestion]:
    return read_questions((EVALS / "questions" / f"{name}.jsonl").read_text("utf-8"))


SETS = ("chinook", "spaceflight", "unseen")


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


FILES = "files"
FILE_KINDS = "count list filter sum average top-n share per-month latest date-range distinct compare join superlative"


def test_the_questions_on_files_are_of_all_kinds_and_files(evals: ModuleType) -> None:
    asked = questions(FILES)
    assert Counter(question.lang for question in asked) == {"zh": 17, "en": 16}
    assert {question.kind for question in asked} == {*FILE_KINDS.split(), "follow-up", "unanswerable"}
    assert {name for question in asked for name in question.db.split(evals.AND)} == set(evals.FILES)
    assert all((question.kind == "follow-up") == (question.follows is not None) for question in asked)


def test_gold_sql_on_files_returns_rows_and_there_is_none_for_what_they_do_not_tell(bench: Any) -> None:
    for question in questions(FILES):
        assert bool(question.sql) is (question.kind != "unanswerable"), question.id
        for sql in question.sql:
            rows = bench.rows(question.db, sql).rows
            assert rows and all(cell is not None for row in rows for cell in row), question.id
            assert question.match != "scalar" or (len(rows), len(rows[0])) == (1, 1), question.id


def test_files_mean_the_same_each_time(evals: ModuleType, tmp_path: Path) -> None:
    files = sys.modules["files"]
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        (tmp_path / name).mkdir()
        files.write_truth(tmp_path / name, seed)
        files.write_file(tmp_path / name, "销售订单.csv", seed)
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    assert _dump(one / "truth.sqlite") == _dump(two / "truth.sqlite") != _dump(three / "truth.sqlite")
    assert (one / "销售订单.csv").read_bytes() == (two / "销售订单.csv").read_bytes()


async def test_uploaded_files_are_asked_together_and_judged_by_what_they_mean(
    evals: ModuleType, bench: Any, tmp_path: Path
) -> None:
    joined = next(question for question in questions(FILES) if question.id == "files-07")
    targets = next(question for question in questions(FILES) if question.id == "files-22")
    sql = 'SELECT m."所在城市", SUM(d."订单金额") FROM "销售订单" d JOIN "门店信息" m USING ("门店编号") GROUP BY 1'
    all_rows = 'SELECT SUM("Target") AS n FROM "Regions_2024"'
    [truth] = bench.rows(targets.db, targets.sql[0]).rows[0]
    model = script(
        ("See [q1].", sql),
        (f"{2 * truth} [q1].", all_rows),
        (f"{truth} [q1].", f"{all_rows} WHERE \"Region\" <> 'Total'"),
    )
    settings = Settings.load(env_file=None, data_dir=tmp_path, database=tmp_path / "conversations.db")
    async with Analyst.open(settings, models=lambda name, settings: model) as analyst:
        asked = [joined, targets, targets]
        outcomes = [outcome async for outcome in evals.run(analyst, bench, FILES, asked, "scripted")]
    assert [(outcome.verdict.right, outcome.verdict.refused) for outcome in outcomes] == [
        (True, False),
        (False, False),
        (True, False),
    ], outcomes


def count_of(text: str, sql: str, follows: str | None = None) -> GoldQuestion:
    return GoldQuestion(text, "shop", "en", "count", text, (sql,), "scalar", follows)


def script(*turns: tuple[str, str]) -> Any:
    """Replies of a model that answers each question with one query and one sentence."""
    calls = [({"thought": "", "action": "run_sql", "args": {"sql": sql}}, {"finish": answer}) for answer, sql in turns]
    return ScriptedChatModel([reply for turn in calls for reply in turn])


async def test_the_runner_asks_the_analyst_and_judges(evals: ModuleType, bench: Any, tmp_path: Path) -> None:
    count = "SELECT COUNT(*) AS n FROM orders"
    cancelled = f"{count} WHERE status = 'cancelled'"
    [orders] = bench.rows("shop", count).rows[0]
    [few] = bench.rows("shop", cancelled).rows[0]
    asked = [
        count_of("right", count),
        count_of("the next on its thread", cancelled, follows="right"),
        count_of("other rows", count),
        count_of("other words", count),
        count_of("no citation", count),
        count_of("a query that fails", count),
    ]
    model = script(
        (f"There are {orders} [q1].", count),
        (f"{few} of {orders} [q1, q2].", cancelled),
        (f"There are {few} [q1].", cancelled),
        (f"There are {orders + 1} [q1].", count),
        (f"There are {orders}.", count),
        (f"There are {orders} [q1].", "SELECT nothing FROM nowhere"),
    )
    settings = Settings.load(env_file=None, data_dir=tmp_path, database=tmp_path / "conversations.db")
    async with Analyst.open(settings, models=lambda name, settings: model) as analyst:
        outcomes = [outcome async for outcome in evals.run(analyst, bench, "some", asked, "scripted")]
    assert [outcome.verdict.right for outcome in outcomes] == [True, True, False, False, False, False]
    assert outcomes[0].to_json()["set"] == "some"
    assert len(outcomes[1].sql) == 2


async def test_what_cannot_be_asked_is_wrong_and_not_fatal(evals: ModuleType, bench: Any, tmp_path: Path) -> None:
    settings = Settings.load(env_file=None, data_dir=tmp_path, database=tmp_path / "conversations.db")
    async with Analyst.open(settings) as analyst:
        event = await evals.ask(analyst, "?", source=str(tmp_path / "absent.sqlite"), thread=None, model="demo")
    assert (event["type"], event["error"]["type"]) == ("failed", "source_not_found")


def test_a_run_that_does_not_finish_is_wrong(evals: ModuleType, bench: Any) -> None:
    question = GoldQuestion("a", "shop", "en", "count", "How many orders?", ("SELECT COUNT(*) FROM orders",), "scalar")
    outcome = evals.examine(bench, "some", question, {"type": "paused", "summary": "200 [q1]"}, {"q1": question.sql[0]})
    assert (outcome.verdict.right, outcome.verdict.reason) == (False, "the run ended paused")


def test_schema_questions_are_judged_by_their_words(evals: ModuleType, bench: Any) -> None:
    tables = GoldQuestion(
        "a", "shop", "en", "schema", "?", ("SELECT name FROM sqlite_master WHERE type = 'table'",), "set"
    )
    columns = GoldQuestion(
        "b", "shop", "en", "schema", "?", ("SELECT name FROM pragma_table_info('categories')",), "set"
    )
    named = "customers, categories, products, orders, order_items"
    everything = ", ".join(bench.column_names("shop"))

    def right(question: GoldQuestion, answer: str) -> bool:
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

    async def ask(*_: Any, **__: Any) -> dict[str, Any]:
        queries = [{"query": "q1", "sql": "SELECT COUNT(*) FROM 员工"}]
        return {"type": "finished", "answer": "150 人 [q1]", "queries": queries, "thread_id": "t"}

    monkeypatch.setattr(evals, "ask", ask)
    monkeypatch.setattr(sys, "argv", ["questions.py", str(own), str(absent), "--failures"])
    evals.main()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["questions"], last["right"]) == (1, 1)
    assert last["by_set"] == {"own": {"questions": 1, "right": 1, "refused": 0}}
    assert list(last["skipped"]) == ["absent"]
