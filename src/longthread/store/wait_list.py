"""What waits in a thread: questions for their turn or for room, and tool calls for a person's decision.

A process that has room makes the next question a run. A question that waits is no run yet: the ids of runs are read as
their order. It becomes the entry with its own id, so that its run can always be found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from longthread.errors import KeyReused, QueueFull, RunRepeated
from longthread.model.run import AgentRun, Approval, Outcome, Protocol, RunAsker
from longthread.store import log
from longthread.store.driver import QueryCall, Row, Transaction, one
from longthread.store.log import now
from longthread.store.rows import decoder, dump
from longthread.store.run_rows import agent_of, agent_values, asker_of, asker_values, text_of, time_of

WhenBusy = Literal["reject", "enqueue", "interrupt", "rollback"]
"""What becomes of a question while its thread's run is under way."""

_ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """A question and how to work on it, as a run will store it. `rolls_back` is the run that it replaces, if any."""

    question: str
    source: str | None
    fingerprint: str | None
    model: str
    protocol: Protocol
    max_steps: int
    agent: AgentRun | None
    rolls_back: str | None = None
    asker: RunAsker | None = None


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question that waits. `position` counts from 1 in its thread."""

    thread_id: str
    id: str
    position: int
    queued_at: datetime
    plan: QuestionPlan


class StartableQuestion(NamedTuple):
    """A question whose turn it is."""

    thread_id: str
    id: str
    user_id: str


class UserLoad(NamedTuple):
    """A user's `live` runs: processes execute them, or will. `due` questions wait for nothing but room."""

    live: int
    due: int


async def add(
    tx: Transaction, thread_id: str, question_id: str, plan: QuestionPlan, *, user_id: str, first: bool, most: int
) -> QueuedQuestion:
    """Queue a question on a locked thread, after the questions that wait there, or `first`.

    Raises:
        QueueFull: the user has `most` questions that wait.
    """
    counted = await one(tx, "count_queued_questions_of_user", user_id=user_id)
    if counted is not None and counted["queued"] >= most:
        raise QueueFull(count=int(counted["queued"]), limit=most)
    await tx.run(
        "insert_queued_question",
        thread_id=thread_id,
        id=question_id,
        first=int(first),
        question=plan.question,
        source=plan.source,
        fingerprint=plan.fingerprint,
        model=plan.model,
        protocol=plan.protocol,
        max_steps=plan.max_steps,
        rolls_back=plan.rolls_back,
        **agent_values(plan.agent),
        **asker_values(plan.asker),
    )
    return next(each for each in await of_thread(tx, thread_id) if each.id == question_id)


async def of_thread(tx: Transaction, thread_id: str) -> list[QueuedQuestion]:
    """Return the questions that wait on a thread, the next one first."""
    rows = await tx.fetch("select_queued_questions", thread_id=thread_id)
    return [_question_of(row, position) for position, row in enumerate(rows, 1)]


async def find(tx: Transaction, thread_id: str, question_id: str) -> QueuedQuestion | None:
    """Return a question that waits; None if there is none with this id (any more)."""
    return next((each for each in await of_thread(tx, thread_id) if each.id == question_id), None)


async def run_of(tx: Transaction, thread_id: str, question_id: str) -> str | None:
    """Return the id of the run that a question has become; None if it has not, or if the id is that of an answer."""
    found = (await log.find_entries(tx, thread_id, [question_id])).get(question_id)
    return found.run_id if found is not None and found.role == "user" else None


async def remove(tx: Transaction, thread_id: str, question_id: str) -> bool:
    """Delete a question that waits; False if there is none. The caller has locked the thread."""
    return await tx.run("delete_queued_question", thread_id=thread_id, id=question_id) > 0


async def counts(tx: Transaction, thread_ids: Sequence[str]) -> dict[str, int]:
    """Count the questions that wait by thread; threads without any are absent."""
    rows = await tx.fetch("count_queued_questions_of_threads", threads=dump(list(thread_ids)))
    return {row["thread_id"]: int(row["queued"]) for row in rows}


async def count(tx: Transaction) -> int:
    """Count the questions that wait in the store."""
    [row] = await tx.fetch("count_queued_questions")
    return int(row["queued"])


async def startable(tx: Transaction, *, most: int | None, limit: int) -> list[StartableQuestion]:
    """Return questions whose turn it is, in the order in which they are to start: first those of the users with the
    fewest live runs, then the oldest. No user gets more than `most` live runs, if given."""
    rows = await tx.fetch("select_startable_questions", most=most or _ENDLESS, limit=limit)
    return [StartableQuestion(row["thread_id"], row["id"], row["user_id"]) for row in rows]


async def lock_user(tx: Transaction, user_id: str) -> None:
    """Keep other transactions that lock the user from beginning a run of theirs until this one ends. Lock the user
    before a thread, never after it."""
    await tx.fetch("lock_user", user_id=user_id)


async def load(tx: Transaction, user_id: str) -> UserLoad:
    """Return what a user has under way."""
    [row] = await tx.fetch("select_load_of_user", user_id=user_id)
    return UserLoad(int(row["live"]), int(row["due"]))


@decoder
def _decode_queued(row: Row) -> tuple[QuestionPlan, datetime]:
    plan = QuestionPlan(
        question=row["question"],
        source=row["source"],
        fingerprint=row["fingerprint"],
        model=row["model"],
        protocol=row["protocol"],
        max_steps=row["max_steps"],
        agent=agent_of(row),
        rolls_back=row["rolls_back"],
        asker=asker_of(row),
    )
    return plan, time_of(row["queued_at"])


def _question_of(row: Row, position: int) -> QueuedQuestion:
    plan, queued_at = _decode_queued(row)
    return QueuedQuestion(row["thread_id"], row["id"], position, queued_at, plan)


KNOWN_FOR = timedelta(hours=24)
"""How long a key is known."""


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """A client's key for a question. `request` is a hash of all that it asks. `whose` is the user who asks, where the
    thread is not that user's own: two members of a project may give the same key."""

    key: str
    request: str
    whose: str | None = None


async def find_key(tx: Transaction, user_id: str, key: QuestionKey) -> tuple[str, str] | None:
    """Return the ids of the thread and the run of the user's question under this key, or of the queued question, which
    may have become a run since; None if there is none.

    Raises:
        KeyReused: the key stands for another request.
    """
    row = await one(tx, "select_idempotency_key", user_id=key.whose or user_id, key=key.key, since=_since())
    if row is None:
        return None
    if row["request"] != key.request:
        raise KeyReused(key=key.key)
    return row["thread_id"], row["run_id"]


async def save_key(tx: Transaction, user_id: str, key: QuestionKey, *, thread_id: str, run_id: str) -> None:
    """Store a key, in the transaction that stores its question, with the id of its run or of the queued question. The
    user's keys of the day before are deleted.

    Raises:
        RunRepeated: another transaction has stored the same question. Roll this one back.
        KeyReused: the key stands for another request.
    """
    await tx.run("delete_old_idempotency_keys", user_id=key.whose or user_id, since=_since())
    about = {"key": key.key, "request": key.request, "thread_id": thread_id, "run_id": run_id}
    if await tx.run("insert_idempotency_key", user_id=key.whose or user_id, now=now(), **about):
        return
    found = await find_key(tx, user_id, key)
    thread, run = found or (thread_id, run_id)
    raise RunRepeated(thread=thread, run=run)


def _since() -> str:
    return text_of(datetime.now(UTC) - KNOWN_FOR)


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
