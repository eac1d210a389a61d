from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests import mysqlserver
from tests.engines import ENGINES

from longthread.errors import SourceError, SqlTimeout
from longthread.tools.analysis.source import Source

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
Opened = Callable[..., Awaitable[Source]]


def _forever(connection: Any) -> Any:
    return connection.query(ENDLESS).first()


def _busy() -> int:
    """Threads in the middle of a query: each has a watch."""
    return sum(thread.name == "longthread-watch" for thread in threading.enumerate())


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, tmp_path: Path, make_sqlite: Any) -> str:
    if request.param == "sqlite":
        return str(make_sqlite("CREATE TABLE t (a INTEGER)"))
    if request.param == "duckdb":
        (tmp_path / "t.csv").write_text("a\n1\n")
        return str(tmp_path / "t.csv")
    if request.param == "mysql":
        given = str(request.getfixturevalue("mysql_url"))
        mysqlserver.run(given, "CREATE TABLE t (a int)")
        return given
    import psycopg

    url = request.getfixturevalue("postgres_url")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a int)")
    return str(url)


async def test_a_query_is_killed_when_its_time_is_up(opened: Opened, engine: str) -> None:
    source = await opened(engine)
    started = time.monotonic()
    with pytest.raises(SqlTimeout, match=r"stopped after 0\.3 s"):
        await source.work(_forever, seconds=0.3)
    assert time.monotonic() - started < 3
    assert _busy() == 0
    assert await source.fingerprint()


async def test_a_query_is_killed_when_its_task_is_cancelled(opened: Opened, engine: str) -> None:
    source = await opened(engine)
    task = asyncio.create_task(source.work(_forever))
    await asyncio.sleep(0.3)
    assert _busy() == 1
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 3
    assert _busy() == 0
    assert await source.fingerprint()


async def test_cancelling_twice_still_waits_for_the_thread(opened: Opened, engine: str) -> None:
    source = await opened(engine)
    task = asyncio.create_task(source.work(_forever))
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _busy() == 0


async def test_work_that_waits_for_a_place_can_be_cancelled(opened: Opened, engine: str) -> None:
    source = await opened(engine, workers=1)
    running = asyncio.create_task(source.work(_forever))
    waiting = asyncio.create_task(source.work(_forever))
    await asyncio.sleep(0.2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert _busy() == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_closing_kills_what_runs_and_ends_the_threads(opened: Opened, engine: str) -> None:
    source = await opened(engine)
    task = asyncio.create_task(source.work(_forever))
    await asyncio.sleep(0.2)
    await source.close()
    with pytest.raises(SourceError, match="closed"):
        await task
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("longthread-")]
    with pytest.raises(SourceError, match="closed"):
        await source.fingerprint()
    await source.close()
    gc.collect()  # a connection left open would warn here, and warnings are errors


async def test_queries_run_side_by_side(opened: Opened, engine: str) -> None:
    source = await opened(engine, workers=3)
    results = await asyncio.gather(*(source.work(lambda c: c.query("SELECT 41 + 1").first()) for _ in range(20)))
    assert {tuple(row or ()) for row in results} == {(42,)}


async def test_a_failed_query_leaves_the_connection_usable(opened: Opened, engine: str) -> None:
    source = await opened(engine, workers=1)
    for _ in range(2):
        with pytest.raises(SourceError):
            await source.work(lambda connection: connection.query("SELECT nothing FROM nowhere").first())
        row = await source.work(lambda connection: connection.query("SELECT 1").first())
        assert tuple(row or ()) == (1,)


async def test_work_that_heeds_no_interrupt_is_left_behind(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (a INTEGER)"), workers=1)
    release = threading.Event()
    try:
        started = time.monotonic()
        with pytest.raises(SqlTimeout):
            await source.work(lambda connection: release.wait(30), seconds=0.1)
        assert 2 <= time.monotonic() - started < 4
        row = await source.work(lambda connection: connection.query("SELECT 1").first())  # in a thread of its own
        assert tuple(row or ()) == (1,)
        task = asyncio.create_task(source.work(lambda connection: release.wait(30)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await source.close()
        assert time.monotonic() - started < 12
    finally:
        release.set()
    while any(thread.name.startswith("longthread-") for thread in threading.enumerate()):
        assert time.monotonic() - started < 20
        await asyncio.sleep(0.05)
    gc.collect()  # a connection left open would warn here


async def test_a_source_whose_closing_is_cancelled_is_closed(opened: Opened, engine: str) -> None:
    source = await opened(engine)
    loop, gate = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    before = loop.run_in_executor(None, gate.wait)
    ended: list[str] = []
    close = source._engine.close
    source._engine.close = lambda: (close(), ended.append("closed"))[0]  # type: ignore[method-assign]
    closing = asyncio.ensure_future(source.close())
    for _ in range(5):
        await asyncio.sleep(0)
    closing.cancel()
    loop.call_later(0.05, gate.set)
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert await before
    assert ended == ["closed"]


async def test_a_connection_that_was_busy_when_the_data_moved_is_not_used_again(opened: Opened, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a\n1\n")
    source = await opened(file, workers=2)
    began, gate = threading.Event(), threading.Event()

    def busy(connection: Any) -> Any:
        began.set()
        gate.wait(20)
        return connection.query("SELECT a FROM t").first()

    def read(connection: Any) -> Any:
        return connection.query("SELECT a FROM t").first()

    task = asyncio.ensure_future(source.work(busy))
    await asyncio.to_thread(began.wait, 20)
    file.write_text("a\n22\n")
    assert tuple(await source.work(read)) == (22,)
    gate.set()
    await task
    assert tuple(await source.work(read)) == (22,)


async def test_work_that_raises_what_no_task_may_end_with_ends(opened: Opened, engine: str) -> None:
    source = await opened(engine)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await source.work(lambda connection: next(iter(())))
    assert await source.fingerprint()
