"""Events of runs: rows while a run is under way, and read from its packed form when it has ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from longthread.model.run import (
    Event,
    EventType,
)
from longthread.store.driver import Transaction, one
from longthread.store.leases import Lease as Lease
from longthread.store.rows import dump
from longthread.store.run_rows import (
    ENDLESS,
    complete_run,
    completed_steps,
    event_of,
    events_of_run,
    events_of_step,
    live_steps,
    marks_of,
    run_of,
    unpack,
)

_ROWS = frozenset({"warning"})
"""Event types that are never marks."""


async def append_events(tx: Transaction, events: Iterable[Event]) -> None:
    """Store events, already numbered by their run."""
    await tx.run_all(
        "insert_event",
        [
            {
                "thread_id": event.thread_id,
                "run_id": event.run_id,
                "seq": event.seq,
                "type": event.type,
                "data": dump(event.data),
                "at": event.at.isoformat(),
            }
            for event in events
        ],
    )


async def save_texts(tx: Transaction, texts: Sequence[Event]) -> None:
    """Store pieces of text. One with a number that is stored already is not stored again."""
    rows = [[event.thread_id, event.run_id, event.seq, dump(event.data), event.at.isoformat()] for event in texts]
    await tx.later("insert_texts", texts=dump(rows))


async def remove_text(tx: Transaction, lease: Lease, first: int, last: int) -> None:
    """Delete the text events with these numbers: a step now holds their text."""
    await tx.later("delete_events", thread_id=lease.thread_id, run_id=lease.run_id, first=first, last=last, type="text")


async def withdraw_text(tx: Transaction, lease: Lease, first: int, last: int) -> None:
    """Delete the text events with these numbers. No other event gets a number that somebody may have read."""
    await remove_text(tx, lease, first, last)
    await tx.run("keep_last_event", thread_id=lease.thread_id, run_id=lease.run_id, last=last)


async def events_after(tx: Transaction, thread_id: str, run_id: str, after: int, *, limit: int = 1000) -> list[Event]:
    """Return the run's events after number `after`, in order."""
    row = await one(tx, "select_run", thread_id=thread_id, id=run_id)
    if row is None:
        return []
    run = run_of(row)
    if row["body"] is not None:
        packed = unpack(run, bytes(row["body"]))
        run, marks, found = complete_run(run, packed.outcome, row), packed.marks, list(packed.events)
        steps = await completed_steps(tx, packed)
    else:
        # Runs that ended before runs were packed have rows.
        marks, stop = marks_of(row), ENDLESS if run.stop_step is None else run.stop_step
        steps = await live_steps(tx, thread_id, run.first_step, stop, told_from=after + 1)
        rows = await tx.fetch("select_events", thread_id=thread_id, run_id=run_id, after=after, limit=limit)
        found = [event_of(each) for each in rows]
    found += events_of_run(run, marks)
    for step, told in steps:
        if step.run_id == run_id:
            found += events_of_step(step, told)
    return sorted((event for event in found if event.seq > after), key=lambda event: event.seq)[:limit]


async def events_of_type(tx: Transaction, thread_id: str, run_id: str, event_type: EventType) -> list[Event]:
    """Return the run's events of one type, in order."""
    if event_type not in _ROWS:
        events = await events_after(tx, thread_id, run_id, 0, limit=ENDLESS)
        return [event for event in events if event.type == event_type]
    row = await one(tx, "select_run", thread_id=thread_id, id=run_id)
    if row is not None and row["body"] is not None:
        return [event for event in unpack(run_of(row), bytes(row["body"])).events if event.type == event_type]
    rows = await tx.fetch("select_events_of_type", thread_id=thread_id, run_id=run_id, type=event_type)
    return [event_of(each) for each in rows]


async def last_event(tx: Transaction, thread_id: str, run_id: str) -> int:
    """Return the run's last stored event's number; 0 if there is none."""
    row = await one(tx, "select_last_event", thread_id=thread_id, run_id=run_id)
    return int(row["seq"]) if row else 0
