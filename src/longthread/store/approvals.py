"""Tool calls that wait for a person's decision. Callers lock the thread before they change anything."""

from __future__ import annotations

import json
from collections.abc import Sequence

from longthread.model.run import Approval, Outcome
from longthread.store.driver import QueryCall, Row, Transaction
from longthread.store.log import now
from longthread.store.rows import decoder, dump
from longthread.store.run_rows import time_of


async def let_wait(tx: Transaction, thread_id: str, run_id: str, calls: Sequence[Approval]) -> None:
    """Make a run wait for decisions about these calls, and release its lease."""
    for call in calls:
        await tx.run(
            "insert_approval",
            thread_id=thread_id,
            run_id=run_id,
            message_id=call.message_id,
            call_id=call.call_id,
            place=call.place,
            tool=call.tool,
            description=call.description,
            args=dump(call.args),
            parameters=dump(call.parameters),
            now=now(),
        )
    await tx.run("let_wait", thread_id=thread_id, id=run_id, now=now())


async def of_run(tx: Transaction, thread_id: str, run_id: str) -> list[Approval]:
    """Return all calls of a run that a person was asked about, oldest first."""
    return (await of_runs(tx, thread_id, [run_id]))[0]


async def of_runs(tx: Transaction, thread_id: str, run_ids: Sequence[str]) -> list[list[Approval]]:
    """Return the same for several runs of a thread, a list for each, with one request to the database."""
    asked: list[QueryCall] = [("select_approvals", {"thread_id": thread_id, "run_id": each}) for each in run_ids]
    return [[_approval(row) for row in rows] for rows in await tx.fetch_all(*asked)]


async def pending(tx: Transaction, thread_id: str, run_id: str) -> list[Approval]:
    """Return the undecided calls of a run, in call order."""
    return [each for each in await of_run(tx, thread_id, run_id) if each.decision is None]


async def waiting(tx: Transaction, *, user_id: str) -> list[tuple[str, str]]:
    """Return the thread and the run of each run of a user's that waits for decisions."""
    return [(row["thread_id"], row["id"]) for row in await tx.fetch("select_waiting", user_id=user_id)]


async def below(tx: Transaction, *, user_id: str) -> dict[str, list[str]]:
    """Map each of a user's threads to its descendants whose runs wait for decisions."""
    found: dict[str, list[str]] = {}
    for row in await tx.fetch("select_waiting_below", user_id=user_id):
        found.setdefault(row["above"], []).append(row["id"])
    return found


async def decide(tx: Transaction, call: Approval, decision: Outcome) -> None:
    """Store a call's outcome; `call` holds who decided, why, and the arguments."""
    await tx.run(
        "decide_call",
        thread_id=call.thread_id,
        run_id=call.run_id,
        message_id=call.message_id,
        call_id=call.call_id,
        decision=decision,
        edited=None if call.edited is None else dump(call.edited),
        message=call.message,
        decided_by=call.by,
        now=now(),
    )


@decoder
def _approval(row: Row) -> Approval:
    return Approval(
        thread_id=row["thread_id"],
        run_id=row["run_id"],
        message_id=row["message_id"],
        call_id=row["call_id"],
        place=row["place"],
        tool=row["tool"],
        description=row["description"],
        args=json.loads(row["args"]),
        parameters=json.loads(row["parameters"]),
        asked_at=time_of(row["asked_at"]),
        decision=row["decision"],
        edited=json.loads(row["edited"]) if row["edited"] else None,
        message=row["message"],
        by=row["decided_by"],
        at=time_of(row["decided_at"]) if row["decided_at"] else None,
    )
