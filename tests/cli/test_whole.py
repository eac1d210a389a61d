"""Commands that keep nothing make no store, nor does an import that is refused."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.store.next_version import NEXT, become_next
from tests.store.samples import fill

from longthread.cli.commands import backup
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
    ["db", "backup", "backup.db"],
]
WAITING = """
import asyncio
from longthread.cli.start import main
from longthread.cli.commands import backup
written = backup.write_backup
async def write_and_wait(*about):
    await written(*about)
    print("begun", flush=True)
    await asyncio.sleep(60)
backup.write_backup = write_and_wait
main()
"""
"""A command whose backup is written, and does not have its name yet."""


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


def test_a_backup_is_one_file_for_its_user_alone_and_comes_back(run: Run, tmp_path: Path, store_address: str) -> None:
    asyncio.run(_fill(store_address))
    told = json.loads(run("db", "backup", "backup.db", "--json").stdout)
    assert told["threads"] == 1 and told["tables"]["entries"]["rows"] == 12
    assert [file.name for file in tmp_path.glob("*backup.db*")] == ["backup.db"]
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    assert "and no backup replaces a file" in str(run("db", "backup", "backup.db", code=2).exception)
    assert "with the counts and hashes of the backup" in run("db", "restore", "backup.db", "-d", "new.db").stdout
    restored = json.loads(run("db", "status", "--json", "-d", "new.db").stdout)
    assert (restored["threads"], restored["entries"]) == (1, 12)
    assert "already has rows of threads" in str(run("db", "restore", "backup.db", "-d", "new.db", code=2).exception)
    assert "cannot be copied to itself" in str(run("db", "restore", "new.db", "-d", "new.db", code=2).exception)
    assert "There is no file none.db" in str(run("db", "restore", "none.db", "-d", "x.db", code=2).exception)
    assert not (tmp_path / "x.db").exists()


def test_a_backup_of_an_older_schema_is_upgraded_in_a_copy(
    run: Run, tmp_path: Path, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_fill(store_address))
    run("db", "backup", "backup.db")
    before = (tmp_path / "backup.db").read_bytes()
    become_next(monkeypatch)
    monkeypatch.setattr(backup, "SCHEMA_VERSION", NEXT)
    run("db", "restore", "backup.db", "-d", "new.db")
    restored = json.loads(run("db", "status", "--json", "-d", "new.db").stdout)
    assert (restored["schema"], restored["threads"]) == (NEXT, 1)
    assert (tmp_path / "backup.db").read_bytes() == before


def test_a_backup_that_fails_leaves_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("db", "backup", "backup.db", "--database", str(tmp_path / "none.db"), code=5)
    assert not list(tmp_path.glob("*backup.db*"))
    assert "cannot be written" in str(run("db", "backup", "folder/backup.db", code=2).exception)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_backup_that_a_signal_ends_leaves_no_file(
    tmp_path: Path, store_address: str, sent: signal.Signals, code: int
) -> None:
    asyncio.run(_fill(store_address))
    command = [sys.executable, "-c", WAITING, "db", "backup", "backup.db", "--database", store_address]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        begun = process.stdout.readline()
        assert begun == "begun\n" and len(list(tmp_path.glob(".backup.db.*.part"))) == 1
        process.send_signal(sent)
        _, told = process.communicate(timeout=60)
    assert process.returncode == code and told.startswith("Stopped.") and "Traceback" not in told
    assert not list(tmp_path.glob("*backup.db*"))


async def _fill(address: str) -> None:
    async with open_store(address) as store:
        await fill(store, "t")
