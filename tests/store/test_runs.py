"""Leases: one writer a thread, taken over from the dead, lost by those who were taken for dead."""

from __future__ import annotations

import pytest

from longthread.errors import LeaseLost, RunInProgress, StoreConflict
from longthread.model.memory import ANALYST
from longthread.model.run import AgentRun, Event, Run, RunStatus
from longthread.store import leases, log, run_events, runs
from longthread.store.driver import Driver
from longthread.store.run_rows import agent_values, asker_values
from longthread.store.runs import Lease, NewRun


def alive(owner: str) -> bool:
    return True


def dead(owner: str) -> bool:
    return False


def plan(run_id: str) -> NewRun:
    return NewRun(run_id, "question", "source", "model", "auto", 5)


@pytest.fixture
async def lease(store: Driver) -> Lease:
    """The lease of run `r1` on thread `t`, held by `first`."""
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        for worker in ("first", "second"):
            await leases.register(tx, worker)
        return await runs.begin(tx, "t", plan("r1"), owner="first", alive=alive)


async def run_of(store: Driver, run_id: str = "r1") -> Run:
    async with store.reading() as tx:
        run = await runs.find_run(tx, "t", run_id)
    assert run is not None
    return run


async def taken_over(store: Driver) -> Lease:
    run = await run_of(store)
    async with store.writing() as tx:
        return await runs.take_over(tx, run, owner="second", alive=dead)


async def test_a_second_run_is_refused_while_the_first_is_held(store: Driver, lease: Lease) -> None:
    with pytest.raises(RunInProgress, match="r1"):
        async with store.writing() as tx:
            await runs.begin(tx, "t", plan("r2"), owner="second", alive=alive)
    with pytest.raises(RunInProgress, match="r1"):
        async with store.writing() as tx:
            await runs.take_over(tx, await run_of(store), owner="second", alive=alive)
    assert (await run_of(store)).status == "running"
    async with store.writing() as tx:
        assert await runs.find_run(tx, "t", "r2") is None
        await runs.check(tx, lease)


async def test_another_thread_is_not_held(store: Driver, lease: Lease) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "other", user_id="u")
        await runs.check(tx, await runs.begin(tx, "other", plan("r1"), owner="first", alive=alive))


async def test_a_run_of_a_thread_that_another_run_holds_is_not_taken_over(store: Driver, lease: Lease) -> None:
    async with store.writing() as tx:
        await runs.end(tx, lease, "paused", {})
        await runs.begin(tx, "t", plan("r2"), owner="second", alive=alive)
    for owner_of_r2 in (alive, dead):
        with pytest.raises(RunInProgress, match="r2"):
            async with store.writing() as tx:
                await runs.take_over(tx, await run_of(store), owner="third", alive=owner_of_r2)


async def test_a_former_owner_writes_nothing(store: Driver, lease: Lease) -> None:
    async with store.writing() as tx:
        step = await runs.start_step(tx, lease, "model")
    second = await taken_over(store)
    async with store.writing() as tx:
        for attempt in (
            runs.check(tx, lease),
            runs.end(tx, lease, "finished", {"answer": "stale"}),
            runs.start_step(tx, lease, "tool", action="stale"),
            runs.finish_step(tx, lease, step, "done", elapsed_ms=1, thought="stale"),
        ):
            with pytest.raises(LeaseLost, match="r1"):
                await attempt
    run = await run_of(store)
    assert (run.status, run.outcome) == ("running", {})
    async with store.writing() as tx:
        [only] = await runs.steps_from(tx, "t", 0)
        assert (only.status, only.thought) == ("running", "")
        await runs.end(tx, second, "finished", {"answer": "x"})
    assert (await run_of(store)).outcome == {"answer": "x"}


