"""Runs of threads: leases and steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.errors import LeaseLost, RunInProgress, RunNotFound, ThreadNotFound
from longthread.model.entry import Entry
from longthread.model.run import (
    AgentRun,
    Answers,
    Event,
    Mark,
    Protocol,
    Run,
    RunAsker,
    RunStatus,
    ShownStatus,
    Step,
    StepKind,
    StepStatus,
    unfinished_reply,
)
from longthread.store import leases, log, run_events
from longthread.store.driver import QueryCall, Row, Transaction, one
from longthread.store.leases import IsAlive
from longthread.store.leases import Lease as Lease
from longthread.store.log import now
from longthread.store.rows import Decoding, dump
from longthread.store.run_rows import (
    BEGUN,
    ENDLESS,
    agent_values,
    asker_values,
    completed_steps,
    end_run,
    last_of,
    live_steps,
    marks_json,
    marks_of,
    run_from,
    run_of,
    step_values,
    time_of,
    unpack,
)

BETWEEN_PARTS = "-"
"""Separates the ids of a prompt's two parts in the second part's id, so that it names both."""
_QUERIES = "queries"


@dataclass(frozen=True, slots=True)
class NewRun:
    """A new run's task. `question_seq` is the question's entry, if there is one."""

    run_id: str
    question: str
    source: str | None
    model: str
    protocol: Protocol
    max_steps: int
    continues: str | None = None
    question_seq: int | None = None
    agent: AgentRun | None = None
    answers: Answers | None = None
    asker: RunAsker | None = None


@dataclass(frozen=True, slots=True)
class LeaseCheck:
    """The result of a lease check: the locked thread's tip and size, and the run's events so far. `stop_by` is the user
    who has stopped the run through another process, if any."""

    tip: int
    size: int
    started_at: datetime
    first_step: int
    marks: tuple[Mark, ...]
    stop_by: str | None


async def begin(
    tx: Transaction, thread_id: str, plan: NewRun, *, owner: str, alive: IsAlive, tells: bool = False
) -> Lease:
    """Start a run and take its lease; a run whose owner died is ended as paused first. `tells`: event 1 is `started`.
    Raises `RunInProgress` if another run of the thread is being executed, or `ThreadNotFound`."""
    await log.position(tx, thread_id)
    await _clear(tx, thread_id, alive)
    first_step = await next_step(tx, thread_id)
    marks = BEGUN if tells else ()
    await tx.run(
        "insert_run",
        thread_id=thread_id,
        id=plan.run_id,
        question="" if plan.question_seq else plan.question,
        question_seq=plan.question_seq,
        source=plan.source,
        model=plan.model,
        protocol=plan.protocol,
        max_steps=plan.max_steps,
        continues=plan.continues,
        first_step=first_step,
        owner=owner,
        now=now(),
        told=marks_json(marks),
        last_event=len(marks),
        **agent_values(plan.agent),
        **asker_values(plan.asker),
    )
    if plan.answers is not None:
        await tx.run("set_answers", thread_id=thread_id, id=plan.run_id, **asdict(plan.answers))
    return Lease(thread_id, plan.run_id, owner, 1)


async def take_over(tx: Transaction, run: Run, *, owner: str, alive: IsAlive) -> Lease:
    """Take the lease of an unfinished run. Raises `RunInProgress` if its owner or another run is active, or
    `ThreadNotFound` if the thread was deleted."""
    await log.position(tx, run.thread_id)
    live = await one(tx, "select_live_run", thread_id=run.thread_id)
    if live is not None and (live["id"] != run.id or leases.is_held(live, alive)):
        raise RunInProgress(thread=run.thread_id, run=live["id"])
    [row] = await tx.fetch("take_lease", thread_id=run.thread_id, id=run.id, owner=owner)
    return Lease(run.thread_id, run.id, owner, int(row["attempt"]))


async def go_on(tx: Transaction, lease: Lease, model: str) -> None:
    """Store that an execution goes on with the run, and with which model. A claim whose process died before that does
    not count as a crash. The caller has checked the lease."""
    await tx.later("begin_execution", thread_id=lease.thread_id, id=lease.run_id, model=model)


async def set_asker(tx: Transaction, run: Run, asker: RunAsker | None) -> None:
    """Store who has resumed a run: it works with that user's rights from now on. The caller has locked the thread."""
    await tx.run("set_asker", thread_id=run.thread_id, id=run.id, **asker_values(asker))


