"""`longthread import` of another program's database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, made_once, run  # noqa: F401  # fixtures
from tests.imports.old import ROCKETS, STATE, THREAD, agents, conversations, memory

from longthread.errors import ImportIncomplete
from longthread.store.open import open_store
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend


def said(result: Any) -> str:
    return " ".join(f"{result.output} {result.exception or ''}".split())


def test_a_dry_run_tells_and_writes_nothing(run: Run, tmp_path: Path) -> None:  # noqa: F811
    conversations(tmp_path / "old.db", {THREAD: STATE, "bad": "{"})
    told = run("import", "old.db", "--dry-run", "--database", "new.db", code=1)
    assert "the conversations of document 000. 2 conversations" in said(told)
    assert "conversations.state_data of thread bad: it is no JSON" in said(told)
    assert "Nothing was written." in told.stdout
    assert not (tmp_path / "new.db").exists()
    [line] = run("import", "old.db", "--dry-run", "--json", code=1).stdout.splitlines()
    assert json.loads(line)["there"]["messages"] == 2


def test_an_imported_conversation_is_one_like_any_other(run: Run, tmp_path: Path) -> None:  # noqa: F811
    conversations(tmp_path / "old.db", {THREAD: STATE})
    assert "2 messages there, 2 here" in run("import", "old.db").stdout
    [line] = [json.loads(line) for line in run("threads", "list", "--json").stdout.splitlines()]
    assert (line["id"], line["title"]) == (THREAD, ROCKETS)
    assert THREAD in run("recall", "长征二号丁").stdout
    assert json.loads(run("state", THREAD).stdout)["known_tables"] == STATE["known_tables"]
    with closing(sqlite3.connect(tmp_path / "craft.db")) as craft, craft:
        craft.execute("CREATE TABLE aircraft_info (id INTEGER PRIMARY KEY, aircraft_name TEXT)")
        craft.executemany("INSERT INTO aircraft_info (aircraft_name) VALUES (?)", [("a",), ("b",), ("c",)])
    answer = run("ask", "How many rows does aircraft_info have?", "--thread", THREAD, "--source", "craft.db").stdout
    assert "3" in answer
    state = json.loads(run("state", THREAD).stdout)
    assert [message["role"] for message in state["messages"]] == ["user", "assistant"] * 2


def test_users_stay_unless_it_is_said_whose_they_become(run: Run, tmp_path: Path) -> None:  # noqa: F811
    conversations(tmp_path / "old.db", {THREAD: STATE}, user="ada")
    assert "ada: 1 thread; LONGTHREAD_USER=ada shows them" in said(run("import", "old.db"))
    assert THREAD not in run("threads", "list").stdout
    told = run("import", "old.db", "--user", "default", code=1)
    assert "its id is taken by another user's thread" in said(told)
    run("import", "old.db", "--user", "default", "--database", "new.db")
    assert THREAD in run("threads", "list", "--database", "new.db").stdout


def test_a_damaged_database_is_not_taken_for_the_store(run: Run, tmp_path: Path) -> None:  # noqa: F811
    path = conversations(tmp_path / "old.db", {f"t{at}": {**STATE, "more": "x" * 9_000} for at in range(20)})
    data = bytearray(path.read_bytes())
    data[20 * 4096 : -20 * 4096] = b"\xaa" * (len(data) - 40 * 4096)
    path.write_bytes(data)
    result = run("import", "old.db", code=5)
    assert "The database to import cannot be read" in said(result) and "store is damaged" not in said(result)
    assert path.read_bytes() == data


def test_what_is_missing_is_an_error(run: Run, tmp_path: Path) -> None:  # noqa: F811
    conversations(tmp_path / "old.db", {THREAD: STATE, "bad": "{"})
    told = run("import", "old.db", code=1)
    assert isinstance(told.exception, ImportIncomplete)
    assert "Here are 1 of 2 conversations." in said(told)


def test_an_export_that_is_only_checked(run: Run, tmp_path: Path) -> None:  # noqa: F811
    conversations(tmp_path / "old.db", {THREAD: STATE})
    run("import", "old.db")
    run("threads", "export", "--all", "--to", "all.jsonl")
    assert "can be imported" in run("import", "all.jsonl", "--dry-run", "--database", "new.db").stdout
    assert not (tmp_path / "new.db").exists()


@pytest.mark.postgres
def test_a_database_with_several_kinds(run: Run, old_url: str) -> None:  # noqa: F811
    agents(old_url)
    memory(old_url, "t")
    told = " ".join(run("import", old_url).stdout.split())
    assert "5 messages there, 5 here" in told and "2 rows of memory_vectors there, 2 here" in told
    assert "needs the secret API_KEY: set LONGTHREAD_SECRET_API_KEY" in told
    assert "(2 already)" in run("import", old_url).stdout


DYING = """
import os, signal, sys
from longthread.cli.start import main
from longthread.store.transfer import import_writer

written = []
conversation = import_writer.ImportWriter.conversation

async def dying(self, one, report):
    found = await conversation(self, one, report)
    written.append(one.id)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

import_writer.ImportWriter.conversation = dying
main()
"""


def test_killed_and_given_again_it_is_whole(store_address: str, tmp_path: Path, warmed: Path) -> None:
    old = conversations(tmp_path / "old.db", {f"thread-{n}": STATE for n in range(7)})
    words = ["import", str(old), "--database", store_address]
    environment = os.environ | {"LONGTHREAD_DATA_DIR": str(tmp_path / "data")}
    killed = subprocess.run([str(warmed / "python"), "-c", DYING, *words], env=environment, check=False)
    assert killed.returncode == 128 + signal.SIGKILL
    assert len(kept(store_address)) == 3
    again = subprocess.run(
        [str(warmed / "longthread"), *words], env=environment, check=False, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    assert kept(store_address) == dict.fromkeys((f"thread-{n}" for n in range(7)), 8)


def kept(address: str) -> dict[str, int]:
    """The number of entries of each thread of a store."""

    async def read() -> dict[str, int]:
        async with open_store(address) as store, store.reading() as tx:
            rows = await tx.fetch(Sql("SELECT thread_id, count(*) AS entries FROM entries GROUP BY thread_id"))
            return {row["thread_id"]: int(row["entries"]) for row in rows}

    return asyncio.run(read())
