"""The sets for `longthread eval analyst`: each gold statement runs through the product, and says one thing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from evals.databases import DATABASES, build

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread_evals.gold_questions import (
    Cells,
    SqlQuestion,
    find_database,
    have_same_rows,
    in_conversations,
    read_questions,
)

QUESTIONS = Path(__file__).parents[2] / "evals" / "questions"
SETS = ("analyst_zh", "analyst_zh_follow_ups", "analyst_en_follow_ups")
TWENTY = "analyst_twenty_turns"
"""A conversation of the other sets' questions about one database."""
CATEGORIES = "count filter distinct top-n sum average group-by date-range having superlative ratio anti-join"
CLOCK = re.compile(r"\b(now|current_\w+|localtime|random)\b", re.I)
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The six databases."""
    built = tmp_path_factory.mktemp("databases")
    for name in DATABASES:
        build(built, name)
    return built


def questions(name: str) -> list[SqlQuestion]:
    return read_questions(QUESTIONS / f"{name}.jsonl")


async def gold_rows(folder: Path, question: SqlQuestion) -> list[Sequence[Cells]]:
    """What each gold statement returns, run as the eval runs it. Raises what the product refuses it with."""
    async with await open_source(str(find_database(folder, question.database))) as source:
        schema = await source.schema()
        return [await query(source, source.prepare(sql, schema)[1]) for sql in question.gold]


async def query(source: Source, run: str) -> Sequence[Cells]:
    return await source.work(lambda connection: list(connection.query(run)), 20.0)


def test_each_file_belongs_to_one_eval() -> None:
    other = {"chinook", "spaceflight", "unseen", "files"}
    assert {path.stem for path in QUESTIONS.glob("*.jsonl")} == other | set(SETS) | {TWENTY}


def test_the_long_conversation_asks_what_the_other_sets_ask() -> None:
    known = {(each.database, each.text, each.gold) for name in SETS for each in questions(name)}
    asked = [(each.database, each.text, each.gold) for each in questions(TWENTY)]
    assert set(asked) <= known and len(set(asked)) == len(asked) == 20
    assert [len(thread) for thread in in_conversations(questions(TWENTY), follow_ups=True)] == [20]


@pytest.mark.parametrize("name", SETS)
async def test_each_gold_statement_runs_and_gives_rows(name: str, folder: Path) -> None:
    for question in questions(name):
        results = await gold_rows(folder, question)
        for sql, rows in zip(question.gold, results, strict=True):
            assert rows and all(cell is not None for row in rows for cell in row), (question.text, sql)
            assert len(set(map(tuple, rows))) == len(rows), (question.text, "the same row twice")
            assert not CLOCK.search(sql), (question.text, sql)
        for first, second in combinations(results, 2):
            assert not have_same_rows(first, second), (question.text, "an alternative that says the same")


@pytest.mark.parametrize("name", SETS)
async def test_a_limit_does_not_choose_among_equals(name: str, folder: Path) -> None:
    for question in questions(name):
        for sql in question.gold:
            limit = re.fullmatch(
                r"SELECT (?P<what>.*?) (?P<rest>FROM .* ORDER BY (?P<key>.*?)(?: DESC)?) LIMIT \d+", sql
            )
            assert limit or "LIMIT" not in sql, question.text
            if limit:
                ranked = SqlQuestion(
                    question.database, question.text, (f"SELECT {limit['what']}, {limit['key']} {limit['rest']}",)
                )
                [keys] = [[row[-1] for row in rows] for rows in await gold_rows(folder, ranked)]
                last = int(sql.rsplit(" ", 1)[1]) - 1
                assert keys[last] != keys[last + 1], question.text


def test_the_chinese_questions_are_sixty_of_all_kinds_and_of_their_own() -> None:
    asked = questions("analyst_zh")
    assert Counter(question.database for question in asked) == dict.fromkeys(DATABASES, 10)
    assert all(CHINESE.search(question.text) and question.conversation is None for question in asked)
    lines = [json.loads(line) for line in (QUESTIONS / "analyst_zh.jsonl").read_text("utf-8").splitlines()]
    assert Counter(line["level"] for line in lines) == {"plain": 20, "medium": 20, "join": 20}
    assert {line["category"] for line in lines} == set(CATEGORIES.split())
    others = read_questions(QUESTIONS / "unseen.jsonl")
    assert not {question.text for question in asked} & {question.text for question in others}
    assert not {sql for question in asked for sql in question.gold} & {sql for each in others for sql in each.gold}


def test_the_conversations_are_the_same_in_both_languages() -> None:
    chinese, english = questions("analyst_zh_follow_ups"), questions("analyst_en_follow_ups")
    assert [len(thread) for thread in in_conversations(chinese, follow_ups=True)] == [5, 5, 5, 5]
    assert [(each.database, each.conversation, each.gold) for each in chinese] == [
        (each.database, each.conversation, each.gold) for each in english
    ]
    assert all(CHINESE.search(question.text) for question in chinese)
    assert not any(CHINESE.search(question.text) for question in english)
    for asked in (chinese, english):
        assert len({(question.database, question.text) for question in asked}) == len(asked), "the eval resumes by text"