async def give_back(tx: Transaction, lease: Lease, *, claimable: bool = True) -> None:
    """Release a lease for another worker, or, if not `claimable`, for the process that resumes the run. Do nothing if
    another owner has it. Raises `ThreadNotFound`."""
    await log.position(tx, lease.thread_id)
    await tx.later("drop_lease", **_of(lease), claimable=int(claimable))


async def request_stop(tx: Transaction, run: Run, *, by: str) -> None:
    """Store that a user stops a run: its worker obeys, or the next one. The caller has locked the thread."""
    await tx.run("request_stop", thread_id=run.thread_id, id=run.id, stop_by=by)


async def check(tx: Transaction, lease: Lease) -> LeaseCheck:
    """Lock the thread and check the lease, in the transaction that is about to write. Raises `LeaseLost`."""
    row = await one(tx, "select_lease", **_of(lease))
    if row is None:
        raise LeaseLost(thread=lease.thread_id, run=lease.run_id)
    return LeaseCheck(
        tip=row["tip"],
        size=row["entry_count"],
        started_at=time_of(row["started_at"]),
        first_step=row["first_step"],
        marks=tuple(marks_of(row)),
        stop_by=row["stop_by"],
    )


async def check_all(tx: Transaction, held: Sequence[Lease]) -> set[str]:
    """Check the leases of many runs as `check` does, without waiting for a lock. Return the ids of the runs that may be
    written: no run that another owner has, and none of a locked thread."""
    asked = [[lease.thread_id, lease.run_id, lease.owner, lease.attempt] for lease in held]
    return {row["id"] for row in await tx.fetch("select_leases", leases=dump(asked))}


async def end(
    tx: Transaction,
    lease: Lease,
    status: RunStatus,
    outcome: Mapping[str, Any],
    *,
    said: Entry | None = None,
    event: int | None = None,
    held: LeaseCheck | None = None,
) -> list[Event]:
    """End a run and release its lease. Return the event that reports the end, if one does. Raises `LeaseLost`.

    Args:
        said: the final entry; its text is not stored again in the outcome.
        event: the number of the run's last event, which reports the end; None: no event.
    """
    held = held or await check(tx, lease)
    about = Run(lease.thread_id, lease.run_id, status, "", None, "", "auto", 0, held.started_at)
    about = replace(about, first_step=held.first_step)
    return await end_run(tx, about, outcome, held.marks, said=said, event=event)


async def call_off(tx: Transaction, run: Run, outcome: Mapping[str, Any], said: Entry | None = None) -> None:
    """End a run that no process executes as paused. The caller has locked the thread and checked the lease; `said` is
    the entry of what it was writing."""
    live = await one(tx, "select_live_run", thread_id=run.thread_id)
    assert live is not None and live["id"] == run.id
    await _pause(tx, live, outcome, said)


async def find_run(tx: Transaction, thread_id: str, run_id: str) -> Run | None:
    """Return a run by id."""
    row = await one(tx, "select_run", thread_id=thread_id, id=run_id)
    return run_from(row) if row else None


async def run_of_user(tx: Transaction, thread_id: str, run_id: str, *, user_id: str) -> Run:
    """Return a run of a user's thread with one request to the database, the transaction's last. Raises `ThreadNotFound`
    or `RunNotFound`."""
    thread: QueryCall = ("select_thread", {"id": thread_id, "user_id": user_id})
    threads, rows = await tx.fetch_all(thread, ("select_run", {"thread_id": thread_id, "id": run_id}), last=True)
    if not threads:
        raise ThreadNotFound(thread=thread_id)
    if not rows:
        raise RunNotFound(thread=thread_id, run=run_id)
    return run_from(rows[0])


async def last_run(tx: Transaction, thread_id: str) -> Run | None:
    """Return the thread's newest run."""
    row = await one(tx, "select_last_run", thread_id=thread_id)
    return run_from(row) if row else None


async def list_runs(tx: Transaction, thread_id: str, *, limit: int) -> list[Run]:
    """Return the thread's runs, newest first."""
    return [run_from(row) for row in await tx.fetch("select_runs", thread_id=thread_id, limit=limit)]


