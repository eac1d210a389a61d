"""Workers that wait for the next source: who gets one, and that nothing of the source before is in it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests import mysqlserver
from tests.engines import ENGINES
from tests.tools.analysis.isolation.test_worker import ENDLESS, gone, one, pid_of

from longthread.errors import SourceNotFound, SqlTimeout, SqlTooLarge
from longthread.settings import Settings
from longthread.tools.sources import Opener

STATE = {
    "sqlite": ("PRAGMA case_sensitive_like = ON", "SELECT 'a' LIKE 'A'"),
    "files": ("SELECT setseed(0.5)", "SELECT random()"),
    "duckdb": ("SELECT setseed(0.5)", "SELECT random()"),
    "postgresql": (
        "SELECT set_config('longthread.leak', 'x', false)",
        "SELECT coalesce(current_setting('longthread.leak', true), '')",
    ),
    "mysql": ("SELECT @leak := 1", "SELECT @leak"),
}
"""By kind of source: a statement that changes the session, and one whose answer then is another."""


@pytest.fixture
async def opener(tmp_path: Path) -> AsyncIterator[Opener]:
    made = Opener(Settings.load(env_file=None, data_dir=tmp_path / "data", sql_timeout=1.0))
    yield made
    await made.close()


@pytest.fixture
def path(make_sqlite: Any) -> str:
    return str(make_sqlite("CREATE TABLE t (a INTEGER)", t=[(1,)]))


async def used(opener: Opener, spec: str, user: str = "ann") -> int:
    """Opens a source, asks it, and closes it. Returns its process."""
    async with await opener.open(spec, user) as source:
        assert await one(source) == (42,)
        return await pid_of(source)


async def test_the_next_source_of_a_user_over_the_same_file_has_the_process(opener: Opener, path: str) -> None:
    assert await used(opener, path) == await used(opener, path)


async def test_two_open_sources_never_share_a_process(opener: Opener, path: str) -> None:
    kept = await used(opener, path)
    async with await opener.open(path, "ann") as first, await opener.open(path, "ann") as second:
        pids = {await pid_of(first), await pid_of(second)}
    assert len(pids) == 2
    assert kept in pids


async def test_another_user_never_gets_it(opener: Opener, path: str) -> None:
    assert await used(opener, path, "ann") != await used(opener, path, "bob")


async def test_another_file_does_not(opener: Opener, path: str, make_sqlite: Any) -> None:
    other: Path = make_sqlite("CREATE TABLE u (a)", name="other.sqlite")
    pid = await used(opener, path)
    assert await used(opener, str(other)) != pid
    other.replace(path)
    async with await opener.open(path, "ann") as source:
        assert list((await source.schema()).tables) == ["u"]
        assert await pid_of(source) != pid


async def test_changed_files_are_read_again(opener: Opener, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a\n1\n")
    pid = await used(opener, str(file))
    assert await used(opener, str(file)) == pid
    times = file.stat()
    file.write_text("a\n2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # as large, and as old
    async with await opener.open(str(file), "ann") as source:
        assert await source.work(lambda connection: connection.query("SELECT a FROM t").first()) == (2,)
        assert await pid_of(source) != pid


async def test_a_file_that_is_gone_is_said_to_be(opener: Opener, path: str) -> None:
    await used(opener, path)
    Path(path).unlink()
    with pytest.raises(SourceNotFound):
        await opener.open(path, "ann")


async def test_what_was_written_to_the_database_is_seen(opener: Opener, path: str, make_sqlite: Any) -> None:
    pid = await used(opener, path)
    make_sqlite("INSERT INTO t VALUES (7); CREATE TABLE later (b)")
    async with await opener.open(path, "ann") as source:
        assert set((await source.schema()).tables) == {"t", "later"}
        assert await source.work(lambda connection: connection.query("SELECT max(a) FROM t").first()) == (7,)
        assert await pid_of(source) == pid


async def test_a_stopped_query_ends_its_process(opener: Opener, path: str) -> None:
    async with await opener.open(path, "ann") as source:
        pid = await pid_of(source)
        with pytest.raises(SqlTimeout):
            await source.work(lambda connection: connection.query(ENDLESS).first())
    assert await gone(pid)
    assert await used(opener, path) != pid


async def test_so_does_a_cancelled_one(opener: Opener, path: str) -> None:
    running = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(connection: Any) -> Any:
        rows = connection.query("SELECT 1")
        loop.call_soon_threadsafe(running.set)
        rows.close()
        return connection.query(ENDLESS).first()

    async with await opener.open(path, "ann") as source:
        pid = await pid_of(source)
        task = asyncio.create_task(source.work(endless))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await gone(pid)


async def test_so_does_one_at_the_limit_of_its_size(opener: Opener, path: str) -> None:
    async with await opener.open(path, "ann") as source:
        pid = await pid_of(source)
        with pytest.raises(SqlTooLarge):
            await source.work(lambda connection: connection.query("SELECT hex(zeroblob(1000000))").first())
    assert await gone(pid)


async def test_a_process_that_died_is_not_handed_on(opener: Opener, path: str) -> None:
    async with await opener.open(path, "ann") as source:
        pid = await pid_of(source)
        os.kill(pid, signal.SIGKILL)
        assert await gone(pid)
    kept = await used(opener, path)
    os.kill(kept, signal.SIGKILL)
    assert await gone(kept)
    assert await used(opener, path) not in {pid, kept}


async def test_only_so_many_wait(tmp_path: Path, path: str) -> None:
    opener = Opener(Settings.load(env_file=None, data_dir=tmp_path / "data", sql_idle_workers=1))
    first = await used(opener, path, "ann")
    second = await used(opener, path, "bob")
    assert await gone(first)
    assert await used(opener, path, "bob") == second
    await opener.close()
    assert await gone(second)
    third = await used(opener, path, "bob")  # closed: nobody waits
    assert await gone(third)


async def test_none_waits_for_ever(opener: Opener, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opener._idle, "_seconds", 0.2)
    assert await gone(await used(opener, path))


async def test_an_old_one_is_not_kept(opener: Opener, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longthread.tools.analysis.isolation.remote._OLDEST_SECONDS", 0.0)
    assert await gone(await used(opener, path))


async def test_a_database_of_duckdb_is_not_kept_open(opener: Opener, tmp_path: Path) -> None:
    import duckdb

    file = tmp_path / "d.duckdb"
    duckdb.connect(str(file)).execute("CREATE TABLE t (a INTEGER)").close()
    pid = await used(opener, str(file))
    duckdb.connect(str(file)).execute("INSERT INTO t VALUES (1)").close()  # nobody has locked it
    assert await gone(pid)


@pytest.fixture(params=[*ENGINES, "files"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spec(kind: str, tmp_path: Path, path: str, request: pytest.FixtureRequest) -> str:
    if kind == "files":
        (tmp_path / "t.csv").write_text("a\n1\n")
        return str(tmp_path / "t.csv")
    if kind == "duckdb":
        import duckdb

        duckdb.connect(str(tmp_path / "d.duckdb")).execute("CREATE TABLE t (a INTEGER)").close()
        return str(tmp_path / "d.duckdb")
    if kind == "mysql":
        url = str(request.getfixturevalue("mysql_url"))
        mysqlserver.run(url, "CREATE TABLE t (a int)")
        return url
    if kind == "postgresql":
        import psycopg

        url = str(request.getfixturevalue("postgres_url"))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (a int)")
        return url
    return path


async def test_nothing_of_a_session_is_left_for_the_next(opener: Opener, kind: str, spec: str) -> None:
    changes, asks = STATE[kind]

    def change(connection: Any) -> None:
        list(connection.execute(changes))  # no guard, and with SQLite's own rights: more than any statement can do

    def answer(connection: Any) -> Any:
        return connection.execute(asks).first()

    def changed(connection: Any) -> Any:
        change(connection)
        return answer(connection)

    async with await opener.open(spec, "ann") as source:
        await source.work(change)
    async with await opener.open(spec, "ann") as source:
        after = await source.work(answer)
        assert after != await source.work(changed)
