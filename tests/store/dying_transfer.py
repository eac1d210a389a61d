"""Copies, imports and prunes that kill themselves at a boundary of a write, and what is left of them.

`python -m tests.store.dying_transfer WHAT SOURCE TARGET STRIDE`: for n = 1, 1 + STRIDE, … a forked process does WHAT
with the store at TARGET and dies at its n-th boundary; another one then looks at what is there, does it again to its
end, and looks again. Prints how many died: the next one came to its end.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.store.samples import all_of
from tests.store.turns import alive, at, turns

from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.store import log, run_events
from longthread.store import runs as runs_of
from longthread.store.driver import Driver
from longthread.store.maintenance import retention
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.maintenance.space import reclaim
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.archive_reader import ImportTarget, import_threads
from longthread.store.transfer.copy import copy_store
from longthread.store.transfer.threads import thread_ids
from longthread.testing.failpoints import Failpoints, KillAt

TURNS = 10
KEPT = 6
Work = Callable[[str, Driver], Awaitable[None]]


def silent(done: int, total: int, what: str) -> None:
    """Progress that nobody looks at."""


async def copying(source: str, target: Driver) -> None:
    async with open_store(source) as store:
        await copy_store(store, target, silent)


async def importing(source: str, target: Driver) -> None:
    with Path(source).open("rb") as file:
        await import_threads(target, file, source, ImportTarget("u"), silent)


async def pruning(source: str, target: Driver) -> None:
    policy = RetentionPolicy(entries_before=at(KEPT), now=at(1), window=4, checkpoints=None)
    await prune(target, Retention(policy, CheckpointKeeper(), alive), silent, apply=True)
    await reclaim(target, lambda what: None)


async def old_turns(target: Driver) -> None:
    """A thread of old turns, and one that has expired."""
    await turns(target, TURNS)
    await turns(target, 2, thread_id="expired")
    async with target.writing() as tx:
        await tx.run(Sql("UPDATE threads SET expires_at = :at WHERE id = 'expired'"), at=at(0))
        for turn in range(TURNS):
            moment = {"at": at(turn), "name": f"{turn}-%", "run": f"run-{turn:05}"}
            await tx.run(Sql("UPDATE entries SET created_at = :at WHERE id LIKE :name"), **moment)
            await tx.run(Sql("UPDATE runs SET started_at = :at, ended_at = :at WHERE id = :run"), **moment)


async def begin_anew(what: str, target: Driver) -> None:
    async with target.reading() as tx:
        names = await thread_ids(tx)
    async with target.writing() as tx:
        for name in names:
            await tx.run("delete_thread", id=name, user_id="u")
    if what == "prune":
        await old_turns(target)


async def whole_threads(source: str, target: Driver, *, all_of_them: bool) -> None:
    """Each thread that came is whole."""
    name = Path(source)
    wanted = name.read_bytes() if name.suffix == ".jsonl" else await exported_from(source, None)
    async with target.reading() as tx:
        there = await thread_ids(tx)
        found = await exported(target, there)
    sections = wanted.split(b'\n{"thread":')
    for section in found.split(b'\n{"thread":')[1:]:
        assert section.rpartition(b'\n{"end"')[0] in b"".join(sections) or section in sections, "a thread is not whole"
    if all_of_them:
        assert found == wanted, "something is missing"


async def exported_from(source: str, names: list[str] | None) -> bytes:
    async with open_store(source) as store:
        async with store.reading() as tx:
            names = names or await thread_ids(tx)
        return await exported(store, names)


async def exported(store: Driver, names: list[str]) -> bytes:
    async with store.reading() as tx:
        return b"".join([line async for line in export_lines(tx, names, silent)])


async def sound_thread(source: str, target: Driver, *, all_of_them: bool) -> None:
    """What is left of a thread is its end, and nothing is left of one that has expired."""
    rows = await all_of(target)
    [thread] = [row for row in rows["threads"] if row["id"] == "t"]
    seqs = [row["seq"] for row in rows["entries"] if row["thread_id"] == "t"]
    assert seqs == list(range(thread["first_seq"], TURNS * 4 + 1))
    async with target.reading() as tx:
        branch = await log.branch(tx, "t", thread["tip"], limit=999)
    assert [entry.seq for entry in branch] == seqs
    runs = {row["id"] for row in rows["runs"] if row["thread_id"] == "t"}
    # A run that has ended is one row: nothing stands beside it, and what it did and told can still be read.
    assert [row for table in ("steps", "events") for row in rows[table] if row["thread_id"] == "t"] == []
    async with target.reading() as tx:
        assert all([await run_events.events_after(tx, "t", run, 0) for run in runs])
        assert {step.run_id for step in await runs_of.steps_from(tx, "t", 0)} == runs
    assert {entry.run_id for entry in branch if entry.seq > KEPT * 4} - {None} <= runs
    assert len([row for row in rows["entries"] if row["thread_id"] == "expired"]) in {0, 8}
    if all_of_them:
        assert (len(seqs), len(runs), len(rows["threads"])) == ((TURNS - KEPT) * 4, TURNS - KEPT, 1)


WORK: dict[str, Work] = {"copy": copying, "import": importing, "prune": pruning}


async def attempt(what: str, source: str, target: str, number: int) -> None:
    async with open_store(target) as store:
        await begin_anew(what, store)
        await WORK[what](source, Failpoints(store, KillAt(number)))


async def examine(what: str, source: str, target: str) -> None:
    sound = sound_thread if what == "prune" else whole_threads
    async with open_store(target) as store:
        await sound(source, store, all_of_them=False)
        await WORK[what](source, store)
        await sound(source, store, all_of_them=True)


def forked(work: Coroutine[Any, Any, None]) -> int:
    """How a process of its own ended that did this."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asyncio.run(work)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def main(what: str, source: str, target: str, stride: int) -> None:
    retention.ENTRIES_AT_ONCE, retention.RUNS_AT_ONCE = 9, 2
    dead, number = 0, 1
    while os.WIFSIGNALED(status := forked(attempt(what, source, target, number))):
        dead, number = dead + 1, number + stride
        if forked(examine(what, source, target)):
            sys.exit(f"killed at {number - stride}")
    if status:
        sys.exit("an attempt failed")
    print(dead)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
