"""Signals between processes: heard by all, in order, also after the connection was cut; watchers live on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psycopg
import pytest
from tests.runs.test_hub import PLACE, begun, numbers, read

from longthread.runs import hub as hubs
from longthread.runs.hub import Hub
from longthread.store.backends import postgres_signals
from longthread.store.driver import Driver, Signals

pytestmark = pytest.mark.postgres


@pytest.fixture
def backend() -> str:
    return "postgres"


@dataclass
class Listener:
    """What a process has heard."""

    signals: Signals
    words: list[str] = field(default_factory=list)
    states: list[bool] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def heard(self, words: Sequence[str]) -> None:
        self.words += words
        self._news.set()

    def connected(self, connected: bool) -> None:
        self.states.append(connected)
        self._news.set()

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not fact():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def listening(store: Driver) -> AsyncIterator[Listener]:
    assert store.signals is not None
    listener = Listener(store.signals)
    task = asyncio.create_task(store.signals.listen(listener.heard, listener.connected))
    try:
        yield listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_every_listener_hears_all_words_in_order(store: Driver, second: Driver) -> None:
    words = [f"{n}{'é' * 40}" for n in range(500)]  # more than one notification holds
    async with listening(store) as one, listening(second) as other:
        for each in (one, other):
            await each.until(lambda each=each: each.states == [True])
        await one.signals.send(words)
        await one.signals.send(["last"])
        for each in (one, other):
            await each.until(lambda each=each: "last" in each.words)
            own = [word for word in each.words if word in {*words, "last"}]
            assert own == [*words, "last"]


async def test_a_connection_that_was_cut_is_opened_again(
    store: Driver, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_signals, "RECONNECT_SECONDS", 0.01)
    async with listening(store) as listener:
        await listener.until(lambda: listener.states == [True])
        with psycopg.connect(store_address, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        await listener.until(lambda: listener.states == [True, False, True])
        await listener.signals.send(["again"])
        await listener.until(lambda: "again" in listener.words)


async def test_workers_are_woken_by_other_processes(store: Driver, second: Driver) -> None:
    woken = asyncio.Event()
    there, here = Hub(store), Hub(second, wake=woken.set)
    changes = here.list_changes("u")
    here.expect_claims()
    async with asyncio.timeout(30):
        while not here.hears:
            await changes.bell.wait()
        there.wake_workers()
        await woken.wait()
    await there.close()
    await here.close()


async def test_watchers_of_runs_elsewhere_live_on_signals(
    store: Driver, second: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "LOOK_ANYWAY_SECONDS", 3600.0)
    there, here = Hub(store), Hub(second)
    stream = await begun(store, there)
    looks: list[bool] = []
    look_at = Hub._look_at

    async def note(self: Hub, places: Sequence[tuple[str, str]]) -> None:
        await look_at(self, places)
        looks.append(self._connected)
        looked.set()

    looked = asyncio.Event()
    monkeypatch.setattr(Hub, "_look_at", note)
    with here.watch(*PLACE) as watch:
        assert numbers(await read(watch, 1)) == [1]
        async with asyncio.timeout(30):
            while True not in looks:  # what came before it listened
                looked.clear()
                await looked.wait()
        before = len(looks)
        for number in range(2, 8):
            await stream.publish("warning", message="m")
            assert numbers(await read(watch, 1)) == [number]
        assert len(looks) <= before + 1  # one was due when it began to listen
    await there.close()
    await here.close()
