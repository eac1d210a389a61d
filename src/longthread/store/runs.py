"""Runs on a thread: who executes them, what they did, and what they told those who watch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.errors import LeaseLost, RunInProgress, ThreadNotFound
from longthread.model.event import Event, EventType
from longthread.model.run import Protocol, Run, RunStatus, Step, StepKind, StepStatus
from longthread.store import log
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now

LEASE = timedelta(seconds=15)
"""How long a run stays its owner's without a renewal."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a run's part of a thread. `owner` names the process, and this one execution in it."""

    thread_id: str
    run_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a new run is to do."""

    run_id: str
    question: str
    source: str | None
    model: str
    protocol: Protocol
    max_steps: int
    continues: str | None = None


Alive = Callable[[str], bool]
"""Whether an owner may still be at work. False only where that is certain."""


async def begin(tx: Transaction, thread_id: str, plan: Plan, *, owner: str, alive: Alive) -> Lease:
    """Start a run on a thread and take its lease. A run whose owner died is ended first, as paused.

    Raises:
        RunInProgress: another run of the thread is being executed.
        ThreadNotFound: there is no such thread.
    """
    await log.position(tx, thread_id)
    await _clear(tx, thread_id, alive)
    step = await one(tx, "select_next_step", thread_id=thread_id)
    await tx.run(
        "insert_run",
        thread_id=thread_id,
        id=plan.run_id,
        question=plan.question,
        source=plan.source,
        model=plan.model,
        protocol=plan.protocol,
        max_steps=plan.max_steps,
        continues=plan.continues,
        first_step=step["idx"] if step else 0,
        owner=owner,
        lease_until=_lease_end(),
        now=now(),
    )
    return Lease(thread_id, plan.run_id, owner)


async def take_over(tx: Transaction, run: Run, *, owner: str, alive: Alive) -> Lease:
    """Take the lease of a run that its owner left unfinished.

    Raises:
        RunInProgress: its owner is still at work, or another run is.
        ThreadNotFound: the thread was deleted.
    """
    await log.position(tx, run.thread_id)
    live = await one(tx, "select_live_run", thread_id=run.thread_id)
    if live is not None and (live["id"] != run.id or _is_held(live, alive)):
        raise RunInProgress(thread=run.thread_id, run=live["id"])
    await tx.run("take_lease", thread_id=run.thread_id, id=run.id, owner=owner, lease_until=_lease_end())
    return Lease(run.thread_id, run.id, owner)


async def renew(tx: Transaction, lease: Lease) -> None:
    """Keep a lease for another while.

    Raises:
        LeaseLost: somebody else has it now.
    """
    await _lock(tx, lease)
    held = await tx.run(
        "renew_lease", thread_id=lease.thread_id, id=lease.run_id, owner=lease.owner, lease_until=_lease_end()
    )
    if not held:
        raise LeaseLost(thread=lease.thread_id, run=lease.run_id)


async def check(tx: Transaction, lease: Lease) -> None:
    """Make sure, inside the transaction that is about to write, that the lease is still held.

    Raises:
        LeaseLost: it is not.
    """
    await _lock(tx, lease)
    if await one(tx, "select_lease", thread_id=lease.thread_id, id=lease.run_id, owner=lease.owner) is None:
        raise LeaseLost(thread=lease.thread_id, run=lease.run_id)


async def end(tx: Transaction, lease: Lease, status: RunStatus, outcome: Mapping[str, Any]) -> None:
    """End a run and give its lease back."""
    await check(tx, lease)
    await tx.run(
        "end_run", thread_id=lease.thread_id, id=lease.run_id, status=status, outcome=_dump(outcome), now=now()
    )


async def find_run(tx: Transaction, thread_id: str, run_id: str) -> Run | None:
    """A run by its id."""
    row = await one(tx, "select_run", thread_id=thread_id, id=run_id)
    return _run(row) if row else None


async def last_run(tx: Transaction, thread_id: str) -> Run | None:
    """The thread's newest run."""
    row = await one(tx, "select_last_run", thread_id=thread_id)
    return _run(row) if row else None


async def is_held(tx: Transaction, run: Run, *, alive: Alive) -> bool:
    """Whether somebody executes the run now."""
    row = await one(tx, "select_live_run", thread_id=run.thread_id)
    return row is not None and row["id"] == run.id and _is_held(row, alive)


