"""Commands that keep nothing make no store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

Run = Callable[..., Any]

KEEPING_NOTHING = [
    ["threads", "list"],
    ["threads", "list", "--json"],
    ["threads", "search", "rockets"],
    ["threads", "show", "last"],
    ["threads", "rename", "last", "Another title"],
    ["threads", "delete", "last", "--yes"],
    ["threads", "export", "--all"],
    ["threads", "result", "last", "q1"],
    ["state", "last"],
    ["view", "last"],
    ["resume", "last"],
    ["ask", "and the next?", "--thread", "last"],
    ["memories", "list"],
    ["memories", "search", "bird"],
    ["memories", "show", "m"],
    ["memories", "forget", "m", "--yes"],
    ["forget", "--user", "u", "--yes"],
    ["forget", "--deleted", "--yes"],
    ["db", "index"],
]


@pytest.mark.parametrize("words", KEEPING_NOTHING, ids=" ".join)
def test_no_file_is_made(run: Run, tmp_path: Path, words: list[str]) -> None:
    place = tmp_path / "folder" / "none.db"
    assert "there is none yet" in str(run(*words, "--database", str(place), code=5).exception)
    assert not place.parent.exists()


@pytest.mark.parametrize("words", KEEPING_NOTHING[::3], ids=" ".join)
def test_no_table_is_made(run: Run, postgres_url: str, words: list[str]) -> None:
    assert "there is none yet" in str(run(*words, "--database", postgres_url, code=5).exception)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_the_doctor_says_that_there_is_none_and_makes_none(run: Run, tmp_path: Path, postgres_url: str) -> None:
    place = tmp_path / "folder" / "none.db"
    told = run("doctor", "--database", str(place)).stdout
    assert f"{place}: there is none yet." in " ".join(told.split())
    assert not place.parent.exists()
    (tmp_path / "file").touch()
    assert "✗ store" in run("doctor", "--database", str(tmp_path / "file" / "none.db"), code=1).stdout
    assert "there is none yet" in run("doctor", "--database", postgres_url, code=1).stdout


def test_a_first_memory_makes_a_store(run: Run, tmp_path: Path) -> None:
    run("memories", "add", "The bird is blue.", "--database", "new.db")
    assert "The bird is blue." in run("memories", "list", "--database", "new.db").stdout
    assert (tmp_path / "new.db").is_file()
