"""Threads with turns of the past: a question, a call, its result, an answer, with the run that made them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contract.base import registered

from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.run import Event
from longthread.store import log, run_events, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease, NewRun

OLD = datetime(2026, 1, 1, tzinfo=UTC)
"""When the first turn of a thread was; each further one is a day later."""


def at(turn: int) -> str:
    """The moment of a turn."""
    return (OLD + timedelta(days=turn)).isoformat(timespec="microseconds")


def alive(owner: str) -> bool:
    """Every owner is at work."""
    return True


def run_id(turn: int) -> str:
    """The id of the run that made a turn."""
    return f"run-{turn:05}"


async def begin(tx: Transaction, thread_id: str, turn: int, *, owner: str = "owner") -> tuple[Lease, list[Entry]]:
    """Ask the question of a turn, and begin its run."""
    plan = NewRun(run_id(turn), f"question {turn}", None, "model", "auto", 5)
    await registered(tx, owner)
    lease = await runs.begin(tx, thread_id, plan, owner=owner, alive=alive)
    question = Draft(f"{turn}-q", "user", f"question {turn}", run_id=lease.run_id, metadata={"kind": "question"})
    return lease, await log.extend(tx, thread_id, [question])


async def finish(tx: Transaction, lease: Lease, turn: int) -> None:
    """Answer it."""
    observation = {"ok": True, "data": {"table_name": f"table_{turn}", "columns": []}}
    call = Draft(f"{turn}-c", "assistant", "", tool_calls=(ToolCall(f"call-{turn}", "describe_table", {}),))
    result = Draft(f"{turn}-r", "tool", json.dumps(observation), tool_call_id=f"call-{turn}", name="describe_table")
    answer = Draft(f"{turn}-a", "assistant", f"answer {turn}", run_id=lease.run_id, metadata={"kind": "answer"})
    entries = await log.extend(tx, lease.thread_id, [call, result, answer])
    step = await runs.start_step(tx, lease, "tool", action="describe_table", call_id=f"call-{turn}")
    await runs.finish_step(tx, lease, step, "done", elapsed_ms=1, action="describe_table", entry_seq=entries[1].seq)
    await run_events.append_events(
        tx, [Event(lease.thread_id, lease.run_id, 1, "warning", {"message": "slow"}, datetime.now(UTC))]
    )
    await runs.end(tx, lease, "finished", {"answer": f"answer {turn}"}, said=entries[2])


async def turns(store: Driver, count: int, *, thread_id: str = "t", user_id: str = "u") -> None:
    """Make a thread of so many turns."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id, title="title")
        for turn in range(count):
            lease, _ = await begin(tx, thread_id, turn)
            await finish(tx, lease, turn)


def age(plain: Any, thread_id: str = "t") -> None:
    """Let the turns have happened a day after another, from `OLD` on."""
    for seq, name in plain("SELECT seq, id FROM entries WHERE thread_id = ?", [thread_id]):
        turn = int(name.partition("-")[0])
        plain("UPDATE entries SET created_at = ? WHERE thread_id = ? AND seq = ?", [at(turn), thread_id, seq])
    for name in [row[0] for row in plain("SELECT id FROM runs WHERE thread_id = ?", [thread_id])]:
        moment = at(int(name.rpartition("-")[2]))
        plain("UPDATE runs SET started_at = ? WHERE thread_id = ? AND id = ?", [moment, thread_id, name])
        plain(
            "UPDATE runs SET ended_at = ? WHERE ended_at IS NOT NULL AND thread_id = ? AND id = ?",
            [moment, thread_id, name],
        )