async def answers(tx: Transaction, thread_id: str, run_id: str) -> list[Run]:
    """Return other agents' runs that answer a run's calls, in the threads below, oldest first."""
    return (await answers_of_runs(tx, thread_id, [run_id]))[0]


async def answers_of_runs(tx: Transaction, thread_id: str, run_ids: Iterable[str]) -> list[list[Run]]:
    """Return the same for several runs of a thread, a list for each, with one request to the database."""
    asked: list[QueryCall] = [("select_answers", {"thread_id": thread_id, "run_id": each}) for each in run_ids]
    return [[run_from(row) for row in rows] for rows in await tx.fetch_all(*asked)]


async def is_held(tx: Transaction, run: Run, *, alive: IsAlive) -> bool:
    """Return whether a process executes the run."""
    return await leases.find_running(tx, run.thread_id, alive=alive) == run.id


async def current_status(tx: Transaction, run: Run, *, alive: IsAlive) -> ShownStatus:
    """Return a run's status: `interrupted` if it is unfinished and no process executes it."""
    return "interrupted" if run.status == "running" and not await is_held(tx, run, alive=alive) else run.status


async def start_step(
    tx: Transaction,
    lease: Lease,
    kind: StepKind,
    *,
    action: str = "",
    thought: str = "",
    args: Mapping[str, Any] | None = None,
    call_id: str | None = None,
    manifest: Sequence[Any] = (),
    marks: Sequence[Mark] = (),
    started_at: datetime | None = None,
    held: LeaseCheck | None = None,
) -> int:
    """Store a step's start; return its index in the thread. Raises `LeaseLost`.

    `held` is an earlier lease check of this transaction.
    """
    _ = held or await check(tx, lease)
    step = Step(
        thread_id=lease.thread_id,
        index=await next_step(tx, lease.thread_id),
        run_id=lease.run_id,
        kind=kind,
        status="running",
        started_at=started_at or datetime.now(UTC),
        thought=thought,
        action=action,
        args=args or {},
        call_id=call_id,
        manifest=manifest,
    )
    await _insert_step(tx, step, marks)
    return step.index


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
    entry_seq: int | None = None,
    marks: Sequence[Mark] = (),
    held: LeaseCheck | None = None,
) -> None:
    """Store a step's end. Raises `LeaseLost`.

    Omit what the entry `entry_seq` holds. `marks` are those given at the start and new ones. `held` is an earlier lease
    check of this transaction.
    """
    _ = held or await check(tx, lease)
    await tx.later(
        "finish_step",
        thread_id=lease.thread_id,
        idx=index,
        status=status,
        thought=thought,
        action=action,
        observation=None if observation is None else dump(observation),
        usage=dump(usage or {}),
        entry_seq=entry_seq,
        told=marks_json(marks),
        last_event=last_of(marks),
        elapsed_ms=elapsed_ms,
    )


async def add_step(
    tx: Transaction, lease: Lease, step: Step, *, marks: Sequence[Mark] = (), held: LeaseCheck | None = None
) -> int:
    """Store a completed step; return its index in the thread, whatever `step.index` is. Raises `LeaseLost`."""
    _ = held or await check(tx, lease)
    index = await next_step(tx, lease.thread_id)
    await _insert_step(tx, replace(step, index=index), marks)
    return index


async def refer_step(tx: Transaction, thread_id: str, index: int, entry_seq: int) -> None:
    """Link a step to the entry that holds its observation."""
    await tx.later("refer_step", thread_id=thread_id, idx=index, entry_seq=entry_seq)


async def next_step(tx: Transaction, thread_id: str) -> int:
    """Return the index that the thread's next step gets."""
    row = await one(tx, "select_next_step", thread_id=thread_id)
    return int(row["idx"]) if row else 0


async def steps_from(tx: Transaction, thread_id: str, first: int) -> list[Step]:
    """Return the thread's steps from index `first` on."""
    return await steps_between(tx, thread_id, first, ENDLESS)


async def steps_of(tx: Transaction, run: Run) -> list[Step]:
    """Return a run's steps."""
    row = await one(tx, "select_run", thread_id=run.thread_id, id=run.id)
    if row is not None and row["body"] is not None:
        return [step for step, _ in await completed_steps(tx, unpack(run, bytes(row["body"])))]
    stop = ENDLESS if run.stop_step is None else run.stop_step
    live = await live_steps(tx, run.thread_id, run.first_step, stop)
    return [step for step, _ in live if step.run_id == run.id]


