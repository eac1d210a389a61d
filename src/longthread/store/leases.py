"""Leases and workers: who executes a run.

A worker is a process that executes runs. It renews a row of its own. A worker that stops renewing it loses the row and
its runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from longthread.store.driver import QueryCall, Row, Transaction, one
from longthread.store.log import now
from longthread.store.maintenance import jobs

IsAlive = Callable[[str], bool]
"""Whether an owner that has a row may be at work. False only if it is certain that it is not."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a run's part of a thread. `owner` is a worker, `attempt` the number of this execution."""

    thread_id: str
    run_id: str
    owner: str
    attempt: int


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that a worker is to execute. `stop_by` is the user who has stopped it, if any."""

    lease: Lease
    stop_by: str | None


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that no process executed, and that the worker has now claimed. `crashes` counts the executions in a row
    that died without a finished step."""

    lease: Lease
    user_id: str
    crashes: int
    stop_by: str | None


class LiveRun(NamedTuple):
    """A thread's run that has not ended. It is `held` by a process that executes it, or `waits` for a person, or, if it
    is `claimable`, waits for a worker."""

    id: str
    held: bool
    waits: bool
    claimable: bool

    @property
    def is_left(self) -> bool:
        """Whether no process goes on with it until a person resumes it: another question may begin."""
        return not (self.held or self.waits or self.claimable)


def is_held(row: Row, alive: IsAlive) -> bool:
    """Return whether a process executes a row's run: `held_by` is its worker, if that has a row of its own."""
    return row["held_by"] is not None and alive(str(row["held_by"]))


async def live(tx: Transaction, thread_id: str, *, alive: IsAlive) -> LiveRun | None:
    """Return the thread's run that has not ended, without reading the rest of it."""
    row = await one(tx, "select_live_run", thread_id=thread_id)
    if row is None:
        return None
    return LiveRun(row["id"], is_held(row, alive), row["waiting_since"] is not None, bool(row["claimable"]))


async def find_running(tx: Transaction, thread_id: str, *, alive: IsAlive) -> str | None:
    """Return the id of the thread's running run, without reading the rest of it."""
    found = await live(tx, thread_id, alive=alive)
    return found.id if found is not None and found.held else None


def left(row: Row) -> dict[str, Any]:
    """Return a run's row without its lease, for another store."""
    return {**row, "owner": None} if row["status"] == "running" else {**row}


async def register(tx: Transaction, worker: str) -> None:
    """Store that a worker lives."""
    await tx.run("insert_worker", id=worker, now=now())


async def renew(tx: Transaction, worker: str) -> bool:
    """Store that a worker still lives; False if others took it for dead and deleted it."""
    return await tx.run("renew_worker", id=worker) > 0


async def remove(tx: Transaction, worker: str) -> None:
    """Delete a worker that has ended: others may claim its runs."""
    await tx.run("delete_worker", id=worker)


async def bury(tx: Transaction, dead: Mapping[str, int]) -> None:
    """Delete workers that are dead, unless one has renewed its row since it was seen to: others may claim their runs.

    Args:
        dead: each with its renewals, as they were seen last.
    """
    for worker, renewals in dead.items():
        await tx.run("delete_silent_worker", id=worker, renewals=renewals)


async def workers(tx: Transaction) -> dict[str, int]:
    """Return all workers, each with how often it has renewed its row."""
    return _renewals(await tx.fetch("select_workers"))


async def renewals_of(tx: Transaction, thread_id: str) -> tuple[str, int] | None:
    """Return the worker that executes the thread's run, with how often it has renewed its row. None: no worker does."""
    row = await one(tx, "select_live_run", thread_id=thread_id)
    known = await workers(tx) if row is not None else {}
    return (row["owner"], known[row["owner"]]) if row is not None and row["owner"] in known else None


async def forgive(tx: Transaction, lease: Lease) -> None:
    """Take back the crash that a run's takeover counted: its executor stood still, and lives."""
    await tx.run("forgive_crash", thread_id=lease.thread_id, id=lease.run_id, attempt=lease.attempt)


class WaitingWork(NamedTuple):
    """All workers, each with how often it has renewed its row; whether runs or background jobs wait for one; and how
    many questions wait for their turn."""

    workers: dict[str, int]
    runs: bool
    jobs: bool
    questions: int


async def look_for_work(tx: Transaction) -> WaitingWork:
    """Return what waits for a worker."""
    asked: list[QueryCall] = [
        *(("select_workers", {}), ("select_claimable", {})),
        jobs.waits(),
        ("count_queued_questions", {}),
    ]
    rows, found, waiting, [counted] = await tx.fetch_all(*asked, last=True)
    return WaitingWork(_renewals(rows), bool(found), bool(waiting), int(counted["queued"]))


async def held(tx: Transaction, worker: str) -> list[HeldRun]:
    """Return the runs that a worker is to execute."""
    rows = await tx.fetch("select_held_runs", owner=worker)
    return [HeldRun(Lease(row["thread_id"], row["id"], worker, row["attempt"]), row["stop_by"]) for row in rows]


async def claim(tx: Transaction, worker: str, *, limit: int) -> Sequence[ClaimedRun]:
    """Make a worker the owner of runs that no process executes, and return them: runs of dead workers, and runs that a
    worker gave back. Runs that other processes claim at this moment are left to them."""
    rows = await tx.fetch("claim_runs", owner=worker, limit=limit)
    return [
        ClaimedRun(
            Lease(row["thread_id"], row["id"], worker, row["attempt"]), row["user_id"], row["crashes"], row["stop_by"]
        )
        for row in rows
    ]


def _renewals(rows: Sequence[Row]) -> dict[str, int]:
    return {row["id"]: int(row["renewals"]) for row in rows}
