"""Opening a source that takes for ever: it ends at its limit, or with whoever waits for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.endless import endless_csv
from tests.tools.analysis.isolation.test_worker import gone

from longthread.errors import SourceCrashed, SourceFailed, SourceTimeout
from longthread.tools.analysis.isolation.remote import WorkerEngine
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    return endless_csv(tmp_path)


async def _opening(endless: Path, seconds: float = 600) -> tuple[Source, WorkerEngine, asyncio.Task[object]]:
    """A source whose worker is opening the file."""
    limits = Limits(open_seconds=seconds)
    engine = WorkerEngine("files", endless, str(endless), limits)
    source = Source(str(endless), engine, limits)
    task: asyncio.Task[object] = asyncio.create_task(source.schema())
    while not engine._opening:  # noqa: ASYNC110 - a thread rings no event
        await asyncio.sleep(0.01)
    return source, engine, task


async def test_opening_ends_at_its_limit_and_its_worker_with_it(endless: Path) -> None:
    source, engine, task = await _opening(endless, 0.3)
    pid = engine._opening[0].pid
    with pytest.raises(SourceTimeout, match=r"not open after 0\.3 s.*LONGTHREAD_SOURCE_TIMEOUT"):
        await task
    assert await gone(pid)
    endless.write_text("a,b\n1,2\n")
    source.limits = Limits()  # a worker may take its time to start
    assert list((await source.schema()).tables) == ["endless"]
    await source.close()


async def test_opening_ends_with_the_task_that_waits(endless: Path) -> None:
    source, engine, task = await _opening(endless)
    pid = engine._opening[0].pid
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)
    await source.close()


async def test_opening_ends_with_the_source(endless: Path) -> None:
    source, engine, task = await _opening(endless)
    pid = engine._opening[0].pid
    await source.close()
    with pytest.raises(SourceFailed, match="it was closed"):
        await task
    assert await gone(pid)


async def test_all_who_wait_for_an_opening_are_told(endless: Path) -> None:
    source, _, first = await _opening(endless, 0.5)
    found = await asyncio.gather(first, *(source.schema() for _ in range(3)), return_exceptions=True)
    assert {type(each) for each in found} in ({SourceTimeout}, {SourceTimeout, SourceCrashed})
    await source.close()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
async def test_connecting_to_a_server_that_is_silent_ends_at_the_limit(kind: str, silent: int) -> None:
    """The driver's call cannot be stopped: its thread is left, and ends at a limit of its own."""
    limits = Limits(open_seconds=0.1, connect_seconds=4)
    with pytest.raises(SourceTimeout):
        await open_source(f"{kind}://nobody:x@127.0.0.1:{silent}/db", limits=limits)