@pytest.mark.parametrize("status", ["finished", "paused", "failed"])
async def test_an_ended_run_has_no_lease(store: Driver, lease: Lease, status: RunStatus) -> None:
    async with store.writing() as tx:
        await runs.end(tx, lease, status, {"reason": "x"})
        for attempt in (
            runs.check(tx, lease),
            runs.end(tx, lease, "finished", {}),
            runs.start_step(tx, lease, "model"),
        ):
            with pytest.raises(LeaseLost):
                await attempt
    run = await run_of(store)
    assert (run.status, run.outcome) == (status, {"reason": "x"})
    assert run.ended_at is not None


async def test_the_lease_of_a_deleted_thread_is_lost(store: Driver, lease: Lease) -> None:
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
        for attempt in (runs.check(tx, lease), runs.start_step(tx, lease, "model")):
            with pytest.raises(LeaseLost):
                await attempt


async def test_a_new_run_ends_the_one_whose_owner_died_and_says_so(store: Driver, lease: Lease) -> None:
    event = Event("t", "r1", 1, "started", {}, (await run_of(store)).started_at)
    async with store.writing() as tx:
        await run_events.append_events(tx, [event])
        second = await runs.begin(tx, "t", plan("r2"), owner="second", alive=dead)
        await runs.check(tx, second)
        with pytest.raises(LeaseLost):
            await runs.check(tx, lease)
        events = await run_events.events_after(tx, "t", "r1", 0)
    interrupted = {"reason": "interrupted"}
    assert [(e.seq, e.type, e.data) for e in events] == [(1, "started", {}), (2, "paused", interrupted)]
    run = await run_of(store)
    assert (run.status, run.outcome) == ("paused", interrupted)
    assert run.ended_at is not None


async def test_the_database_itself_allows_one_live_run_a_thread(store: Driver, lease: Lease) -> None:
    row = {
        "thread_id": "t",
        "question": "q",
        "source": None,
        "model": "m",
        "protocol": "auto",
        "max_steps": 1,
        "continues": None,
        "first_step": 0,
        "owner": "second",
        "told": "[]",
        "last_event": 0,
        "question_seq": None,
        **agent_values(None),
        **asker_values(None),
        "now": log.now(),
    }
    with pytest.raises(StoreConflict, match=r"runs\.thread_id|live_run"):
        async with store.writing() as tx:
            await tx.run("insert_run", id="r2", **row)
    async with store.writing() as tx:
        await runs.end(tx, lease, "finished", {})
        await tx.run("insert_run", id="r2", **row)
    assert (await run_of(store, "r2")).status == "running"


async def test_steps_are_counted_over_the_threads_runs(store: Driver, lease: Lease) -> None:
    async with store.writing() as tx:
        assert [await runs.start_step(tx, lease, "model"), await runs.start_step(tx, lease, "tool")] == [0, 1]
        await runs.end(tx, lease, "finished", {})
        second = await runs.begin(tx, "t", plan("r2"), owner="second", alive=alive)
        assert await runs.start_step(tx, second, "model") == 2
        assert [step.run_id for step in await runs.steps_from(tx, "t", 0)] == ["r1", "r1", "r2"]
    assert (await run_of(store, "r2")).first_step == 2


@pytest.mark.parametrize(
    "agent",
    [None, AgentRun(ANALYST, 1), AgentRun("a", 7, {"skill": {"s": 2}, "tool": {"t": 1, "u": 12}})],
    ids=["unknown", "analyst", "another"],
)
async def test_a_run_says_which_version_of_its_agent_it_executes(store: Driver, agent: AgentRun | None) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        plan = NewRun("r", "q", None, "m", "auto", 1, agent=agent)
        lease = await runs.begin(tx, "t", plan, owner="o", alive=lambda _: True)
    async with store.writing() as tx:
        live = await runs.find_run(tx, "t", "r")
        await runs.end(tx, lease, "finished", {})
        ended = await runs.last_run(tx, "t")
    assert live is not None
    assert ended is not None
    assert live.agent == ended.agent == agent
