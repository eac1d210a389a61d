"""Runs that are put together: every reader gives what it gave before, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, get_args

import pytest

from longthread.model.entry import Draft
from longthread.model.event import Event, EventType, Mark
from longthread.model.memory import Used
from longthread.model.run import AgentRun, Answers, RunStatus, Step
from longthread.store import bundling, log, memories, runs
from longthread.store.bundling import bundle_all, bundle_some
from longthread.store.driver import Driver, Transaction
from longthread.store.queries import Sql
from longthread.store.runs import Plan
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.import_archive import Into, import_threads
from longthread.testing.contract.base import USER, Contract, OpenStore
from longthread.testing.contract.memories import kept
from longthread.testing.contract.runs import alive
from longthread.testing.failpoints import Failpoints

KINDS = ("plain", "failed", "paused", "silent", "long", "recalling", "answering", "agent")
"""Kinds of runs: with entries and steps; failed; paused; with nothing; with much to tell; with memories; that answer
another agent; of an agent of the catalog."""


def run_id(number: int) -> str:
    """The id of a run, in the order of numbers."""
    return f"r{number:05}"


async def turn(
    tx: Transaction, number: int, *, kind: str = "", thread_id: str = "t", memory: str | None = None
) -> None:
    """A whole run, which asks, calls and says something, of a kind that its number gives."""
    kind = kind or KINDS[number % len(KINDS)]
    plan = Plan(run_id(number), f"question {number}", "源", "model", "auto", 5)
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
    await runs.append_events(tx, [Event(thread_id, lease.run_id, 4, "warning", {"message": "slow"}, at)])
    if kind == "recalling" and memory:
        await memories.note_uses(tx, thread_id, lease.run_id, [Used(memory, "given", "line")])
    said = entries[-1] if status == "finished" else None
    outcome = {"answer": f"答 {number}", "queries": []} if said else {"reason": kind, "summary": "so far"}
    await runs.end(tx, lease, status, outcome, said=said, event=5)


async def turns(store: Driver, count: int, *, start: int = 0, kind: str = "", thread_id: str = "t") -> None:
    """A thread with so many turns."""
    memory = (await kept(store, "Ann lives in Lyon.")).id
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=USER)
        for number in range(start, start + count):
            await turn(tx, number, kind=kind, thread_id=thread_id, memory=memory)


async def seen(store: Driver, thread_id: str = "t") -> dict[str, Any]:
    """All that readers give of a thread's runs."""
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
            "events": [await runs.events_after(tx, thread_id, run.id, 0) for run in found],
            "later": [await runs.events_after(tx, thread_id, run.id, 1, limit=2) for run in found],
            "typed": [await _typed(tx, thread_id, run.id) for run in found[:9]],
            "last events": [await runs.last_event(tx, thread_id, run.id) for run in found],
            "uses": [await memories.uses(tx, thread_id, run.id, user_id=USER) for run in found],
        }


async def _typed(tx: Transaction, thread_id: str, run: str) -> list[list[Event]]:
    return [await runs.events_of_type(tx, thread_id, run, kind) for kind in get_args(EventType)]


async def exported(store: Driver, thread_id: str = "t") -> bytes:
    """An export of a thread."""
    async with store.reading() as tx:
        return b"".join([line async for line in export_lines(tx, [thread_id], lambda *_: None)])


async def rows(store: Driver) -> tuple[list[str], list[tuple[str, str, int]]]:
    """The runs of thread `t` that have rows, and its bundles: first run, last run, how many."""
    async with store.reading() as tx:
        own = await tx.fetch(Sql("SELECT id FROM runs WHERE thread_id = 't' ORDER BY id"))
        there = await tx.fetch("select_bundle_places", thread_id="t")
    return [row["id"] for row in own], [(row["first_id"], row["last_id"], row["runs"]) for row in there]


def alone(count: int) -> list[str]:
    """The ids of those of so many runs that are of a kind that is not bundled."""
    return [run_id(n) for n in range(count) if KINDS[n % len(KINDS)] in {"recalling", "answering"}]


