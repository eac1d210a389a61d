"""Commands that keep nothing make no store, nor does an import that is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.store.samples import fill

from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

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


REFUSED = [
    (["cut.jsonl"], "it is not complete"),
    (["whole.jsonl"], "holds threads of u, and you are default"),
    (["whole.jsonl", "--user", "u", "--as", "t3"], "holds 2 threads, and --as gives one an id"),
    (["empty.db"], "and no rows in them"),
]


@pytest.fixture
def exports(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with open_store(tmp_path / "there.db") as store:
            for name in ("t1", "t2"):
                await fill(store, name)

    asyncio.run(work())
    with monkeypatch.context() as patch:
        patch.setenv("LONGTHREAD_USER", "u")
        run("threads", "export", "t1", "t2", "-o", "whole.jsonl", "--database", "there.db")
    (tmp_path / "cut.jsonl").write_bytes((tmp_path / "whole.jsonl").read_bytes()[:-200])
    with SqliteSaver.from_conn_string(str(tmp_path / "empty.db")) as saver:
        saver.setup()


@pytest.mark.usefixtures("exports")
def test_a_refused_import_makes_no_store(run: Run, tmp_path: Path, postgres_url: str) -> None:
    place = tmp_path / "folder" / "none.db"
    for words, why in REFUSED:
        for database in (str(place), postgres_url):
            told = run("threads", "import", *words, "--database", database, code=2)
            assert why in " ".join(str(told.exception).split())
    assert not place.parent.exists()
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


@pytest.mark.usefixtures("exports")
def test_an_import_makes_a_store(run: Run, tmp_path: Path, postgres_url: str) -> None:
    for database in (str(tmp_path / "folder" / "new.db"), postgres_url):
        words = ["threads", "import", "whole.jsonl", "--user", "u", "--database", database]
        assert "2 threads imported" in run(*words).stdout
        assert "0 threads imported, 2 there already" in run(*words).stdout
