"""The development set: questions of every kind, in English and Chinese, checked against hand-written SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from longthread_demo.spaceflight import spaceflight_database

AT_ONCE = 12
"""Questions of one test: those of a large database are spread over several processes."""
CAP = 100
"""Rows that `run_sql` returns at most."""


def questions() -> dict[str, list[tuple[str, str, str]]]:
    found: dict[str, list[tuple[str, str, str]]] = {}
    for line in Path(__file__).with_name("questions.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            database, kind, asked, sql = line.split("\t")
            found.setdefault(database, []).append((kind, asked, sql))
    return found


def parts() -> list[tuple[str, int]]:
    """The databases, each as often as it has questions for a test, with where they begin."""
    return [(name, first) for name, asked in sorted(questions().items()) for first in range(0, len(asked), AT_ONCE)]


def plain(value: Any) -> Any:
    if isinstance(value, int | float):
        return round(float(value), 3)
    try:
        return round(float(value), 3)
    except (TypeError, ValueError):
        return value


def agrees(wanted: list[tuple[Any, ...]], rows: list[list[Any]] | None) -> bool:
    """Whether each wanted row is among the rows, which may have more columns but not more rows."""
    if rows is None or len(rows) != min(len(wanted), CAP):
        return False
    if len(wanted) > CAP:
        return True
    left = [[plain(value) for value in row] for row in rows]
    for row in wanted:
        match = next((other for other in left if all(other.count(v) >= 1 for v in map(plain, row))), None)
        if match is None:
            return False
        left.remove(match)
    return True


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "first"), parts())
async def test_questions_are_answered_from_the_right_rows(
    name: str, first: int, talk: Callable[[str], Awaitable[Any]], database: Callable[[str], Path | str], tmp_path: Path
) -> None:
    path = spaceflight_database(tmp_path) if name == "demo" else database(name)
    wrong = []
    conversation = await talk(name)
    with closing(sqlite3.connect(path)) as connection:
        for kind, asked, sql in questions()[name][first : first + AT_ONCE]:
            conversation.messages.clear()
            for question in asked.split("||"):
                answer = await conversation.ask(question)
            if not agrees(connection.execute(sql).fetchall(), conversation.rows) or "cannot answer" in answer:
                wrong.append(f"{kind}: {asked}")
    assert wrong == []
