"""Random histories of a thread whose runs are bundled: it reads, and is pruned, as one of which none ever was."""

from __future__ import annotations

import asyncio
import io
import itertools
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.exploring import explore
from tests.store.turns import at

from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.memory import Used
from longthread.store import bundling, log, memories
from longthread.store.bundling import bundle_all, bundle_some
from longthread.store.driver import Driver
from longthread.store.maintenance import retention
from longthread.store.maintenance.prune import Pruned, prune
from longthread.store.maintenance.retention import Policy, Retention
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.transfer.import_archive import Into, import_threads
from longthread.testing.contract.base import USER
from longthread.testing.contract.bundles import KINDS, exported, rows, run_id, seen, turn
from longthread.testing.contract.memories import kept
from longthread.testing.failpoints import Failpoints

_examples = itertools.count()
moments = st.one_of(st.none(), st.integers(0, 60))


class Stopped(Exception):
    """The process goes no further."""


class BundleMachine(RuleBasedStateMachine):
    """Runs are made, bundled and pruned in `store`; `other` gets the same thread with no bundle, to be pruned too."""

    def __init__(self, address: str, other: str) -> None:
        super().__init__()
        self.addresses = address, other
        self.example = next(_examples)
        self.numbers = itertools.count()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.store, self.other = self.runner.run(self._open())
        self.memories: list[str] = []

    async def _open(self) -> list[Driver]:
        return [await self.stack.enter_async_context(open_store(address)) for address in self.addresses]

    def teardown(self) -> None:
        for store in (self.store, self.other):
            self.runner.run(_forget(store))
        self.runner.run(self.stack.aclose())
        self.runner.close()

    @initialize()
    def begin(self) -> None:
        async def create() -> None:
            async with self.store.writing() as tx:
                await log.create_thread(tx, "t", user_id=USER)

        self.runner.run(create())

    @rule(count=st.integers(1, 9), kind=st.sampled_from(["", "", "plain", "silent", *KINDS]))
    def ask(self, count: int, kind: str) -> None:
        self.runner.run(self._ask(count, kind))

    async def _ask(self, count: int, kind: str) -> None:
        async with self.store.writing() as tx:
            for number in itertools.islice(self.numbers, count):
                _, before = await log.position(tx, "t")
                await turn(tx, number, kind=kind)
                place = {"at": at(number), "thread_id": "t"}
                runs = "UPDATE runs SET started_at = :at, ended_at = :at WHERE thread_id = :thread_id AND id = :id"
                await tx.run(Sql(runs), **place, id=run_id(number))
                entries = "UPDATE entries SET created_at = :at WHERE thread_id = :thread_id AND seq > :seq"
                await tx.run(Sql(entries), **place, seq=before)

    @rule(number=st.integers(0, 60))
    def use_a_memory(self, number: int) -> None:
        """A run that has a row used one: it is not bundled now."""
        self.runner.run(self._use(run_id(number)))

    async def _use(self, run: str) -> None:
        if run in (await rows(self.store))[0]:
            memory = await kept(self.store, f"{self.example} {run} {len(self.memories)}")
            self.memories.append(memory.id)
            async with self.store.writing() as tx:
                await memories.note_uses(tx, "t", run, [Used(memory.id, "given", "line")])

    @rule()
    def forget_a_memory(self) -> None:
        """And now it may be, also between those of a bundle."""

        async def forget() -> None:
            async with self.store.writing() as tx:
                await memories.delete(tx, self.memories.pop(0), user_id=USER)

        if self.memories:
            self.runner.run(forget())

    @rule(everything=st.booleans(), stop=st.one_of(st.none(), st.integers(1, 30)))
    def bundle(self, everything: bool, stop: int | None) -> None:
        """Runs are put together, or the process is killed meanwhile: nobody who reads can tell."""
        self.runner.run(self._bundle(everything, stop))

    async def _bundle(self, everything: bool, stop: int | None) -> None:
        before = await seen(self.store), await exported(self.store)
        left = itertools.count(1)

        def reach(boundary: str) -> None:
            if next(left) == stop:
                raise Stopped

        try:
            await (bundle_all if everything else bundle_some)(Failpoints(self.store, reach), "t")
        except Stopped:
            assert stop is not None
        assert (await seen(self.store), await exported(self.store)) == before
        _, there = await rows(self.store)
        assert all(last < first for (_, last, _), (first, *_) in itertools.pairwise(there))

    @rule(runs=moments, entries=moments, window=st.integers(1, 9))
    def retain(self, runs: int | None, entries: int | None, window: int) -> None:
        """Retention deletes the same, and tells the same, as where nothing is bundled."""
        policy = Policy(
            runs_before=at(runs) if runs is not None else None,
            entries_before=at(entries) if entries is not None else None,
            window=window,
        )
        self.runner.run(self._retain(policy))

    async def _retain(self, policy: Policy) -> None:
        await _forget(self.other)
        data = io.BytesIO(await exported(self.store))
        await import_threads(self.other, data, "x", Into(user_id=USER), lambda *_: None)
        assert (await rows(self.other))[1] == []
        would = await _pruned(self.store, policy, apply=False)
        told = await _pruned(self.store, policy, apply=True)
        assert would == told
        wanted = await _pruned(self.other, policy, apply=True)
        assert (told.rows, told.touched, told.threads) == (wanted.rows, wanted.touched, wanted.threads)
        assert await exported(self.store) == await exported(self.other)
        own = await seen(self.store)
        assert own | {"uses": None} == await seen(self.other) | {"uses": None}


async def _pruned(store: Driver, policy: Policy, *, apply: bool) -> Pruned:
    return await prune(store, Retention(policy, CheckpointKeeper(), lambda _: True), lambda *_: None, apply=apply)


async def _forget(store: Driver) -> None:
    async with store.writing() as tx:
        if await tx.fetch("select_owner", id="t"):
            await log.delete_thread(tx, "t", user_id=USER)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A few runs are many."""
    for name, value in (("BEHIND_A_TURN", 5), ("WHERE_PRUNED", 3), ("MOST", 8), ("_LOOKED_AT", 12)):
        monkeypatch.setattr(bundling, name, value)
    for name, value in (("RUNS_AT_ONCE", 4), ("ENTRIES_AT_ONCE", 9)):
        monkeypatch.setattr(retention, name, value)
    yield


def _machine(tmp_path: Path, url: str, *, on_server: bool) -> Any:
    addresses = [url, str(tmp_path / "c.db")] if on_server else [str(tmp_path / "c.db"), url]
    return lambda: BundleMachine(*addresses)


@pytest.mark.postgres
@pytest.mark.parametrize("on_server", [False, True])
def test_random_histories_are_those_without_bundles(tmp_path: Path, postgres_url: str, on_server: bool) -> None:
    explore(_machine(tmp_path, postgres_url, on_server=on_server), examples=8, steps=20)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("on_server", [False, True])
def test_many_long_random_histories_are_too(tmp_path: Path, postgres_url: str, on_server: bool) -> None:
    explore(_machine(tmp_path, postgres_url, on_server=on_server), examples=80, steps=40)
