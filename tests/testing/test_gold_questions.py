"""Questions with gold SQL: their formats, and when two results are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longthread.errors import InvalidInput, QuestionsInvalid
from longthread_evals.gold_questions import (
    SqlQuestion,
    find_database,
    have_same_rows,
    in_conversations,
    read_questions,
    sample,
)

OURS = [
    {"db": "shop", "question": "How many?", "sql": ["SELECT 1", "SELECT 2"]},
    {"db": "shop", "question": "多少？", "sql": "SELECT 1", "conversation": "c"},
    {"db": "shop", "question": "按城市？", "sql": "SELECT 3", "conversation": "c"},
]
BIRD = [{"db_id": "shop", "question": "How many?", "evidence": "count means count(*)", "SQL": "SELECT 1"}]
SPIDER = [{"db_id": "shop", "question": "How many?", "query": "SELECT 1"}]


def written(folder: Path, text: str) -> Path:
    path = folder / "questions.json"
    path.write_text(text, "utf-8")
    return path


def test_three_formats_are_read(tmp_path: Path) -> None:
    ours = read_questions(written(tmp_path, "\n".join(json.dumps(row) for row in OURS)))
    assert [each.gold for each in ours] == [("SELECT 1", "SELECT 2"), ("SELECT 1",), ("SELECT 3",)]
    [bird] = read_questions(written(tmp_path, json.dumps(BIRD)))
    assert bird.full_text == "How many?\ncount means count(*)"
    [spider] = read_questions(written(tmp_path, json.dumps(SPIDER)))
    assert (spider.database, spider.gold) == ("shop", ("SELECT 1",))


@pytest.mark.parametrize(
    "text", ["", "{half", '{"db": "a", "question": "b"}', '{"db": "a", "question": "b", "sql": [1]}']
)
def test_a_file_that_is_no_questions_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(QuestionsInvalid):
        read_questions(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"db": "a", "question": "b", "sql": "SELECT 1"}\n\n{"question": "b", "sql": "SELECT 1"}', "line 3"),
        ('[{"question": "b", "query": "SELECT 1"}]', "question 1"),
        ('{"question": "b", "verdict": "down"}', "line 1"),
    ],
)
def test_a_question_without_a_database_is_refused_unless_all_are_asked_of_one(
    tmp_path: Path, text: str, place: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(QuestionsInvalid, match=rf"{place} names no database: give it a `db`, .* --source\."):
        read_questions(file)
    assert [each.database for each in read_questions(file, database="mine")] in (["a", "mine"], ["mine"])


def test_conversations_are_asked_on_request_and_a_sample_is_the_same_for_a_seed(tmp_path: Path) -> None:
    questions = read_questions(written(tmp_path, "\n".join(json.dumps(row) for row in OURS)))
    assert [len(thread) for thread in in_conversations(questions, follow_ups=False)] == [1]
    assert [len(thread) for thread in in_conversations(questions, follow_ups=True)] == [2]
    many = [[SqlQuestion(name, str(number), ("SELECT 1",))] for number in range(10) for name in ("shop", "bank")]
    chosen = sample(many, 8, 7)
    assert chosen == sample(many, 8, 7) != sample(many, 8, 8)
    by_database = [*many[::2], *many[1::2]]
    assert [thread for thread in by_database if thread in chosen] == chosen, "those of one database stand together"
    assert sample(many, None, 7) == by_database


def test_a_database_is_found_beside_or_in_a_folder_of_its_name(tmp_path: Path) -> None:
    nested = tmp_path / "dev" / "shop" / "shop.sqlite"
    nested.parent.mkdir(parents=True)
    nested.touch()
    assert find_database(tmp_path, "shop") == nested
    (tmp_path / "shop.sqlite").touch()
    assert find_database(tmp_path, "shop") == tmp_path / "shop.sqlite"
    with pytest.raises(InvalidInput, match="--databases, or one with --source"):
        find_database(tmp_path, "other")


SAME: list[tuple[Any, Any]] = [
    ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]),
    ([(1,)], [("1",)]),
    ([(2.0000001,)], [(2,)]),
    ([("a",), ("b",)], [("b", 7), ("a", 9)]),
    ([(1, "a")], [("a", 1)]),
    ([(None,)], [(None,)]),
    ([(0.0,)], [(-0.0,)]),
    ([], []),
]
OTHER: list[tuple[Any, Any]] = [
    ([(1,)], [(1,), (1,)]),
    ([(1, "a")], [(1,)]),
    ([(1,), (1,)], [(1,), (2,)]),
    ([(None,)], [("",)]),
    ([("a", 1), ("b", 2)], [("a", 2), ("b", 1)]),
]


@pytest.mark.parametrize(("gold", "rows"), SAME)
def test_results_that_say_the_same(gold: Any, rows: Any) -> None:
    assert have_same_rows(gold, rows)


@pytest.mark.parametrize(("gold", "rows"), OTHER)
def test_results_that_differ(gold: Any, rows: Any) -> None:
    assert not have_same_rows(gold, rows)
