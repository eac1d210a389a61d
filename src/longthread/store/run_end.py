"""The end of a run, whose content is packed into one row and read from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.model.entry import Entry
from longthread.model.run import Event, EventType, Mark, Run, RunStatus, Step
from longthread.store.driver import QueryCall, Row, Transaction
from longthread.store.event_view import events_of_run, last_of, marks_of
from longthread.store.run_blob import Packed, pack, unpack
from longthread.store.run_rows import SAID, completed, ended, event_of, run_of, step_of, text_of

_ENDLESS = 2**62
_EVENT_OF: dict[RunStatus, EventType] = {"finished": "finished", "paused": "paused", "failed": "failed"}


async def end_run(
    tx: Transaction,
    run: Run,
    outcome: Mapping[str, Any],
    marks: Sequence[Mark],
    *,
    said: Entry | None = None,
    event: int | None = None,
) -> list[Event]:
    """End a run with `run.status` and pack its outcome, steps and events. `said` is its final entry; `event` is its
    last event's number, or None. Return that event, if there is one."""
    moment = datetime.now(UTC)
    ends = [] if event is None else [Mark.at(event, _EVENT_OF[run.status], moment, since=run.started_at)]
    marks = [*marks, *ends]
    own = {"thread_id": run.thread_id, "run_id": run.id}
    rows = await tx.fetch("select_own_steps", **own, first=run.first_step)
    events = [event_of(row) for row in await tx.fetch("select_events", **own, after=0, limit=_ENDLESS)]
    steps = [(step_of(row), marks_of(row)) for row in rows]
    kept = Packed(_without(outcome, said), marks, [(_without_call(step), told) for step, told in steps], events)
    await tx.later(
        "end_run",
        thread_id=run.thread_id,
        id=run.id,
        status=run.status,
        body=pack(run, kept),
        entry_seq=said.seq if said else None,
        prompts=" ".join(dict.fromkeys(step.prompt for step, _ in steps if step.prompt)) or None,
        last_event=max([last_of(marks), *(last_of(told) for _, told in steps), *(each.seq for each in events)]),
        stop_step=rows[-1]["idx"] + 1 if rows else run.first_step,
        now=text_of(moment),
    )
    if rows:
        await tx.later("delete_own_steps", **own, first=run.first_step)
    if events:
        await tx.later("delete_own_events", **own)
    return list(events_of_run(replace(run, outcome=outcome), ends))


def _without(outcome: Mapping[str, Any], said: Entry | None) -> dict[str, Any]:
    """Return the outcome without what the final entry holds."""
    if said is None:
        return dict(outcome)
    told = {"message_id": said.id, **dict.fromkeys(SAID, said.text)}
    return {key: None if key in told and value == told[key] else value for key, value in outcome.items()}


def _without_call(step: Step) -> Step:
    """Return the step without its call's id, which the result's entry holds."""
    return replace(step, call_id=None) if step.kind == "tool" and step.entry_seq else step


@dataclass(frozen=True, slots=True)
class RunContent:
    """A run with its steps, its warnings, and the number of its last event."""

    run: Run
    steps: Sequence[Step]
    warnings: Sequence[Event]
    last_event: int


def run_from(row: Row) -> Run:
    """Return a run, with its outcome if it has ended."""
    run = run_of(row)
    return run if row["body"] is None else ended(run, unpack(run, bytes(row["body"])).outcome, row)


async def ended_runs(tx: Transaction, thread_id: str, run_ids: Iterable[str]) -> dict[str, RunContent]:
    """Return those of a thread's runs that have ended, by id. However many they are, it asks the database twice."""
    asked: list[QueryCall] = [("select_run", {"thread_id": thread_id, "id": each}) for each in run_ids]
    rows = [row for [row] in filter(None, await tx.fetch_all(*asked)) if row["body"] is not None]
    runs = [run_of(row) for row in rows]
    bodies = [unpack(run, bytes(row["body"])) for run, row in zip(runs, rows, strict=True)]
    said = await tx.fetch_all(*(_said_asked(packed) for packed in bodies))
    return {
        run.id: RunContent(
            run=ended(run, packed.outcome, row),
            steps=[step for step, _ in _completed(packed, its)],
            warnings=[event for event in packed.events if event.type == "warning"],
            last_event=row["last_event"],
        )
        for run, row, packed, its in zip(runs, rows, bodies, said, strict=True)
    }


async def bare_steps(tx: Transaction, thread_id: str) -> list[tuple[Run, Sequence[Step] | None]]:
    """Return all of a thread's runs, newest first, with their steps as they are stored: without what entries hold. A
    run that has not ended has None."""
    found: list[tuple[Run, Sequence[Step] | None]] = []
    for row in await tx.fetch("select_runs", thread_id=thread_id, limit=_ENDLESS):
        run = run_of(row)
        has_ended = row["body"] is not None
        found.append((run, [step for step, _ in unpack(run, bytes(row["body"])).steps] if has_ended else None))
    return found


async def completed_steps(tx: Transaction, packed: Packed) -> list[tuple[Step, Sequence[Mark]]]:
    """Return an ended run's steps, completed from their entries."""
    asked, values = _said_asked(packed)
    return _completed(packed, await tx.fetch(asked, **values) if values["last"] else [])


def _said_asked(packed: Packed) -> QueryCall:
    """Ask for the entries of an ended run's steps."""
    seqs = [step.entry_seq for step, _ in packed.steps if step.entry_seq is not None]
    thread_id = packed.steps[0][0].thread_id if packed.steps else ""
    return "select_said", {"thread_id": thread_id, "first": min(seqs, default=0), "last": max(seqs, default=0)}


def _completed(packed: Packed, rows: Sequence[Row]) -> list[tuple[Step, Sequence[Mark]]]:
    said = {row["seq"]: row for row in rows}
    return [(completed(step, said.get(step.entry_seq)), marks) for step, marks in packed.steps]