async def start_step(
    tx: Transaction,
    lease: Lease,
    kind: StepKind,
    *,
    action: str = "",
    thought: str = "",
    args: Mapping[str, Any] | None = None,
    call_id: str | None = None,
    manifest: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Note that a step begins; its index in the thread.

    Raises:
        LeaseLost: the run was taken over.
    """
    await check(tx, lease)
    row = await one(tx, "select_next_step", thread_id=lease.thread_id)
    index = int(row["idx"]) if row else 0
    await tx.run(
        "insert_step",
        thread_id=lease.thread_id,
        idx=index,
        run_id=lease.run_id,
        kind=kind,
        thought=thought,
        action=action,
        args=_dump(args or {}),
        call_id=call_id,
        manifest=_dump(manifest),
        now=now(),
    )
    return index


async def finish_step(
    tx: Transaction,
    lease: Lease,
    index: int,
    status: StepStatus,
    *,
    elapsed_ms: int,
    thought: str = "",
    action: str = "",
    observation: Mapping[str, Any] | None = None,
    usage: Mapping[str, int] | None = None,
) -> None:
    """Note how a step ended."""
    await check(tx, lease)
    await tx.run(
        "finish_step",
        thread_id=lease.thread_id,
        idx=index,
        status=status,
        thought=thought,
        action=action,
        observation=None if observation is None else _dump(observation),
        usage=_dump(usage or {}),
        elapsed_ms=elapsed_ms,
    )


async def steps_from(tx: Transaction, thread_id: str, first: int) -> list[Step]:
    """The thread's steps from index `first` on."""
    return [_step(row) for row in await tx.fetch("select_steps", thread_id=thread_id, first=first)]


async def steps_between(tx: Transaction, thread_id: str, first: int, stop: int) -> list[Step]:
    """The thread's steps with `first` <= index < `stop`."""
    rows = await tx.fetch("select_steps_between", thread_id=thread_id, first=first, stop=stop)
    return [_step(row) for row in rows]


async def append_events(tx: Transaction, events: Iterable[Event]) -> None:
    """Store events, which their run has numbered."""
    await tx.run_all(
        "insert_event",
        [
            {
                "thread_id": event.thread_id,
                "run_id": event.run_id,
                "seq": event.seq,
                "type": event.type,
                "data": _dump(event.data),
                "at": event.at.isoformat(),
            }
            for event in events
        ],
    )


async def events_after(tx: Transaction, thread_id: str, run_id: str, after: int, *, limit: int = 1000) -> list[Event]:
    """The run's events behind number `after`, in order."""
    rows = await tx.fetch("select_events", thread_id=thread_id, run_id=run_id, after=after, limit=limit)
    return [_event(row) for row in rows]


async def events_of_type(tx: Transaction, thread_id: str, run_id: str, event_type: EventType) -> list[Event]:
    """The run's events of one type, in order."""
    rows = await tx.fetch("select_events_of_type", thread_id=thread_id, run_id=run_id, type=event_type)
    return [_event(row) for row in rows]


async def last_event(tx: Transaction, thread_id: str, run_id: str) -> int:
    """The number of the run's last stored event; 0 when it has none."""
    row = await one(tx, "select_last_event", thread_id=thread_id, run_id=run_id)
    return int(row["seq"]) if row else 0


async def save_fold(tx: Transaction, thread_id: str, seq: int, data: Mapping[str, Any]) -> None:
    """Keep what the entries up to `seq` amount to, so that the next run need not read them again."""
    await tx.run("save_fold", thread_id=thread_id, seq=seq, data=_dump(data))


async def saved_fold(tx: Transaction, thread_id: str) -> tuple[int, dict[str, Any]] | None:
    """What `save_fold` kept last."""
    row = await one(tx, "select_fold", thread_id=thread_id)
    return (int(row["seq"]), json.loads(row["data"])) if row else None


async def _lock(tx: Transaction, lease: Lease) -> None:
    """Wait for whoever writes the thread now: only then can be seen what became of the lease."""
    try:
        await log.position(tx, lease.thread_id)
    except ThreadNotFound:
        raise LeaseLost(thread=lease.thread_id, run=lease.run_id) from None


async def _clear(tx: Transaction, thread_id: str, alive: Alive) -> None:
    live = await one(tx, "select_live_run", thread_id=thread_id)
    if live is None:
        return
    if _is_held(live, alive):
        raise RunInProgress(thread=thread_id, run=live["id"])
    outcome = {"reason": "interrupted"}
    await tx.run("end_run", thread_id=thread_id, id=live["id"], status="paused", outcome=_dump(outcome), now=now())
    last = await last_event(tx, thread_id, live["id"])
    await append_events(tx, [Event(thread_id, live["id"], last + 1, "paused", outcome, datetime.now(UTC))])


def _is_held(row: Row, alive: Alive) -> bool:
    return bool(row["owner"]) and row["lease_until"] > now() and alive(row["owner"])


def _lease_end() -> str:
    return (datetime.now(UTC) + LEASE).isoformat(timespec="microseconds")


def _run(row: Row) -> Run:
    return Run(
        thread_id=row["thread_id"],
        id=row["id"],
        status=row["status"],
        question=row["question"],
        source=row["source"],
        model=row["model"],
        protocol=row["protocol"],
        max_steps=row["max_steps"],
        started_at=_time(row["started_at"]),
        ended_at=_time(row["ended_at"]) if row["ended_at"] else None,
        continues=row["continues"],
        first_step=row["first_step"],
        outcome=json.loads(row["outcome"]),
    )


def _step(row: Row) -> Step:
    kind: StepKind = row["kind"]
    status: StepStatus = row["status"]
    return Step(
        thread_id=row["thread_id"],
        index=row["idx"],
        run_id=row["run_id"],
        kind=kind,
        status=status,
        started_at=_time(row["started_at"]),
        thought=row["thought"],
        action=row["action"],
        args=json.loads(row["args"]),
        observation=json.loads(row["observation"]) if row["observation"] else None,
        call_id=row["call_id"],
        usage=json.loads(row["usage"]),
        manifest=json.loads(row["manifest"]),
        elapsed_ms=row["elapsed_ms"],
    )


def _event(row: Row) -> Event:
    return Event(row["thread_id"], row["run_id"], row["seq"], row["type"], json.loads(row["data"]), _time(row["at"]))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