async def steps_between(tx: Transaction, thread_id: str, first: int, stop: int) -> list[Step]:
    """Return the thread's steps with `first` <= index < `stop`. Scans the thread's runs: prefer `steps_of`."""
    found = [step for step, _ in await live_steps(tx, thread_id, first, stop)]
    for row in await tx.fetch("select_runs_of_steps", thread_id=thread_id, first=first, stop=stop):
        run = run_of(row)
        found += [step for step, _ in await completed_steps(tx, unpack(run, bytes(row["body"])))]
    return sorted((step for step in found if first <= step.index < stop), key=lambda step: step.index)


async def save_prompt(tx: Transaction, thread_id: str, prompt_id: str, body: bytes) -> None:
    """Store a prompt, or a part of one, for steps. An existing id is not overwritten."""
    await tx.later("insert_prompt", thread_id=thread_id, id=prompt_id, body=body)


async def saved_prompt(tx: Transaction, thread_id: str, prompt_id: str) -> bytes | None:
    """Return what `save_prompt` stored."""
    row = await one(tx, "select_prompt", thread_id=thread_id, id=prompt_id)
    return bytes(row["body"]) if row else None


def prompts_of(names: Iterable[str]) -> set[str]:
    """Return the ids of all prompts and parts in these names. One name may hold several ids."""
    named = {name for several in names for name in several.split()}
    return named | {name.partition(BETWEEN_PARTS)[0] for name in named}


async def save_fold(tx: Transaction, thread_id: str, seq: int, data: Mapping[str, Any]) -> None:
    """Store the fold of the entries up to `seq`, so that the next run need not read them."""
    rest = {key: value for key, value in data.items() if key != _QUERIES}
    await tx.later("save_fold", thread_id=thread_id, seq=seq, queries=data.get(_QUERIES, 0), data=dump(rest))


async def move_fold(tx: Transaction, thread_id: str, seq: int, queries: int) -> None:
    """Store that the entries up to `seq` changed only the last query's number in the fold."""
    await tx.later("move_fold", thread_id=thread_id, seq=seq, queries=queries)


async def saved_fold(tx: Transaction, thread_id: str) -> tuple[int, dict[str, Any]] | None:
    """Return the last stored fold and its seq."""
    row = await one(tx, "select_fold", thread_id=thread_id)
    if row is None:
        return None
    queries = {_QUERIES: row["queries"]} if row["queries"] else {}
    with Decoding(thread_id, "what is known of the entries up to", row["seq"]):
        return int(row["seq"]), json.loads(row["data"]) | queries


async def _clear(tx: Transaction, thread_id: str, alive: IsAlive) -> None:
    live = await one(tx, "select_live_run", thread_id=thread_id)
    if live is None:
        return
    if leases.is_held(live, alive):
        raise RunInProgress(thread=thread_id, run=live["id"])
    run = run_of({**live, "asked": None})
    await _pause(tx, live, {"reason": "superseded" if run.status == "waiting" else "interrupted"})


async def _pause(tx: Transaction, live: Row, outcome: Mapping[str, Any], said: Entry | None = None) -> None:
    run = run_of({**live, "asked": None})
    events = await run_events.events_after(tx, run.thread_id, run.id, 0, limit=ENDLESS)
    unfinished, message_id = unfinished_reply(events)
    if unfinished:  # its process had no time to say so
        outcome = {**outcome, "unfinished": unfinished, "message_id": message_id}
    last = await run_events.last_event(tx, run.thread_id, run.id)
    await end_run(tx, replace(run, status="paused"), outcome, marks_of(live), said=said, event=last + 1)


async def _insert_step(tx: Transaction, step: Step, marks: Sequence[Mark]) -> None:
    await tx.later("insert_step", **step_values(step), told=marks_json(marks), last_event=last_of(marks))


def _of(lease: Lease) -> dict[str, Any]:
    """Return the values of a query about a run, if the lease is still the last one."""
    return {"thread_id": lease.thread_id, "id": lease.run_id, "owner": lease.owner, "attempt": lease.attempt}
