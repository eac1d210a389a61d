"""Watchers of runs: fed from memory where the run is executed, by one look a process where it is not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

import pytest
from tests.contract.base import registered

from longthread.model.run import Event
from longthread.runs import hub as hubs
from longthread.runs.events import EventStream, Teller
from longthread.runs.hub import Hub, RunWatch
from longthread.runs.worker import new_worker
from longthread.store import leases, log, run_events, runs
from longthread.store.driver import Driver, Transaction

pytestmark = pytest.mark.one_backend

PLACE = ("t", "r1")


class Counted:
    """A store that counts its transactions."""

    def __init__(self, store: Driver) -> None:
        self._store = store
        self.count: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        self.count["reading"] += 1
        async with self._store.reading() as tx:
            yield tx


async def begun(store: Driver, hub: Hub, *, owner: str | None = None) -> EventStream:
    """The stream of a run that has told its start."""
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        plan = runs.NewRun("r1", "q?", "s", "m", "auto", 5)
        owner = owner or new_worker()
        await registered(tx, owner)
        lease = await runs.begin(tx, "t", plan, owner=owner, alive=lambda _: True, tells=True)
    stream = EventStream(store, lease, hub, Teller(store), last=1)
    async with store.reading() as tx:
        stream.open(await runs.run_of_user(tx, *PLACE, user_id="u"))
    return stream


async def read(watch: RunWatch, count: int) -> list[Event]:
    """The next events, this many."""
    found: list[Event] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await watch.read() or pytest.fail(f"the watch ended after {found}")
    return found


def numbers(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events]


async def test_watchers_of_a_run_here_are_fed_without_a_query(store: Driver) -> None:
    counted = Counted(store)
    hub = Hub(counted)
    stream = await begun(store, hub)
    with hub.watch(*PLACE) as first, hub.watch(*PLACE, after=1) as other:
        joined = counted.count["reading"]
        assert numbers(await read(first, 1)) == [1]
        for number in range(2, 6):
            await stream.publish("warning", message=f"m{number}")
            for watch in (first, other):
                [event] = await read(watch, 1)
                assert (event.seq, event.data) == (number, {"message": f"m{number}"})
        for watch in (first, other):
            assert await watch.read(patience=0.01) is None
        assert counted.count["reading"] == joined, "a watcher that waits costs no query"
        await stream.end("finished", {"answer": "x"})
        for watch in (first, other):
            assert [event.type for event in await read(watch, 1)] == ["finished"]
            assert await watch.read() == []
    assert counted.count["reading"] == joined


@pytest.mark.parametrize("told", [0, 2, 40])
async def test_a_run_keeps_its_first_events_in_memory_until_it_is_watched(store: Driver, told: int) -> None:
    counted = Counted(store)
    hub = Hub(counted)
    stream = await begun(store, hub)
    for _ in range(told):
        await stream.publish("warning", message="m")
    for reads in (int(told > hubs.FIRST_EVENTS), 1):
        before = counted.count["reading"]
        with hub.watch(*PLACE) as watch:
            assert numbers(await read(watch, told + 1)) == list(range(1, told + 2))
        assert counted.count["reading"] - before == reads
    await stream.end("finished", {"answer": "x"})
    stream.close()
    with hub.watch(*PLACE) as watch:
        assert [event.type for event in await read(watch, told + 2)][-1] == "finished"


async def test_who_comes_later_does_not_see_text_that_was_withdrawn(store: Driver) -> None:
    hub = Hub(store)
    stream = await begun(store, hub)
    stream.publish_text("m1", "Secret plan. ")
    async with stream.writing() as (tx, _):
        await stream.flush_with(tx)
    await stream.withdraw_text("m1")
    await stream.publish("warning", message="m")
    with hub.watch(*PLACE) as watch:
        assert [event.type for event in await read(watch, 2)] == ["started", "warning"]


async def test_a_run_that_another_process_began_is_read_from_the_store(store: Driver) -> None:
    first = Hub(store)
    stream = await begun(store, first)
    await stream.publish("warning", message="m")
    async with store.reading() as tx:
        run = await runs.run_of_user(tx, *PLACE, user_id="u")
    hub = Hub(store)
    # In a copy of a store, a take-over is the first attempt.
    EventStream(store, stream.lease, hub, Teller(store), last=2).open(run)
    with hub.watch(*PLACE) as watch:
        assert numbers(await read(watch, 2)) == [1, 2]


async def test_a_watch_from_behind_the_end_ends(store: Driver) -> None:
    hub = Hub(store)
    stream = await begun(store, hub)
    with hub.watch(*PLACE, after=99) as watch:
        await stream.end("finished", {"answer": "x"})
        stream.close()
        async with asyncio.timeout(20):
            assert await watch.read() == []


async def test_the_end_of_a_run_is_told_as_it_is_stored(store: Driver) -> None:
    hub = Hub(store)
    stream = await begun(store, hub)
    outcome = {"answer": "", "n": [1, None, 1.5], "queries": {"深": "q1"}, "reason": None}
    with hub.watch(*PLACE, after=1) as watch:
        await stream.end("failed", outcome)
        [told] = await read(watch, 1)
    async with store.reading() as tx:
        assert await run_events.events_after(tx, *PLACE, 1) == [told]


async def test_a_watcher_that_is_far_behind_reads_from_the_store(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "KEPT_EVENTS", 3)
    counted = Counted(store)
    hub = Hub(counted)
    stream = await begun(store, hub)
    with hub.watch(*PLACE) as slow, hub.watch(*PLACE) as quick:
        for watch in (slow, quick):
            await read(watch, 1)
        before = counted.count["reading"]
        for number in range(2, 12):
            await stream.publish("warning", message="m")
            assert numbers(await read(quick, 1)) == [number]
        assert counted.count["reading"] == before
        assert numbers(await read(slow, 10)) == list(range(2, 12))
        assert counted.count["reading"] == before + 1
        await stream.publish("warning", message="m")
        assert numbers(await read(slow, 1)) == [12]
        assert counted.count["reading"] == before + 1


async def test_a_run_elsewhere_is_read_once_for_all_its_watchers(
    store: Driver, second: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "LOOK_SECONDS", 0.01)
    stream = await begun(store, Hub(store))
    counted = Counted(second)
    hub, reads = Hub(counted), 0
    events_after = run_events.events_after

    async def count_reads(*given: Any, **options: Any) -> list[Event]:
        nonlocal reads
        reads += 1
        return await events_after(*given, **options)

    monkeypatch.setattr(hubs.run_events, "events_after", count_reads)
    with hub.watch(*PLACE) as first, hub.watch(*PLACE) as other, hub.watch(*PLACE) as third:
        for number in range(1, 4):
            for watch in (first, other, third):
                assert numbers(await read(watch, 1)) == [number]
            await stream.publish("warning", message="m")
        await stream.end("finished", {"answer": "x"})
        for watch in (first, other, third):
            assert [event.seq for event in await read(watch, 2)] == [4, 5]
            assert await watch.read() == []
    assert reads <= 5
    await hub.close()


@pytest.mark.parametrize("gone", ["its process died", "its thread was deleted"])
async def test_a_run_that_nobody_goes_on_with_ends_its_watches(store: Driver, second: Driver, gone: str) -> None:
    stream = await begun(store, Hub(store), owner="elsewhere/1/x")
    hub = Hub(second)
    with hub.watch(*PLACE) as watch:
        assert numbers(await read(watch, 1)) == [1]
        async with store.writing() as tx:
            if gone == "its process died":
                await leases.remove(tx, "elsewhere/1/x")
            else:
                await log.delete_thread(tx, "t", user_id="u")
        async with asyncio.timeout(20):
            assert await watch.read() == []
        assert not watch.halts
    await hub.close()
    del stream


async def test_watchers_stay_where_a_worker_goes_on_with_the_run(
    store: Driver, second: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(hubs, "LOOK_ANYWAY_SECONDS", 0.01)
    there, here = Hub(store), Hub(second)
    await begun(store, there, owner="elsewhere/1/x")
    here.expect_claims()
    looked = asyncio.Event()
    states = hubs.run_states

    async def look(*given: Any, **options: Any) -> Any:
        found = await states(*given, **options)
        if found["r1"].status == "interrupted":
            looked.set()
        return found

    monkeypatch.setattr(hubs, "run_states", look)
    with here.watch(*PLACE) as watch:
        assert numbers(await read(watch, 1)) == [1]
        async with second.writing() as tx:
            await leases.remove(tx, "elsewhere/1/x")
        async with asyncio.timeout(20):
            await looked.wait()
        assert await watch.read(patience=0.05) is None
        async with second.writing() as tx:
            await tx.run("drop_lease", thread_id="t", id="r1", owner="elsewhere/1/x", attempt=1, claimable=0)
        async with asyncio.timeout(20):
            assert await watch.read() == []
    await here.close()


async def test_a_run_that_changes_its_process_is_read_without_a_gap(store: Driver, second: Driver) -> None:
    there, here = Hub(store), Hub(second)
    stream = await begun(store, there, owner="elsewhere/1/x")
    with here.watch(*PLACE) as watch:
        assert numbers(await read(watch, 1)) == [1]
        await stream.publish("warning", message="there")
        async with second.writing() as tx:
            run = await runs.find_run(tx, *PLACE)
            assert run is not None
            another = new_worker()
            await registered(tx, another)
            lease = await runs.take_over(tx, run, owner=another, alive=lambda _: False)
            last = await run_events.last_event(tx, *PLACE)
        here.enter(*PLACE)
        taken = EventStream(second, lease, here, Teller(second), last=last)
        await taken.publish("warning", message="here")
        told = await read(watch, 2)
        assert [(event.seq, event.data["message"]) for event in told] == [(2, "there"), (3, "here")]
    await here.close()


async def test_a_watch_of_a_run_that_waits_ends(store: Driver) -> None:
    hub = Hub(store)
    stream = await begun(store, hub)
    with hub.watch(*PLACE) as watch:
        await stream.wait([], AsyncMock())
        assert [event.type for event in await read(watch, 2)] == ["started", "waiting"]
        assert await watch.read() == []
        assert watch.halts


async def test_a_stream_tells_what_it_does_not_know_to_be_stored_by_reading_it(store: Driver) -> None:
    hub = Hub(store)
    stream = await begun(store, hub)
    with hub.watch(*PLACE) as watch:
        await read(watch, 1)
        with pytest.raises(ConnectionError):
            async with stream.writing():
                raise ConnectionError
        await stream.publish("warning", message="m")
        assert numbers(await read(watch, 1)) == [2]
