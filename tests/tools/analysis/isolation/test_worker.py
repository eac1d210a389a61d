"""Statements that run in a worker: what becomes of them, of it, and of the next one."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from longthread.errors import SourceCrashed, SourceError, SqlTimeout
from longthread.tools.analysis.isolation.forkserver import FORK_SERVER, ForkServer
from longthread.tools.analysis.isolation.remote import RemoteConnection, WorkerEngine
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
DEAF = "SELECT sum(instr(a.text, b.text)) FROM long a, long b"
"""One call of it takes minutes and heeds no interrupt: SQLite searches half of a text in the text."""


async def pid_of(source: Source) -> int:
    """The process that the source's statements run in."""
    return await source.work(_pid)


def _pid(connection: Any) -> int:
    assert isinstance(connection, RemoteConnection)
    return connection._worker.pid


def lives(pid: int) -> bool:
    """Whether a process is there, as itself or as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(pid: int, seconds: float = 5) -> bool:
    return await asyncio.to_thread(_gone, pid, seconds)


def _gone(pid: int, seconds: float = 5) -> bool:
    until = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not lives(pid)


async def one(source: Source) -> Any:
    return await source.work(lambda connection: connection.query("SELECT 41 + 1").first())


@pytest.fixture
def deaf(tmp_path: Path) -> Path:
    """A database with cells in which a search takes minutes."""
    path = tmp_path / "deaf.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE long (text TEXT)")
        connection.execute("INSERT INTO long VALUES (?), (?)", ("a" * 6_000_000, "a" * 3_000_000 + "b"))
        connection.commit()
    return path


async def test_a_statement_that_heeds_no_interrupt_is_killed(opened: Opened, deaf: Path) -> None:
    source = await opened(deaf)
    pid = await pid_of(source)
    with pytest.raises(SqlTimeout):
        await source.work(lambda connection: connection.query(DEAF).first(), seconds=0.2)
    assert await gone(pid)
    assert await one(source) == (42,)
    assert await pid_of(source) != pid


async def test_a_deaf_statement_of_a_cancelled_task_is_killed(opened: Opened, deaf: Path) -> None:
    source = await opened(deaf)
    pid = await pid_of(source)
    task = asyncio.create_task(source.work(lambda connection: connection.query(DEAF).first()))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)
    assert await one(source) == (42,)


@pytest.mark.parametrize("kind", ["sqlite", "files"])
async def test_a_worker_that_dies_is_one_error_and_the_next_question_works(
    opened: Opened, make_sqlite: Any, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    source = await opened(make_sqlite("CREATE TABLE t (a)") if kind == "sqlite" else tmp_path / "t.csv")
    pid = await pid_of(source)
    task = asyncio.create_task(source.work(lambda connection: connection.query(ENDLESS).first()))
    await asyncio.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(SourceCrashed, match="The next query runs in a new process"):
        await task
    assert await one(source) == (42,)
    assert [table async for table in _tables(source)] == ["t"]
    assert await gone(pid)


async def _tables(source: Source) -> Any:
    for label in (await source.schema()).tables:
        yield label


async def test_a_worker_that_died_while_nothing_ran_is_replaced(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"))
    await asyncio.gather(*(one(source) for _ in range(8)))  # several connections
    pid = await pid_of(source)
    os.kill(pid, signal.SIGKILL)
    assert await gone(pid)
    assert await asyncio.gather(*(one(source) for _ in range(8))) == [(42,)] * 8


async def test_memory_beyond_the_limit_is_one_error(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "big.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE t AS SELECT 2000000000 AS n")
    source = await opened(path, memory_mb=200)
    with pytest.raises(SourceError, match="memory"):
        await source.work(lambda connection: connection.query("SELECT length(repeat('x', n)) FROM t").first())
    assert await one(source) == (42,)


async def test_other_statements_of_a_killed_worker_say_why(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"))
    used: list[Any] = []

    def endless(connection: Any) -> Any:
        used.append(connection)
        return connection.query(ENDLESS).first()

    running = [asyncio.create_task(source.work(endless)) for _ in range(2)]
    assert await asyncio.to_thread(_abandoned, used)
    errors = await asyncio.gather(*running, return_exceptions=True)
    assert sorted(type(error).__name__ for error in errors) == ["SourceCrashed", "SqlTimeout"]
    assert "Another query of this source" in str(errors)


def _abandoned(used: list[Any]) -> bool:
    """Kills the worker by the first connection, as soon as both wait for it."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if len(used) == 2 and all(one._waiting for one in used):
            return bool(used[0].abandon())
        time.sleep(0.02)
    return False


async def test_a_closed_source_leaves_no_process_and_no_file(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"))
    pid = await pid_of(source)
    scratch = Path(await source.work(lambda connection: connection._worker.scratch))
    assert scratch.is_dir()
    await source.close()
    assert await gone(pid)
    assert not scratch.exists()


async def test_the_folder_of_workers_may_be_cleaned_up(opened: Opened, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a)")
    await opened(path)
    shutil.rmtree(FORK_SERVER._folder)
    assert await one(await opened(path)) == (42,)


async def test_another_nest_is_started_when_one_is_killed(opened: Opened, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a)")
    await opened(path)
    assert FORK_SERVER._process is not None
    FORK_SERVER._process.kill()
    FORK_SERVER._process.wait()
    assert await one(await opened(path)) == (42,)


def test_workers_and_their_files_end_with_the_process_that_asked(make_sqlite: Any, tmp_path: Path) -> None:
    code = """
import asyncio, sys
from longthread.tools.analysis.open import open_source

async def main():
    source = await open_source(sys.argv[1])
    print(await source.work(lambda connection: connection._worker.pid), flush=True)
    await source.work(lambda connection: connection.query(sys.argv[2]).first())

asyncio.run(main())
"""
    path = make_sqlite("CREATE TABLE t (a)")
    command, env = [sys.executable, "-c", code, str(path), ENDLESS], os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as asking:
        assert asking.stdout is not None
        pid = int(asking.stdout.readline())
        assert lives(pid)
        assert list(tmp_path.glob("longthread-*/worker-*"))
        asking.kill()
    assert _gone(pid, 10)
    while list(tmp_path.glob("longthread-*")):  # the fork server does it
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
def test_a_worker_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    server = ForkServer()
    control, pid = server.fork()
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    control.close()
    assert b"PYTHONPATH" in environment
    assert b"sk-hidden" not in environment
    server.close()


async def test_a_long_result_comes_whole_and_in_order(opened: Opened, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a, b)", t=[(n, "x" * 3_000) for n in range(1_500)])
    source = await opened(path)
    rows = await source.work(lambda connection: [row[0] for row in connection.query("SELECT a, b FROM t ORDER BY a")])
    assert rows == list(range(1_500))


async def test_an_interrupt_of_a_statement_before_is_none_of_the_next(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a)"))

    def work(connection: Any) -> Any:
        connection.query("SELECT 1").first()
        for _ in range(50):
            connection.interrupt()
        return connection.query("SELECT 2").first()

    assert await source.work(work) == (2,)


def test_the_engine_of_a_file_is_in_a_worker(make_sqlite: Any) -> None:
    async def check() -> None:
        from longthread.tools.analysis.limits import Limits
        from longthread.tools.analysis.open import open_source

        path = str(make_sqlite("CREATE TABLE t (a)"))
        async with await open_source(path) as source:
            assert isinstance(source._engine, WorkerEngine)
        async with await open_source(path, limits=Limits(isolated=False)) as source:
            assert not isinstance(source._engine, WorkerEngine)
            assert await one(source) == (42,)

    asyncio.run(check())