class BundleContract(Contract):
    """`longthread.store.bundling`."""

    async def test_bundled_runs_are_read_as_they_were(self, store: Driver) -> None:
        await turns(store, 40)
        before = await seen(store), await exported(store)
        assert len(before[0]["runs"]) == 40
        assert await bundle_all(store, "t") == 29
        assert (await seen(store), await exported(store)) == before
        own, there = await rows(store)
        assert own == [*alone(40), run_id(39)]
        assert there == [(run_id(0), run_id(36), 29)]
        assert await bundle_all(store, "t") == 0

    async def test_the_last_run_has_a_row_and_the_next_one_counts_on(self, store: Driver) -> None:
        await turns(store, 30, kind="plain")
        assert await bundle_all(store, "t") == 29
        assert (await rows(store))[0] == [run_id(29)]
        async with store.writing() as tx:
            lease = await runs.begin(tx, "t", Plan(run_id(30), "q", None, "m", "auto", 5), owner="o", alive=alive)
            assert await runs.start_step(tx, lease, "model") == 60
        before = await seen(store)
        assert before["last"].status == "running"
        await turns(store, 0)
        assert await bundle_all(store, "t") == 0
        assert await seen(store) == before

    async def test_an_import_of_what_was_exported_before_is_the_same(self, store: Driver) -> None:
        await turns(store, 40)
        data = await exported(store)
        await bundle_all(store, "t")
        into = Into(user_id=USER)
        outcome = await import_threads(store, io.BytesIO(data), "x", into, lambda *_: None)
        assert (outcome.same, outcome.refused) == (1, [])
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        assert await rows(store) == ([], [])
        outcome = await import_threads(store, io.BytesIO(data), "x", into, lambda *_: None)
        assert (outcome.written, outcome.refused) == (1, [])
        assert await exported(store) == data
        # Which memories a run used is not exported: nothing keeps it from being bundled.
        assert await bundle_all(store, "t") == 40 - 1 - 5
        assert await exported(store) == data

    async def test_stopped_anywhere_all_is_there(self, store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bundling, "WHERE_PRUNED", 2)
        await turns(store, 20)
        await bundle_all(store, "t")
        await turns(store, 20, start=20)
        before = await rows(store), await exported(store)
        reached: list[str] = []
        for number in range(1, 100):
            stopping = StopAt(number)
            try:
                await bundle_all(Failpoints(store, stopping), "t")
                break
            except Stopped:
                reached.append(stopping.where)
                assert await exported(store) == before[1], stopping.where
                assert stopping.where == "after COMMIT" or await rows(store) == before[0], stopping.where
        assert {"after delete_bundled_run", "after delete_bundle", "after insert_bundle"} < {*reached}
        assert reached[-2:] == ["before COMMIT", "after COMMIT"]
        assert await bundle_all(store, "t") == 0
        assert await exported(store) == before[1]

    async def test_it_may_go_on_while_others_write_and_read(
        self, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in (("BEHIND_A_TURN", 6), ("WHERE_PRUNED", 3), ("MOST", 10)):
            monkeypatch.setattr(bundling, name, value)
        async with open_store() as first, open_store() as second:
            await turns(first, 20)
            before = await seen(first)

            async def write() -> None:
                for number in range(20, 50):
                    async with first.writing() as tx:
                        await turn(tx, number, kind="plain")

            async def bundle(store: Driver) -> None:
                for number in range(12):
                    await (bundle_all if number % 3 else bundle_some)(store, "t")

            async def read() -> None:
                for _ in range(12):
                    async with second.writing() as tx:
                        found = [run.id for run in await runs.list_runs(tx, "t", limit=100)]
                        assert found == [run_id(n) for n in reversed(range(len(found)))]
                        for name in found[::5]:
                            assert await runs.find_run(tx, "t", name) is not None
                        steps = [step.index for step in await runs.steps_from(tx, "t", 0)]
                        assert steps == list(range(len(steps)))

            await asyncio.gather(write(), bundle(first), bundle(second), read())
            after = await seen(second)
            assert [run.id for run in after["runs"]] == [run_id(n) for n in reversed(range(50))]
            assert after["runs"][30:] == before["runs"]
            assert after["events"][30:] == before["events"]
            own, there = await rows(first)
            assert len(own) + sum(count for *_, count in there) == 50
            assert all(last < first for (_, last, _), (first, *_) in pairwise(there))

    async def test_a_deleted_thread_has_no_bundles(self, store: Driver) -> None:
        await turns(store, 30)
        await turns(store, 30, thread_id="other")
        for thread_id in ("t", "other"):
            await bundle_all(store, thread_id)
        before = await seen(store, "other")
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        assert await rows(store) == ([], [])
        assert await bundle_all(store, "t") == await bundle_some(store, "t") == 0
        assert await seen(store, "other") == before


class Stopped(Exception):
    """The process goes no further."""


class StopAt:
    """Stops at the boundary of this number; the first is 1."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.where = ""

    def __call__(self, boundary: str) -> None:
        self.left -= 1
        if not self.left:
            self.where = boundary
            raise Stopped
