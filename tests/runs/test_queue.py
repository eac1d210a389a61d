"""Queued questions: who begins them, in which order, and what happens to one whose process dies meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.approvals import Sent, define, sent
from tests.runs.test_workers import USER, Gated, dead_worker, ended, last_run, until
from tests.script import COUNT, call, finish

from longthread.errors import InvalidInput, NothingToStop
from longthread.model.ids import new_id
from longthread.model.run import Decision
from longthread.runs import worker as working
from longthread.runs.analyst import Analyst
from longthread.runs.services.queue import RunLimits, begin_queued
from longthread.runs.shared import RunHandle
from longthread.store import log, runs, wait_list
from longthread.store.driver import Driver
from longthread.store.wait_list import QueuedQuestion
from longthread.testing import ScriptedChatModel

__all__ = ["sent"]
NO_LIMITS = RunLimits(None, 1000)


async def put(analyst: Analyst, question: str, *, thread_id: str, user_id: str = "default") -> QueuedQuestion:
    asked = await analyst.runs.submit(question, when_busy="enqueue", thread_id=thread_id, user_id=user_id)
    assert isinstance(asked, QueuedQuestion)
    return asked


async def begun(analyst: Analyst, question: str, *, thread_id: str, user_id: str = "default") -> RunHandle:
    asked = await analyst.runs.submit(question, when_busy="enqueue", thread_id=thread_id, user_id=user_id)
    assert isinstance(asked, RunHandle)
    return asked


async def test_no_user_waits_behind_the_many_questions_of_another(open_analyst: OpenAnalyst, store: Driver) -> None:
    model = Gated([finish("Done.")] * 6)
    analyst = await open_analyst(model, source="demo", max_runs=2)
    for n in range(2):
        await begun(analyst, "Ada's?", thread_id=f"ada-{n}", user_id="ada")
    asked = [await put(analyst, "Ada's?", thread_id=f"ada-{n}", user_id="ada") for n in (2, 3)]
    asked.append(await put(analyst, "Bob's?", thread_id="bob", user_id="bob"))
    analyst.claims.start()
    (model.metadata or {})["gate"].set()

    async def begun_by_now() -> bool:
        async with store.reading() as tx:
            return all([await runs.last_run(tx, each.thread_id) for each in asked])

    await until(begun_by_now)
    starts = {each.thread_id: (await ended(store, each.thread_id)).started_at for each in asked}
    assert starts["bob"] < starts["ada-3"]
    assert starts["ada-2"] < starts["ada-3"]


async def test_a_question_that_waits_while_the_schema_changes_is_about_the_new_one(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    gated, model = Gated([COUNT, finish("3 [q1].")]), ScriptedChatModel([finish("Done.")])
    first = await open_analyst(gated)
    handle = await first.runs.submit("One?", when_busy="enqueue", thread_id="t", user_id=USER, source=shop)
    await first.runs.submit("Two?", when_busy="enqueue", thread_id="t", user_id=USER, source=shop)
    assert isinstance(handle, RunHandle)
    (gated.metadata or {})["gate"].set()
    await handle.wait()
    with closing(sqlite3.connect(shop)) as connection, connection:
        connection.execute("ALTER TABLE customers RENAME TO clients")
    second = await open_analyst(model)
    second.claims.start()

    async def answered() -> bool:
        last = await last_run(store)
        return (last.question, last.status) == ("Two?", "finished")

    await until(answered)
    assert "FROM customers" not in str(model.calls[0].messages), "its result is of the old schema"
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id=USER)
        one, two = [each for each in await log.branch(tx, "t", thread.tip, limit=9) if each.role == "user"]
    assert one.metadata["fingerprint"] != two.metadata["fingerprint"]


async def test_of_two_processes_one_begins_a_question(open_analyst: OpenAnalyst, store: Driver) -> None:
    gated = Gated([finish("One.")])
    first, second = await open_analyst(gated, source="demo"), await open_analyst([], source="demo")
    handle = await begun(first, "One?", thread_id="t")
    queued = await put(second, "Two?", thread_id="t")
    await handle.stop()
    async with store.reading() as tx:
        [turn] = await wait_list.startable(tx, most=None, limit=9)
    tried = await asyncio.gather(
        *(
            begin_queued(each.store, turn, each.runs._services.window_cache, each.worker, NO_LIMITS)
            for each in (first, second)
        )
    )
    assert sorted(each is None for each in tried) == [False, True]
    async with store.reading() as tx:
        assert await wait_list.run_of(tx, "t", queued.id) == (await last_run(store)).id
        assert len(await runs.list_runs(tx, "t", limit=9)) == 2


async def test_a_question_whose_process_dies_as_it_begins_goes_on_elsewhere(
    open_analyst: OpenAnalyst, store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await open_analyst(Gated([]), source="demo")
    handle = await begun(first, "One?", thread_id="t")
    queued = await put(first, "Two?", thread_id="t")
    await handle.stop()
    async with store.reading() as tx:
        [turn] = await wait_list.startable(tx, most=None, limit=9)
    monkeypatch.setattr(working, "new_worker", dead_worker)
    dying = working.RunWorker(store)
    assert await begin_queued(store, turn, first.runs._services.window_cache, dying, NO_LIMITS) is not None
    monkeypatch.undo()
    second = await open_analyst([finish("Two.")], source="demo")
    second.claims.start()
    last = await ended(store)  # of the second question: the first run was stopped
    assert (last.question, last.status, last.outcome["answer"]) == ("Two?", "finished", "Two.")
    async with store.reading() as tx:
        assert await wait_list.run_of(tx, "t", queued.id) == last.id
        thread = await log.find_thread(tx, "t", user_id="default")
        asked = [each.text for each in await log.branch(tx, "t", thread.tip, limit=9) if each.role == "user"]
    assert asked == ["One?", "Two?"]


async def test_a_question_replaces_only_the_run_that_it_was_to_replace(
    open_analyst: OpenAnalyst, store: Driver
) -> None:
    first = await open_analyst(Gated([]), source="demo")
    handle = await begun(first, "One?", thread_id="t")
    asked = await first.runs.submit("Better?", when_busy="rollback", thread_id="t", user_id="default")
    assert isinstance(asked, QueuedQuestion)
    async with store.writing() as tx:  # as when it comes before the run has obeyed
        plan = replace(asked.plan, question="Best?")
        await wait_list.add(tx, "t", new_id(), plan, user_id="default", first=True, most=9)
    await handle.wait()
    second = await open_analyst([finish("The best."), finish("Better.")], source="demo")
    second.claims.start()

    async def all_begun() -> bool:
        async with store.reading() as tx:
            return len(await runs.list_runs(tx, "t", limit=9)) == 3

    await until(all_begun)
    await ended(store)
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
        branch = await log.branch(tx, "t", thread.tip, limit=9)
    assert [each.text for each in branch] == ["Best?", "The best.", "Better?", "Better."]


async def test_a_question_behind_a_run_that_a_decision_could_not_continue_begins(
    open_analyst: OpenAnalyst, store: Driver, sent: Sent
) -> None:
    await define(store)
    model = Gated([call("send_mail", to="ada")])
    first = await open_analyst(model)
    handle = await first.runs.ask("Mail ada.", thread_id="t", agent="clerk", user_id="default")
    await put(first, "Two?", thread_id="t")
    (model.metadata or {})["gate"].set()
    await handle.wait()
    second = await open_analyst([finish("Two.")])
    second.claims.start()
    async with store.reading() as tx:
        calls = await wait_list.pending(tx, "t", handle.run.id)
    with pytest.raises(InvalidInput):
        approved = {each.call_id: Decision("approve") for each in calls}
        await first.approvals.decide("t", approved, user_id="default", source="/nowhere/x.db")

    async def begun_by_now() -> bool:
        return (await last_run(store)).question == "Two?"

    await until(begun_by_now)
    assert (await ended(store)).outcome["answer"] == "Two."
    async with store.reading() as tx:
        before = await runs.find_run(tx, "t", handle.run.id)
    assert before is not None
    assert before.status == "paused"
    assert sent == []


async def test_a_question_that_still_opens_its_source_has_a_slot(
    open_analyst: OpenAnalyst, store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Gated([finish("Done.")] * 3)
    analyst = await open_analyst(model, source="demo", max_runs=1)
    handle = await begun(analyst, "One?", thread_id="t1")
    await put(analyst, "Two?", thread_id="t2", user_id="bob")
    opens, opened, resume = asyncio.Event(), asyncio.Event(), analyst.runs.resume

    async def slowly(*args: Any, **given: Any) -> RunHandle:
        opens.set()
        await opened.wait()
        return await resume(*args, **given)

    monkeypatch.setattr(analyst.runs, "resume", slowly)
    analyst.claims.start()
    await handle.stop()
    await asyncio.wait_for(opens.wait(), 60)
    await put(analyst, "Three?", thread_id="t3", user_id="eve")
    opened.set()
    (model.metadata or {})["gate"].set()

    async def third_begun() -> bool:
        async with store.reading() as tx:
            return await runs.last_run(tx, "t3") is not None

    await until(third_begun)
    await ended(store, "t3")


async def test_a_stop_spares_the_question_that_begins_meanwhile(
    open_analyst: OpenAnalyst, store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, stop = Gated([finish("Two.")]), RunHandle.stop
    first, second = await open_analyst(Gated([]), source="demo"), await open_analyst(model, source="demo")
    handle = await begun(first, "One?", thread_id="t")
    await first.runs.submit("Two?", when_busy="enqueue", thread_id="t", user_id="default")

    async def and_the_next_begins(self: RunHandle) -> None:
        await stop(self)
        second.claims.start()
        await model.asked.wait()

    monkeypatch.setattr(RunHandle, "stop", and_the_next_begins)
    await first.runs.stop("t", user_id="default")
    monkeypatch.undo()
    with pytest.raises(NothingToStop):
        await second.runs.stop("t", user_id="default", run_id=handle.run.id)
    (model.metadata or {})["gate"].set()
    assert (await ended(store)).outcome["answer"] == "Two."
    async with store.reading() as tx:
        assert [run.status for run in await runs.list_runs(tx, "t", limit=9)] == ["finished", "paused"]


async def test_runs_that_others_left_go_on_whatever_the_limit(open_analyst: OpenAnalyst, store: Driver) -> None:
    first = await open_analyst(Gated([]), source="demo")
    for n in range(3):
        await begun(first, "How many?", thread_id=f"t{n}")
    first.worker.drain()
    await first.runs.leave(0.1, asyncio.Event())
    model = Gated([finish("Done.")] * 5)
    second = await open_analyst(model, source="demo", max_runs=1)
    await begun(second, "How many?", thread_id="own")
    second.claims.start()

    async def all_live() -> bool:
        return second.runs.live == 4

    await until(all_live)
    await put(second, "And?", thread_id="new")
    (model.metadata or {})["gate"].set()
    assert {(await ended(store, each)).status for each in ("own", "t0", "t1", "t2")} == {"finished"}
