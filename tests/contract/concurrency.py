"""Concurrent writers: each thread has one history, and nothing of it is lost, doubled or mixed."""

from __future__ import annotations

import asyncio

import pytest
from tests.contract.base import Contract, OpenStore, branch_ids, draft, extend, position, thread_with

from longthread.errors import ThreadConflict
from longthread.store import log
from longthread.store.driver import Driver


class ConcurrencyContract(Contract):
    """Tasks and drivers that write at the same time."""

    async def test_of_writers_that_saw_the_same_tip_one_wins(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await thread_with(first, "a")
            attempts = [
                extend(store, draft(f"{n}{k}"), expect=1) for n in range(5) for k, store in _pair(first, second)
            ]
            outcomes = await asyncio.gather(*attempts, return_exceptions=True)
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ThreadConflict"] * 9 + ["list"]
            assert await position(first) == (2, 2)

    async def test_writers_of_one_thread_take_turns_and_each_ones_entries_stay_together(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as first, open_store() as second:
            await thread_with(first)
            batches = [[f"{n}{k}-{m}" for m in range(3)] for n in range(10) for k in range(2)]
            stores = [first, second] * 10
            await asyncio.gather(
                *(extend(store, *map(draft, batch)) for store, batch in zip(stores, batches, strict=True))
            )
            ids = await branch_ids(second)
        written = [ids[n : n + 3] for n in range(0, len(ids), 3)]
        assert sorted(written) == sorted(batches)

    async def test_a_writer_that_repeats_on_conflict_loses_nothing(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await thread_with(first)

            async def write(store: Driver, name: str) -> None:
                for n in range(10):
                    await _until_it_fits(store, f"{name}-{n}")

            await asyncio.gather(*(write(store, f"{n}{k}") for n in range(3) for k, store in _pair(first, second)))
            ids = await branch_ids(first)
        assert len(ids) == len(set(ids)) == 60
        for name in {each.split("-")[0] for each in ids}:
            assert [each for each in ids if each.startswith(f"{name}-")] == [f"{name}-{n}" for n in range(10)]

    async def test_the_same_message_sent_by_many_at_once_is_one_entry(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await thread_with(first, "a")
            entries = await asyncio.gather(
                *(extend(store, draft("b"), draft("c")) for _ in range(5) for _, store in _pair(first, second))
            )
            assert all(each == entries[0] for each in entries)
            assert await branch_ids(second) == ["a", "b", "c"]

    async def test_a_thread_made_by_many_at_once_is_one_thread(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await asyncio.gather(
                *(thread_with(store, f"{n}{k}") for n in range(5) for k, store in _pair(first, second))
            )
            assert len(set(await branch_ids(first))) == 10

    @pytest.mark.parametrize("wait", [0, 0.002, 0.01, 0.05])
    async def test_writers_that_are_cancelled_while_they_wait_for_another_wait_no_longer(
        self, store: Driver, wait: float
    ) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await log.position(tx, "t")
            waiting = [asyncio.create_task(extend(store, draft(f"lost{n}"))) for n in range(8)]
            await asyncio.sleep(wait)
            for task in waiting:
                task.cancel()
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [outcome for outcome in outcomes if not isinstance(outcome, asyncio.CancelledError)] == []
        await extend(store, draft("b"))
        assert await branch_ids(store) == ["a", "b"]

    async def test_a_deletion_among_writers_is_before_or_after_each(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:

            async def delete() -> None:
                async with second.writing() as tx:
                    await log.delete_thread(tx, "t", user_id="u")

            for round_ in range(5):
                await thread_with(first, "a")
                names = [f"{round_}-{n}" for n in range(6)]
                work = [*(extend(first, draft(name)) for name in names), delete()]
                outcomes = await asyncio.gather(*work, return_exceptions=True)
                assert {type(outcome).__name__ for outcome in outcomes} <= {"list", "NoneType", "ThreadNotFound"}
                assert outcomes[-1] is None
                async with first.reading() as tx:
                    assert await log.entries_between(tx, "t", 0, 99) == []


def _pair(first: Driver, second: Driver) -> list[tuple[int, Driver]]:
    return list(enumerate((first, second)))


async def _until_it_fits(store: Driver, name: str) -> None:
    while True:
        tip, _ = await position(store)
        try:
            await extend(store, draft(name), expect=tip)
        except ThreadConflict:
            continue
        return
