"""Many threads written at once, by one process and by several: every acknowledged entry is there, once, in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest
from tests.contract.base import USER, branch_ids
from tests.store.writers import write

from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.store.open import open_store

Acknowledged = dict[str, list[str]]
THREADS = {"sqlite": 64, "postgres": 200}
"""Threads written at once by one process."""
ENTRIES = {"sqlite": 12, "postgres": 3}


async def every_acknowledged_entry_is_there(store: Driver, acknowledged: Acknowledged) -> None:
    async with store.reading() as tx:
        threads = await listing.list_threads(tx, user_id=USER, limit=9999)
    assert {thread.id for thread in threads} == set(acknowledged)
    for thread in threads:
        ids = await branch_ids(store, thread_id=thread.id)
        assert sorted(ids) == sorted(acknowledged[thread.id])
        assert thread.tip == thread.entry_count == len(ids) == len(set(ids))
        for writer in {each.rpartition("-")[0] for each in ids}:
            mine = [each for each in acknowledged[thread.id] if each.startswith(f"{writer}-")]
            assert [each for each in ids if each.startswith(f"{writer}-")] == mine


async def test_many_threads_are_written_at_once(store: Driver, backend: str) -> None:
    acknowledged: Acknowledged = defaultdict(list)
    await write(
        store, "p", THREADS[backend], ENTRIES[backend], lambda thread, entry: acknowledged[thread].append(entry)
    )
    assert len(acknowledged) == THREADS[backend]
    assert sum(map(len, acknowledged.values())) == THREADS[backend] * ENTRIES[backend]
    await every_acknowledged_entry_is_there(store, acknowledged)


async def test_readers_find_whole_threads_while_others_are_written(store: Driver) -> None:
    acknowledged: Acknowledged = defaultdict(list)
    writing = asyncio.create_task(write(store, "p", 16, 10, lambda t, entry: acknowledged[t].append(entry)))
    while not writing.done():
        before = {thread: list(entries) for thread, entries in acknowledged.items()}
        for thread, entries in before.items():
            async with store.reading() as tx:
                tip, count = await log.position(tx, thread)
                branch = await log.branch(tx, thread, tip)
            assert tip == count == len(branch)
            assert [entry.id for entry in branch][: len(entries)] == entries
        await asyncio.sleep(0)
    await writing
    await every_acknowledged_entry_is_there(store, acknowledged)


@pytest.mark.parametrize("processes", [4])
async def test_several_processes_write_to_one_store(warmed: Path, store_address: str, processes: int) -> None:
    await _processes_write(warmed, store_address, processes, threads=8, entries=6)


@pytest.mark.slow
async def test_several_processes_write_for_long(warmed: Path, store_address: str, backend: str) -> None:
    await _processes_write(warmed, store_address, 8, threads=THREADS[backend] // 4, entries=25)


async def _processes_write(warmed: Path, address: str, processes: int, *, threads: int, entries: int) -> None:
    async with open_store(address) as store:
        started = [
            await asyncio.create_subprocess_exec(
                *(str(warmed / "python"), "-m", "tests.store.writers", address, f"p{n}", str(threads), str(entries)),
                stdout=asyncio.subprocess.PIPE,
            )
            for n in range(processes)
        ]
        acknowledged: Acknowledged = defaultdict(list)
        for process, (out, _) in zip(started, await asyncio.gather(*(p.communicate() for p in started)), strict=True):
            assert process.returncode == 0
            for line in out.decode().splitlines():
                thread, entry = line.split()
                acknowledged[thread].append(entry)
        assert len(acknowledged["shared"]) == processes * entries
        assert len(acknowledged) == processes * (threads - 1) + 1
        await every_acknowledged_entry_is_there(store, acknowledged)
