"""Threads with runs of every kind, and everything that readers return for them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

from tests.contract.base import USER
from tests.contract.memories import kept
from tests.contract.runs import alive

from longthread.model.entry import Draft
from longthread.model.memory import Used
from longthread.model.run import AgentRun, Answers, Event, EventType, Mark, RunStatus, Step
from longthread.store import log, memories, run_events, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import NewRun
from longthread.store.transfer.archive import export_lines

KINDS = ("plain", "failed", "paused", "silent", "long", "recalling", "answering", "agent")
"""Kinds of runs: with entries and steps; failed; paused; with nothing; with much to tell; with memories; that answer
another agent; of an agent of the catalog."""


def run_id(number: int) -> str:
    return f"r{number:05}"


async def turn(
    tx: Transaction, number: int, *, kind: str = "", thread_id: str = "t", memory: str | None = None
) -> None:
    """Store a whole run, which asks, calls and answers, of a kind that its number selects."""
    kind = kind or KINDS[number % len(KINDS)]
    plan = NewRun(run_id(number), f"question {number}", "源", "model", "auto", 5)
    if kind == "agent":
        plan = replace(plan, protocol="json", agent=AgentRun("a1", 3, {"tool": {"x": 1}}), continues=run_id(0))
    if kind == "answering":
        plan = replace(plan, answers=Answers("above", f"call {number}"))
    if kind != "silent":
        _, size = await log.position(tx, thread_id)
        plan = replace(plan, question_seq=size + 1)
    lease = await runs.begin(tx, thread_id, plan, owner="owner", alive=alive, tells=True)
    status: RunStatus = "failed" if kind == "failed" else "paused" if kind == "paused" else "finished"
    if kind == "silent":
        await runs.end(tx, lease, status, {"answer": "", "n": [number, None, 1.5]}, event=2)
        return
    drafts = [
        Draft(f"{number}-q", "user", f"question {number}"),
        Draft(f"{number}-r", "tool", f'{{"ok":true,"data":{number}}}', tool_call_id=f"c{number}"),
        Draft(f"{number}-a", "assistant", f"答 {number}"),
    ]
    entries = await log.extend(tx, thread_id, drafts)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    prompt = f"p{number // 10:05}"
    await runs.save_prompt(tx, thread_id, prompt, b"prompt")
    about: dict[str, Any] = {"usage": {"input_tokens": number}, "manifest": [[1, number, "whole", 5]]}
    about |= {"action": "run_sql", "entry_seq": entries[2].seq if kind == "plain" else None}
    model = Step(thread_id, 0, lease.run_id, "model", "done", at, elapsed_ms=number, prompt=prompt, **about)
    await runs.add_step(tx, lease, model, marks=[Mark(2, "text", 5, 3), Mark(3, "thought", 7)])
    args = {"sql": "SELECT '火'\n" * (400 if kind == "long" else 1), "n": number}
    tool = await runs.start_step(tx, lease, "tool", action="run_sql", args=args, call_id=f"c{number}")
    about = {"observation": {"ok": True}} if kind == "long" else {"entry_seq": entries[1].seq}
    await runs.finish_step(tx, lease, tool, "done", elapsed_ms=2, action="run_sql", **about)
    await run_events.append_events(tx, [Event(thread_id, lease.run_id, 4, "warning", {"message": "slow"}, at)])
    if kind == "recalling" and memory:
        await memories.note_uses(tx, thread_id, lease.run_id, [Used(memory, "given", "line")])
    said = entries[-1] if status == "finished" else None
    outcome = {"answer": f"答 {number}", "queries": []} if said else {"reason": kind, "summary": "so far"}
    await runs.end(tx, lease, status, outcome, said=said, event=5)


async def turns(store: Driver, count: int, *, start: int = 0, kind: str = "", thread_id: str = "t") -> None:
    memory = (await kept(store, "Ann lives in Lyon.")).id
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=USER)
        for number in range(start, start + count):
            await turn(tx, number, kind=kind, thread_id=thread_id, memory=memory)


async def seen(store: Driver, thread_id: str = "t") -> dict[str, Any]:
    async with store.reading() as tx:
        found = await runs.list_runs(tx, thread_id, limit=10_000)
        last = await runs.last_run(tx, thread_id)
        stop = (last.stop_step or last.first_step) if last else 0
        return {
            "runs": found,
            "few": [await runs.list_runs(tx, thread_id, limit=limit) for limit in (0, 1, 2, 7, 30, 90)],
            "last": last,
            "by id": [await runs.find_run(tx, thread_id, run.id) for run in found],
            "none": [await runs.find_run(tx, thread_id, name) for name in ("", "r", "r00001x", "zz")],
            "steps": [await runs.steps_of(tx, run) for run in found],
            "all steps": await runs.steps_from(tx, thread_id, 0),
            "between": [await runs.steps_between(tx, thread_id, n, n + 5) for n in range(0, stop, 7)],
            "events": [await run_events.events_after(tx, thread_id, run.id, 0) for run in found],
            "later": [await run_events.events_after(tx, thread_id, run.id, 1, limit=2) for run in found],
            "typed": [await _typed(tx, thread_id, run.id) for run in found[:9]],
            "last events": [await run_events.last_event(tx, thread_id, run.id) for run in found],
            "uses": [await memories.uses(tx, thread_id, run.id, user_id=USER) for run in found],
        }


async def _typed(tx: Transaction, thread_id: str, run: str) -> list[list[Event]]:
    return [await run_events.events_of_type(tx, thread_id, run, kind) for kind in get_args(EventType)]


async def exported(store: Driver, thread_id: str = "t") -> bytes:
    async with store.reading() as tx:
        return b"".join([line async for line in export_lines(tx, [thread_id], lambda *_: None)])
