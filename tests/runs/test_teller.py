"""The teller: one transaction for the text of many runs; nothing is told before it is stored, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.contract.base import registered

from longthread.errors import CommitUnknown, StoreError, StoreFull
from longthread.model.run import Event
from longthread.runs import events as tellers
from longthread.runs.events import EventStream, Teller
from longthread.runs.hub import Hub, RunWatch
from longthread.runs.worker import new_worker
from longthread.store import log, run_events, runs
from longthread.store.driver import Driver, Transaction

pytestmark = pytest.mark.one_backend


class Written:
    """A store whose write transactions are counted; the next ones fail as `failing` says."""

    def __init__(self, store: Driver) -> None:
        self._store = store
        self.count = 0
        self.failing: list[StoreError] = []
        self.failed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        self.count += 1
        error = self.failing.pop(0) if self.failing else None
        async with self._store.writing() as tx:
            yield tx
            if error is not None and not isinstance(error, CommitUnknown):
                self.failed.set()
                raise error
        if error is not None:
            self.failed.set()
            raise error


class Told:
    """Runs that tell their text, on a store that is looked at."""

    def __init__(self, store: Driver) -> None:
        self.store = Written(store)
        self.hub = Hub(self.store)
        self.teller = Teller(self.store)

    async def run(self, name: str, owner: str | None = None) -> EventStream:
        async with self.store.writing() as tx:
            await log.create_thread(tx, name, user_id="u")
            plan = runs.NewRun(f"r-{name}", "q?", "s", "m", "auto", 5)
            await registered(tx, owner := owner or new_worker())
            lease = await runs.begin(tx, name, plan, owner=owner, alive=lambda _: True, tells=True)
        stream = EventStream(self.store, lease, self.hub, self.teller, last=1)
        async with self.store.reading() as tx:
            stream.open(await runs.run_of_user(tx, lease.thread_id, lease.run_id, user_id="u"))
        return stream

    def watch(self, name: str) -> RunWatch:
        return self.hub.watch(name, f"r-{name}", after=1)

    async def stored(self, name: str) -> list[Event]:
        async with self.store.reading() as tx:
            return await run_events.events_after(tx, name, f"r-{name}", 1)


@pytest.fixture
async def told(store: Driver, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Told]:
    monkeypatch.setattr(tellers, "TICK_SECONDS", 0.0)
    told = Told(store)
    yield told
    await told.teller.close()
    await told.hub.close()


async def text_of(watch: RunWatch, length: int) -> str:
    """The next text, of this length."""
    text = ""
    async with asyncio.timeout(20):
        while len(text) < length:
            events = await watch.read() or pytest.fail("the watch ended")
            text += "".join(event.data["delta"] for event in events)
    return text


async def test_the_text_of_all_runs_is_one_transaction(told: Told) -> None:
    names = [f"t{n}" for n in range(5)]
    streams = [await told.run(name) for name in names]
    before = told.store.count
    for _ in range(3):
        for stream in streams:
            stream.publish_text("m", "ab ")
    for name in names:
        with told.watch(name) as watch:
            assert await text_of(watch, 9) == "ab ab ab "
        assert len(await told.stored(name)) == 1, "pieces in quick succession are one event"
    assert told.store.count == before + 1


async def test_a_run_that_lost_its_lease_is_left_out(told: Told) -> None:
    lost, other = await told.run("t1"), await told.run("t2")
    async with told.store.writing() as tx:
        await runs.give_back(tx, lost.lease)
    for stream in (lost, other):
        stream.publish_text("m", "text")
    with told.watch("t2") as watch:
        assert await text_of(watch, 4) == "text"
    assert await told.stored("t1") == []
    assert lost.has_text
    lost.close()
    assert not lost.has_text


@pytest.mark.parametrize("error", [StoreFull(reason="the disk is full."), CommitUnknown(reason="it was cut.")])
async def test_text_that_could_not_be_stored_is_stored_later_and_told_once(told: Told, error: StoreError) -> None:
    stream = await told.run("t1")
    told.store.failing = [error, error]
    with told.watch("t1") as watch:
        assert await watch.read(patience=0) is None
        stream.publish_text("m", "one ")
        async with asyncio.timeout(20):
            await told.store.failed.wait()
        if not isinstance(error, CommitUnknown):
            assert await watch.read(patience=0) is None, "it is not told before it is stored"
        stream.publish_text("m", "two")
        assert await text_of(watch, 7) == "one two"
    assert [(e.seq, e.data["delta"]) for e in await told.stored("t1")] == [(2, "one "), (3, "two")]


async def test_a_run_takes_its_text_along(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tellers, "TICK_SECONDS", 3600.0)
    stream = await told.run("t1")
    with told.watch("t1") as watch:
        assert await watch.read(patience=0) is None
        stream.publish_text("m1", "first")
        stream.publish_text("m2", "second")
        await stream.publish("warning", message="x")
        assert [e.type for e in await watch.read() or ()] == ["text", "text", "warning"]
        stream.publish_text("m2", " third")
        await stream.end("paused", {"reason": "stopped"})
        async with asyncio.timeout(20):
            seen = [each for _ in range(2) for each in await watch.read() or ()]
    assert [e.type for e in seen] == ["text", "paused"]
    assert [e.seq for e in await told.stored("t1")] == [2, 3, 4, 5, 6]


async def test_withdrawn_text_is_not_told_later(told: Told) -> None:
    stream = await told.run("t1")
    stream.publish_text("m", "a thought")
    with told.watch("t1") as watch:
        assert await text_of(watch, 9) == "a thought"
        stream.publish_text("m", ", more")
        await stream.withdraw_text("m")
        stream.publish_text("m", "the answer")
        assert await text_of(watch, 10) == "the answer"
    [answer] = await told.stored("t1")
    assert (answer.seq, answer.data["delta"]) == (3, "the answer")
