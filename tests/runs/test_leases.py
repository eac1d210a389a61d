"""One writer a thread, across processes: what a second one is told, and how it takes over from one that is gone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.processes import owning

from longthread.store import log, run_events, runs
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import read_rows


class Process:
    """A process of `tests.processes.owning`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pid = process.pid

    async def heard(self) -> dict[str, Any]:
        """What it says next."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line, "it is gone"
        said: dict[str, Any] = json.loads(line)
        return said

    async def ready(self) -> str:
        """The host that it says it is on. What was started may have started it."""
        said = await self.heard()
        self._pid = said["pid"]
        return str(said["ready"])

    async def told(self, command: str) -> dict[str, Any]:
        """Give it a command, and hear what it says first."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        return await self.heard()

    def signal(self, number: int) -> None:
        os.kill(self._pid, number)

    async def kill(self) -> None:
        """End it as a crash does."""
        if self._process.returncode is None:
            self.signal(signal.SIGKILL)
        await self._process.communicate()


Start = Callable[..., Awaitable[Process]]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The file that lets models answer."""
    return tmp_path / "gate"


@pytest.fixture
async def start(store_address: str, tmp_path: Path, shop: str, gate: Path, warmed: Path) -> AsyncIterator[Start]:
    """Starts processes on one store; each says which host it is on."""
    async with open_store(store_address):
        pass
    async with AsyncExitStack() as stack:

        async def start_(host: str) -> Process:
            plan = {"host": host, "store": store_address, "source": shop, "gate": str(gate)}
            plan["data"] = str(tmp_path / "data")
            process = Process(
                await asyncio.create_subprocess_exec(
                    *(str(warmed / "python"), "-m", "tests.processes.owning", json.dumps(plan)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
            )
            stack.push_async_callback(process.kill)
            assert await process.ready() == host
            return process

        yield start_


async def everything(address: str) -> dict[str, list[Any]]:
    """All that is kept of the thread."""
    async with open_store(address) as store, store.reading() as tx:
        tables = (await read_tables(tx)).of_threads
        return {table.name: [dict(row) async for row in read_rows(tx, table, "t")] for table in tables}


async def test_a_second_process_is_refused_until_the_run_has_ended(start: Start, gate: Path) -> None:
    first, second = await start("here"), await start("there")
    assert (await first.told("ask"))["asked"]
    assert await second.told("ask") == {"error": "run_in_progress"}
    assert await second.told("resume") == {"error": "run_in_progress"}
    gate.touch()
    assert (await first.heard())["asked"]
    assert await first.heard() == {"ended": "finished", "answer": owning.ANSWER}
    assert await second.told("resume") == {"error": "nothing_to_resume"}
    assert (await second.told("ask"))["asked"]


async def test_another_host_takes_over_when_a_worker_is_silent(start: Start, gate: Path, store_address: str) -> None:
    first, second = await start("here"), await start("there")
    assert (await first.told("ask"))["asked"]
    await first.kill()
    gate.touch()
    await second.told("impatient")
    assert (await second.told("resume"))["asked"]
    assert (await second.heard())["asked"]
    assert await second.heard() == {"ended": "finished", "answer": owning.ANSWER}
    async with open_store(store_address) as store:
        await assert_one_turn(store)


async def test_a_dead_owner_of_the_same_host_is_known_to_be_dead(start: Start, gate: Path) -> None:
    first, second = await start("here"), await start("here")
    assert (await first.told("ask"))["asked"]
    await first.kill()
    gate.touch()
    assert (await second.told("resume"))["asked"]


async def test_an_owner_that_wakes_up_too_late_writes_nothing(start: Start, gate: Path, store_address: str) -> None:
    first, second = await start("here"), await start("there")
    assert (await first.told("ask"))["asked"]
    first.signal(signal.SIGSTOP)
    gate.touch()
    await second.told("impatient")
    assert (await second.told("resume"))["asked"]
    assert (await second.heard())["asked"]
    assert await second.heard() == {"ended": "finished", "answer": owning.ANSWER}
    before = await everything(store_address)
    first.signal(signal.SIGCONT)
    said = await first.heard()
    # Its client is told of the end that the other process has written.
    assert said in ({"error": "lease_lost"}, {"ended": "finished", "answer": owning.ANSWER})
    assert await everything(store_address) == before
    async with open_store(store_address) as store:
        await assert_one_turn(store)


async def assert_one_turn(store: Driver) -> None:
    """The question was answered once."""
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
        entries = await log.branch(tx, "t", thread.tip)
        run = await runs.last_run(tx, "t")
        assert run is not None
        events = await run_events.events_after(tx, "t", run.id, 0)
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "assistant"]
    assert thread.entry_count == 4
    assert (run.status, run.outcome["answer"]) == ("finished", owning.ANSWER)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
