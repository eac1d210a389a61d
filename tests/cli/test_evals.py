"""`longthread eval recall`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.errors import EvalInvalid, InvalidInput
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

ENTRIES = [f"We spoke of the {word} for a while." for word in ("weather", "garden", "harbour", "library", "bridge")]


def lines(*, collections: int = 2) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(collections):
        of = {"collection": f"c{number}"}
        for at, text in enumerate(ENTRIES * 6):
            entry = {"id": f"{at}", "role": "user", "name": "Ann", "text": f"{text} {at}", "time": "8 May, 2023"}
            rows.append({"type": "entry"} | of | entry)
        rows.append(
            {"type": "entry"} | of | {"id": "x", "role": "assistant", "name": None, "text": "海边的灯塔", "time": None}
        )
        for text, relevant, category in (
            ("灯塔", ["x"], "zh"),
            ("the harbour 7", ["7"], "en"),
            ("nirgends", ["3"], "no"),
        ):
            rows.append({"type": "query"} | of | {"text": text, "relevant": relevant, "category": category})
    return rows


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


class Hashes(HashEmbedder):
    """An embedder that works, whatever its folder holds."""

    def __init__(self, model: str) -> None:
        super().__init__(16)
        self.name = f"local:{model}"


def run(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["eval", "recall", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return last


def test_the_last_line_holds_the_measures(tmp_path: Path) -> None:
    found = run(str(written(tmp_path / "f.jsonl", lines())), "--k", "1,5")
    assert found["p50_ms"] <= found["p95_ms"]
    assert {key: value for key, value in found.items() if not key.endswith("_ms")} == {
        "queries": 6,
        "entries": 62,
        "recall": {"1": 0.6667, "5": 0.6667},
        "with_neighbours": {"1": 0.6667, "5": 0.6667},
        "by_role": {
            "assistant": {"recall": {"1": 1.0, "5": 1.0}, "with_neighbours": {"1": 1.0, "5": 1.0}},
            "user": {"recall": {"1": 0.5, "5": 0.5}, "with_neighbours": {"1": 0.5, "5": 0.5}},
        },
        "by_category": {
            "en": {"1": 1.0, "5": 1.0},
            "no": {"1": 0.0, "5": 0.0},
            "zh": {"1": 1.0, "5": 1.0},
        },
        "backend": "sqlite",
        "embedder": None,
    }


def test_what_is_shown_is_counted_for_as_many_hits_as_are_asked_for(tmp_path: Path) -> None:
    said = {"type": "entry", "collection": "c", "role": "user", "name": None, "time": None}
    texts = ["a", "b", "the walrus sleeps", "the walrus eats a walrus", "d", "e"]
    asked = {"type": "query", "collection": "c", "text": "walrus eats", "relevant": ["1", "2"], "category": "x"}
    rows = [*(said | {"id": str(at), "text": text} for at, text in enumerate(texts)), asked]
    found = run(str(written(tmp_path / "f.jsonl", rows)), "--k", "2,1")
    # Of one hit, 2 stands beside it; of two it is one, and 1 stands beside it.
    assert found["recall"] == {"2": 0.5, "1": 0.0}
    assert found["with_neighbours"] == {"2": 1.0, "1": 0.5}


def test_the_store_that_is_named_is_left_as_it_was(tmp_path: Path, store_address: str, backend: str) -> None:
    path = str(written(tmp_path / "f.jsonl", lines(collections=1)))
    found = run(path, "--database-url", store_address)
    assert found["backend"] == {"sqlite": "sqlite", "postgres": "postgresql"}[backend]
    assert found["recall"] == run(path)["recall"]
    status = CliRunner().invoke(app, ["db", "status", "--json", "--database", store_address])
    assert json.loads(status.stdout)["threads"] == 0


def test_an_embedder_that_does_not_work_is_done_without(tmp_path: Path) -> None:
    path = str(written(tmp_path / "f.jsonl", lines(collections=1)))
    found = run(path, "--embedder", f"local:{tmp_path}")
    assert found["recall"]["10"] == 0.6667
    assert found["embedder"] is None
    assert "config.json" in found["warnings"][0]


@pytest.mark.parametrize("name", ["foo:bar", "openai:text-embedding-3-small", "local:/nowhere"])
def test_an_embedder_that_cannot_be_used_is_not_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable in ("OPENAI_API_KEY", "LLM_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    path = str(written(tmp_path / "f.jsonl", lines(collections=1)))
    done = CliRunner().invoke(app, ["eval", "recall", path, "--embedder", name], catch_exceptions=False)
    assert done.stdout.splitlines()[0] == "By keywords alone."
    assert name in done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["embedder"], found["recall"]["10"]) == (None, 0.6667)
    assert name in found["warnings"][0]


def test_the_configured_embedder_is_used_and_named_unless_none_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.llm.embedders.LocalEmbedder", Hashes)
    path = str(written(tmp_path / "f.jsonl", lines(collections=1)))
    for configured, given, used in (
        ("", [], None),
        (f"local:{tmp_path}", [], f"local:{tmp_path}"),
        (f"local:{tmp_path}", ["--embedder", "none"], None),
        ("local:/other", ["--embedder", f"local:{tmp_path}"], f"local:{tmp_path}"),
    ):
        monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", configured)
        done = CliRunner().invoke(app, ["eval", "recall", path, *given], catch_exceptions=False)
        first, *_, last = done.stdout.splitlines()
        assert json.loads(last)["embedder"] == used
        assert first == (f"By keywords and by meaning, with {used}." if used else "By keywords alone.")


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.append({"type": "question"}),
        lambda rows: rows[0].pop("text"),
        lambda rows: rows[-1].update(relevant=["nobody"]),
        lambda rows: rows[-1].update(relevant=[]),
        lambda rows: rows[0].update(role="robot"),
        lambda rows: rows.clear(),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, change: Any) -> None:
    rows = lines(collections=1)
    change(rows)
    path = written(tmp_path / "f.jsonl", rows)
    with pytest.raises(EvalInvalid, match=r"f\.jsonl"):
        run(str(path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[1].update(role="robot"), "line 2: the role is 'robot'; allowed is user, assistant, tool"),
        (lambda rows: rows[1].pop("role"), "line 2 has no 'role'"),
        (lambda rows: rows[0].update(type="fact"), "line 1: its type is 'fact'; allowed is entry or query"),
        (lambda rows: rows[-1].update(relevant="7"), "as a list, in 'relevant'"),
        (lambda rows: rows.insert(0, []), "line 1: it is no JSON object"),
        (lambda rows: rows.append({**rows[3]}), "collection c0 has several entries '3'"),
    ],
)
def test_a_file_that_is_wrong_says_what_is_allowed(tmp_path: Path, change: Any, said: str) -> None:
    rows = lines(collections=1)
    change(rows)
    with pytest.raises(EvalInvalid) as refused:
        run(str(written(tmp_path / "f.jsonl", rows)))
    assert said in str(refused.value)


def test_what_a_tool_gave_is_found_as_well(tmp_path: Path) -> None:
    of = {"type": "entry", "collection": "c", "id": "t", "role": "tool", "text": '{"path": "/srv/etc/router.toml"}'}
    asked = {"type": "query", "collection": "c", "text": "where is router.toml?", "relevant": ["t"]}
    path = written(tmp_path / "f.jsonl", [*lines(collections=1), of, asked])
    found = run(str(path), "--k", "1")
    assert found["by_category"]["None"] == {"1": 1.0}


def test_wrong_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--k"):
        run(str(written(tmp_path / "f.jsonl", lines())), "--k", "5,none")


def judged(file: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["eval", "sql", str(file), *arguments], catch_exceptions=False)
    return done.exit_code, json.loads(done.stdout.splitlines()[-1])


def test_statements_are_judged(tmp_path: Path) -> None:
    rows = [
        {"dialect": "sqlite", "sql": "DROP TABLE t", "must": "refuse"},
        {"dialect": "sqlite", "sql": "SELECT 1", "must": "allow"},
    ]
    code, found = judged(written(tmp_path / "f.jsonl", rows))
    assert (code, found) == (0, {"statements": 2, "refused": 1, "allowed": 1, "bounded": 0, "failed": []})
    code, found = judged(written(tmp_path / "g.jsonl", [{"dialect": "sqlite", "sql": "SELECT 1", "must": "refuse"}]))
    assert code == 1
    assert [one["sql"] for one in found["failed"]] == ["SELECT 1"]


def test_linking_is_measured(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "zoo.sqlite")) as base:
        base.execute("CREATE TABLE penguins (id INTEGER, weight REAL)")
    gold = [{"db": "zoo", "question": "How heavy is each penguin?", "sql": ["SELECT weight FROM penguins"]}]
    file = written(tmp_path / "gold.jsonl", gold)
    done = CliRunner().invoke(app, ["eval", "linking", str(file), str(tmp_path), "--k", "5"], catch_exceptions=False)
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["tables"], found["questions"], found["all_needed"]) == (1000, 1, {"5": 1.0})


def test_an_answer_beside_a_hit_counts_with_its_neighbours(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for at, (role, text) in enumerate(
        [
            ("user", "Which lamp did the lighthouse have?"),
            ("assistant", "One of brass."),
            ("user", "Thanks, that helps."),
        ]
    ):
        entry = {"id": f"{at}", "role": role, "name": None, "text": text, "time": None}
        rows.append({"type": "entry", "collection": "c"} | entry)
    rows.append({"type": "query", "collection": "c", "text": "the lighthouse lamp", "relevant": ["1"], "category": "a"})
    found = run(str(written(tmp_path / "f.jsonl", rows)), "--k", "1")
    assert (found["recall"]["1"], found["with_neighbours"]["1"]) == (0.0, 1.0)
    assert found["by_role"] == {"assistant": {"recall": {"1": 0.0}, "with_neighbours": {"1": 1.0}}}


def questions(folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "shop.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER, city TEXT); INSERT INTO customers VALUES (1, 'Rome')"
        )
    asked = [
        {"db": "shop", "question": "How many customers are there?", "sql": "SELECT count(*) FROM customers"},
        {"db": "shop", "question": "How many customers are there in all?", "sql": "SELECT count(*) + 1 FROM customers"},
        {"db": "shop", "question": "Why is the sky blue?", "sql": "SELECT 1"},
    ]
    return written(folder / "questions.jsonl", asked)


def test_the_analyst_is_measured_on_gold_sql_and_an_interrupted_eval_goes_on(tmp_path: Path) -> None:
    file, results = questions(tmp_path), tmp_path / "results.jsonl"
    arguments = ["eval", "analyst", str(file), "--model", "demo", "--results", str(results)]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["verdict"] for line in lines[:-1]] == ["right", "wrong", "refused"]
    total = lines[-1]
    counts = {name: total[name] for name in ("questions", "right", "wrong", "refused", "broken", "baseline_right")}
    assert counts == {"questions": 3, "right": 1, "wrong": 1, "refused": 1, "broken": 0, "baseline_right": None}
    assert total["prompt_tokens"] > 0
    kept = results.read_text("utf-8").splitlines()
    results.write_text("\n".join([kept[0].replace('"right"', '"broken"'), kept[1][:40]]), "utf-8")
    again = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert json.loads(again.stdout.splitlines()[-1])["broken"] == 1  # the first line was taken, the torn one was not


def test_questions_of_one_source_need_no_database(tmp_path: Path) -> None:
    shop = questions(tmp_path).with_name("shop.sqlite")
    asked = [{"question": "How many customers are there?", "sql": "SELECT count(*) FROM customers"}]
    arguments = ["eval", "analyst", str(written(tmp_path / "own.jsonl", asked)), "--model", "demo"]
    done = CliRunner().invoke(app, [*arguments, "--source", str(shop)], catch_exceptions=False)
    outcome, total = map(json.loads, done.stdout.splitlines())
    assert (outcome["database"], outcome["verdict"], total["right"]) == ("shop", "right", 1)
    refused = CliRunner().invoke(app, arguments)
    assert "line 1 names no database" in str(refused.exception)


def test_the_examples_of_a_taught_source_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions(tmp_path)
    monkeypatch.setenv("LONGTHREAD_DATABASE", str(tmp_path / "c.db"))

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments))

    nothing = call("eval", "analyst", "--model", "demo")
    assert "Give a FILE, or --source" in str(nothing.exception)
    definition = json.dumps({"kind": "source", "name": "shop", "address": str(tmp_path / "shop.sqlite")})
    (tmp_path / "shop.json").write_text(definition, "utf-8")
    assert call("sources", "apply", "-f", str(tmp_path / "shop.json")).exit_code == 0
    untaught = call("eval", "analyst", "--source", "shop", "--model", "demo")
    assert "longthread sources teach shop" in str(untaught.exception)
    taught = {
        "How many customers are there?": "SELECT count(*) FROM customers",
        "How many are in Rome?": "SELECT count(*) + 1 FROM customers",
    }
    for question, sql in taught.items():
        assert call("sources", "teach", "shop", "--example", question, "--sql", sql).exit_code == 0
    done = call("eval", "analyst", "--source", "shop", "--model", "demo")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["question"]: line["verdict"] for line in lines[:-1]} == dict(
        zip(taught, ["right", "wrong"], strict=True)
    )
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)  # its own store is left as it was
