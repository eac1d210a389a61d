"""Runs outlive their worker: others claim them, obey stops, and give up one that kills processes."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.approvals import Sent, define, sent
from tests.script import COUNT, call, finish

from longthread.errors import LeaseLost, RunInProgress, StoreDisconnected, ThreadNotFound
from longthread.model.run import Run
from longthread.runs import execute, worker
from longthread.runs import worker as working
from longthread.runs.analyst import Analyst
from longthread.runs.worker import here
from longthread.store import leases, listing, log, run_events, runs, wait_list
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.testing import ScriptedChatModel

__all__ = ["sent"]
USER = "default"


class Gated(ScriptedChatModel):
    """Answers when its gate is open."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__(replies)
        self.metadata = {"asked": asyncio.Event(), "gate": asyncio.Event()}

    async def _astream(self, *args: Any, **kwargs: Any) -> Any:
        self.metadata["asked"].set()  # type: ignore[index]
        await self.metadata["gate"].wait()  # type: ignore[index]
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk

    @property
    def asked(self) -> asyncio.Event:
        found: asyncio.Event = (self.metadata or {})["asked"]
        return found


async def until(fact: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so, which another task or process brings about."""
    async with asyncio.timeout(60):
        while not await fact():  # noqa: ASYNC110 - a row rings no event
            await asyncio.sleep(0.02)


async def last_run(store: Driver, thread_id: str = "t") -> Run:
    async with store.reading() as tx:
        run = await runs.last_run(tx, thread_id)
    assert run is not None
    return run


async def ended(store: Driver, thread_id: str = "t") -> Run:
    async def is_over() -> bool:
        return (await last_run(store, thread_id)).status != "running"

    await until(is_over)
    return await last_run(store, thread_id)


async def crashes(store: Driver) -> int:
    async with store.reading() as tx:
        [row] = await tx.fetch(Sql("SELECT crashes FROM runs WHERE thread_id = 't'"))
    return int(row["crashes"])


def dead_worker() -> str:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return f"{here()}/{process.pid}/x"


async def left_by_a_dead_process(analyst: Analyst, shop: str) -> Run:
    """A run whose worker has died in its first model call, with its row."""
    handle = await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await leave(analyst)
    with pytest.raises(LeaseLost):
        await handle.wait()
    return handle.run


async def leave(analyst: Analyst) -> None:
    """Whoever executes the run has died."""
    gone = dead_worker()
    async with analyst.store.writing() as tx:
        await log.position(tx, "t")
        await leases.register(tx, gone)
        await tx.run(Sql("UPDATE runs SET owner = :owner WHERE thread_id = 't'"), owner=gone)
    analyst.worker.wake()


async def test_a_dead_workers_run_goes_on_elsewhere_by_itself(
    open_analyst: OpenAnalyst, store: Driver, shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, model = await open_analyst(Gated([])), ScriptedChatModel([COUNT, finish("3 [q1].")])
    run = await left_by_a_dead_process(first, shop)
    second = await open_analyst(model)
    second.claims.start()
    last = await ended(store)
    assert (last.id, last.status, last.outcome["answer"]) == (run.id, "finished", "3 [q1].")
    async with store.reading() as tx:
        known = (await leases.look_for_work(tx)).workers
        events = await run_events.events_after(tx, "t", run.id, 0)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [name for name in known if "/x" in name] == [], "the dead one's row is gone"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_run_that_killed_three_processes_fails(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    first, model = await open_analyst(Gated([])), Gated([])
    run = await left_by_a_dead_process(first, shop)
    second = await open_analyst(model)
    second.claims.start()
    for _ in range(2):
        await model.asked.wait()
        model.asked.clear()
        await leave(second)
    last = await ended(store)
    assert (last.id, last.status, last.outcome["reason"]) == (run.id, "failed", "crashed")
    assert "3 times" in last.outcome["error"]["message"]
    again = await open_analyst([finish("Now.")])
    handle = await again.ask("And now?", thread_id="t", source=shop, user_id=USER)
    assert (await handle.wait()).type == "finished", "the conversation goes on"


async def test_a_run_that_cannot_go_on_where_it_is_claimed_fails_with_the_reason(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    first = await open_analyst(Gated([]))
    await left_by_a_dead_process(first, shop)
    Path(shop).unlink()
    second = await open_analyst([])
    second.claims.start()
    last = await ended(store)
    assert (last.status, last.outcome["error"]["type"]) == ("failed", "source_not_found")


async def test_a_stop_through_another_process_is_obeyed(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    model = Gated([])
    first, second = await open_analyst(model), await open_analyst([])
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    await second.runs.stop("t", user_id=USER)
    first.worker.wake()
    assert (await handle.wait()).type == "paused"
    assert (await last_run(store)).outcome["reason"] == "stopped"


@pytest.mark.parametrize("how", ["stop", "interrupt"])
async def test_a_stop_through_another_process_holds_if_the_run_is_about_to_wait(
    open_analyst: OpenAnalyst, store: Driver, sent: Sent, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sees_no_stop(*_: object) -> None: ...

    monkeypatch.setattr(working.RunWorker, "_compare", sees_no_stop)
    await define(store)
    model = Gated([call("send_mail", to="ada")])
    first, second = await open_analyst(model), await open_analyst([finish("As you like.")])
    handle = await first.ask("Mail ada.", agent="clerk", thread_id="t", user_id=USER)
    await model.asked.wait()
    if how == "stop":
        await second.runs.stop("t", user_id=USER)
    else:
        await second.runs.submit("Do not!", when_busy="interrupt", thread_id="t", user_id=USER)
    (model.metadata or {})["gate"].set()
    told = await handle.wait()
    assert (told.type, told.data["reason"]) == ("paused", "stopped")
    async with store.reading() as tx:
        [asked] = await wait_list.of_run(tx, "t", handle.run.id)
        events = await run_events.events_after(tx, "t", handle.run.id, 0)
    assert (asked.decision, asked.by) == ("superseded", USER)
    assert "waiting" not in [event.type for event in events]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    if how == "stop":
        await second.runs.resume("t", user_id=USER)
    else:
        second.claims.start()

    async def is_answered() -> bool:
        return (await last_run(store)).status == "finished"

    await until(is_answered)
    async with store.reading() as tx:
        results = [json.loads(each.text) for each in await log.entries_between(tx, "t", 1, 99) if each.role == "tool"]
    assert [each["error"]["type"] for each in results] == ["called_off"]
    assert sent == []


async def test_a_dead_workers_run_is_stopped_at_once(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    first = await open_analyst(Gated([]))
    run = await left_by_a_dead_process(first, shop)
    second = await open_analyst([])
    await second.runs.stop("t", user_id=USER)
    last = await last_run(store)
    assert (last.id, last.status, last.outcome["reason"]) == (run.id, "paused", "stopped")
    second.claims.start()
    async with store.reading() as tx:
        assert (await leases.look_for_work(tx)).runs is False, "nobody goes on with it"


async def test_a_run_that_was_stopped_before_its_worker_died_is_not_gone_on_with(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    first, model = await open_analyst(Gated([])), ScriptedChatModel([])
    await left_by_a_dead_process(first, shop)
    async with store.writing() as tx:
        await log.position(tx, "t")
        await runs.request_stop(tx, await last_run(store), by=USER)
    second = await open_analyst(model)
    second.claims.start()
    last = await ended(store)
    assert (last.status, last.outcome["reason"]) == ("paused", "stopped")
    assert model.calls == []


async def test_a_thread_is_deleted_under_its_run_through_another_process(
    open_analyst: OpenAnalyst, store: Driver, shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = Gated([])
    first, second = await open_analyst(model), await open_analyst([])
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    await second.threads.delete("t", user_id=USER)
    first.worker.wake()
    with pytest.raises(LeaseLost):
        await handle.wait()
    async with store.reading() as tx:
        assert await listing.list_threads(tx, user_id=USER) == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_worker_that_cannot_renew_gives_its_runs_up_and_writes_no_end(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Gated([])
    first = await open_analyst(model)
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    before = await first.worker.id()
    monkeypatch.setattr(working, "LOST_SECONDS", -1.0)
    first.worker.wake()
    with pytest.raises(LeaseLost):
        await handle.wait()
    monkeypatch.undo()
    assert (await last_run(store)).status == "running"
    assert await first.worker.id() != before


async def test_a_worker_that_was_taken_for_dead_goes_on_as_another(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    model = Gated([finish("Three.")])
    first = await open_analyst(model)
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    before = await first.worker.id()
    async with store.writing() as tx:
        await leases.remove(tx, before)
    first.worker.wake()
    with pytest.raises(LeaseLost):
        await handle.wait()
    first.claims.start()
    (model.metadata or {})["gate"].set()
    last = await ended(store)
    assert (last.id, last.status) == (handle.run.id, "finished")
    assert await first.worker.id() != before
    assert await crashes(store) == 0, "no process died"


async def test_a_worker_does_not_claim_its_own_live_run_whatever_its_row_says(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is gone, and its claims look before its renewal does."""
    model = Gated([finish("Three.")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    own = await analyst.worker.id()
    async with store.writing() as tx:
        await leases.remove(tx, own)
    assert await analyst.claims._claim_runs(own, {}) == []
    async with store.reading() as tx:
        assert (await leases.look_for_work(tx)).runs, "others may"
    assert await crashes(store) == 0
    with pytest.raises(LeaseLost):
        await handle.wait()


async def test_runs_that_were_given_up_did_not_crash(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Gated([])
    first = await open_analyst(model)
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    before = await first.worker.id()
    monkeypatch.setattr(working, "LOST_SECONDS", -1.0)
    monkeypatch.setattr(working, "_STOOD_STILL_SECONDS", 3600.0)
    first.worker.wake()
    with pytest.raises(LeaseLost):
        await handle.wait()
    monkeypatch.undo()
    own = await first.worker.id()
    claimed: list[Any] = []

    async def is_free() -> bool:  # the old row goes behind the error
        async with store.writing() as tx:
            claimed.extend(await leases.claim(tx, own, limit=9))
        return bool(claimed)

    await until(is_free)
    async with store.reading() as tx:
        assert before not in await leases.workers(tx)
    [claimed_run] = claimed
    assert (claimed_run.lease.run_id, claimed_run.crashes) == (handle.run.id, 0)


async def test_a_worker_that_wakes_takes_back_the_crash_of_a_run_that_was_taken_over(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    model = Gated([])
    first = await open_analyst(model)
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    async with store.writing() as tx:
        await leases.remove(tx, await first.worker.id())
        await leases.register(tx, "another")
        [claimed] = await leases.claim(tx, "another", limit=9)
    assert claimed.crashes == 1
    first.worker.wake()
    with pytest.raises(LeaseLost):
        await handle.wait()

    async def is_forgiven() -> bool:
        return await crashes(store) == 0

    await until(is_forgiven)
    async with store.reading() as tx:
        assert [each.lease for each in await leases.held(tx, "another")] == [claimed.lease]


async def test_a_worker_that_stood_still_with_its_machine_goes_on_with_its_runs(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is long up when it wakes. Nobody took it for dead: its row is there."""
    model = Gated([finish("Three.")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    own = await analyst.worker.id()
    analyst.worker._lost_at -= 3600
    analyst.worker._give_up()
    async with store.reading() as tx:
        before = (await leases.workers(tx))[own]

    async def is_renewed() -> bool:
        async with store.reading() as tx:
            return (await leases.workers(tx))[own] > before

    await until(is_renewed)
    (model.metadata or {})["gate"].set()
    assert (await handle.wait()).data["answer"] == "Three."
    assert await analyst.worker.id() == own


@pytest.mark.parametrize("lives", [True, False])
async def test_a_command_waits_for_a_sign_of_life_of_who_has_the_thread(
    open_analyst: OpenAnalyst, store: Driver, shop: str, lives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process elsewhere nothing is known but its row."""
    elsewhere = "another-host:boot:1/12/x"
    async with store.writing() as tx:
        await leases.register(tx, elsewhere)
        await log.create_thread(tx, "t", user_id=USER)
        await runs.begin(tx, "t", _plan("r1"), owner=elsewhere, alive=lambda _: True)
    analyst = await open_analyst([finish("Three.")])
    if not lives:
        monkeypatch.setattr(worker, "SILENT_SECONDS", 0.0)
    asking = asyncio.ensure_future(analyst.ask("How many?", thread_id="t", source=shop, user_id=USER))
    while lives and not asking.done():
        async with store.writing() as tx:
            assert await leases.renew(tx, elsewhere)
        await asyncio.wait({asking}, timeout=0.05)
    if lives:
        with pytest.raises(RunInProgress):
            await asking
    else:
        assert (await (await asking).wait()).data["answer"] == "Three."


async def test_a_run_that_nobody_executes_in_its_worker_is_given_back(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the answer of the commit that began it was lost. Another one is deleted in that moment."""
    analyst = await open_analyst([finish("Three.")])
    give_back, refused = runs.give_back, ["t"]

    async def once_gone(tx: Any, lease: Any, **how: Any) -> None:
        if refused:
            raise ThreadNotFound(thread=refused.pop())
        await give_back(tx, lease, **how)

    monkeypatch.setattr(runs, "give_back", once_gone)
    owner = await analyst.worker.id()
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id=USER)
        await runs.begin(tx, "t", _plan("r1"), owner=owner, alive=lambda _: True)

    async def is_free() -> bool:
        analyst.worker.wake()
        async with store.reading() as tx:
            return (await leases.look_for_work(tx)).runs

    await until(is_free)
    assert not refused


async def test_a_run_that_lost_its_store_goes_on_when_the_store_is_back(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyst, drive = await open_analyst([finish("Three.")]), execute.drive

    async def lost(*_: Any) -> None:
        monkeypatch.setattr(execute, "drive", drive)
        raise StoreDisconnected(reason="the server was restarted.")

    monkeypatch.setattr(execute, "drive", lost)
    handle = await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)
    with pytest.raises(StoreDisconnected):
        await handle.wait()
    assert (await last_run(store)).status == "running"
    analyst.claims.start()

    async def is_finished() -> bool:
        analyst.worker.wake()
        return (await last_run(store)).status == "finished"

    await until(is_finished)


async def test_a_worker_leaves_no_row_behind(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    analyst = await open_analyst([finish("Three.")])
    await (await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)).wait()
    async with store.reading() as tx:
        assert [*(await leases.look_for_work(tx)).workers] == [await analyst.worker.id()]
    await analyst.close()
    async with store.reading() as tx:
        assert (await leases.look_for_work(tx))[:2] == ({}, False)


def _plan(run_id: str) -> runs.NewRun:
    return runs.NewRun(run_id, "How many?", None, "test:scripted", "auto", 5)


async def test_a_draining_worker_ends_its_step_and_another_goes_on(
    open_analyst: OpenAnalyst, store: Driver, shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = Gated([COUNT])
    first = await open_analyst(model)
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    draining = asyncio.ensure_future(first.drain(60, asyncio.Event()))
    await asyncio.sleep(0)
    assert not draining.done(), "it waits for the reply"
    (model.metadata or {})["gate"].set()
    await draining
    with pytest.raises(LeaseLost):
        await handle.wait()
    async with store.reading() as tx:
        steps = await runs.steps_from(tx, "t", 0)
        assert (await leases.look_for_work(tx)).runs, "anybody may go on with it"
    assert [(step.kind, step.status) for step in steps] == [("model", "done")]
    asked = await first.ask("And?", thread_id="t2", source=shop, user_id=USER)
    await asyncio.wait({asked.task})
    assert (await last_run(store, "t2")).status == "running", "it was taken, and left to others"
    second = await open_analyst(ScriptedChatModel([finish("Three.")] * 2))
    second.claims.start()
    last = await ended(store)
    assert (last.id, last.status) == (handle.run.id, "finished")
    assert (await ended(store, "t2")).status == "finished"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_step_that_takes_too_long_is_broken_off_and_did_not_kill(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    model = Gated([])
    first, hurry = await open_analyst(model), asyncio.Event()
    handle = await first.ask("How many?", thread_id="t", source=shop, user_id=USER)
    await model.asked.wait()
    hurry.set()
    await first.drain(60, hurry)
    with pytest.raises(LeaseLost):
        await handle.wait()
    assert (await last_run(store)).status == "running"
    found: list[leases.ClaimedRun] = []

    async def is_claimed() -> bool:  # what works behind a run may lock its thread for a moment
        async with store.writing() as tx:
            found.extend(await leases.claim(tx, "next", limit=9))
        return bool(found)

    await until(is_claimed)
    assert (found[0].lease.run_id, found[0].crashes) == (handle.run.id, 0)
