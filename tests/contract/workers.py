"""Workers: each renews its row; a worker that does not loses its runs to the worker that claims them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from tests.contract.base import USER, Contract, OpenStore, registered
from tests.contract.runs import alive, begun, run_of

from longthread.errors import LeaseLost
from longthread.model.run import Answers, Step
from longthread.store import leases, log, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.leases import ClaimedRun
from longthread.store.runs import Lease, NewRun


async def claimed(store: Driver, worker: str, *, limit: int = 9) -> list[ClaimedRun]:
    async with store.writing() as tx:
        await registered(tx, worker)
        return sorted(await leases.claim(tx, worker, limit=limit), key=lambda each: each.lease.thread_id)


async def died(store: Driver, worker: str) -> None:
    async with store.writing() as tx:
        await leases.remove(tx, worker)


async def gone_on(store: Driver, lease: Lease) -> None:
    async with store.writing() as tx:
        await runs.go_on(tx, lease, "a model")


async def step(tx: Transaction, lease: Lease) -> None:
    done = Step(lease.thread_id, 0, lease.run_id, "model", "done", datetime.now(UTC))
    await runs.add_step(tx, lease, done)


class WorkerContract(Contract):
    """Registration, renewal and claims."""

    async def test_a_worker_lives_while_its_row_is_renewed(self, store: Driver) -> None:
        async with store.writing() as tx:
            await leases.register(tx, "a")
            await leases.register(tx, "b")
            await leases.remove(tx, "b")
        async with store.dedicated() as own:
            assert await leases.renew(own, "a")
            assert not await leases.renew(own, "b")
            assert (await leases.look_for_work(own))[:2] == ({"a": 1}, False)
            assert await leases.renew(own, "a")
            assert await leases.workers(own) == {"a": 2}

    async def test_a_dedicated_connection_waits_for_no_reader(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.reading() as tx:
            assert await runs.is_held(tx, await run_of(store), alive=alive)
            async with store.dedicated() as own:
                [held] = await leases.held(own, "first")
        assert (held.lease, held.stop_by) == (lease, None)

    async def test_a_run_is_claimed_when_its_worker_is_gone_and_not_before(self, store: Driver) -> None:
        first = await begun(store)
        assert await claimed(store, "second") == []
        await died(store, "first")
        async with store.reading() as tx:
            assert (await leases.look_for_work(tx))[:2] == ({"second": 0}, True)
        [got] = await claimed(store, "second")
        assert got == ClaimedRun(Lease("t", "r1", "second", 2), USER, 1, None)
        async with store.writing() as tx:
            assert (await leases.look_for_work(tx))[:2] == ({"second": 0}, False)
            await runs.check(tx, got.lease)
        try:
            async with store.writing() as tx:
                await runs.check(tx, first)
        except LeaseLost:
            return
        raise AssertionError("the dead worker's lease still holds")

    async def test_of_many_that_claim_at_once_each_run_has_one(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            for n in range(6):
                await begun(first, thread_id=f"t{n}", owner="gone")
            await died(first, "gone")

            async with first.writing() as tx:
                for n in range(8):
                    await leases.register(tx, f"w{n}")

            async def some(store: Driver, worker: str) -> list[ClaimedRun]:
                async with store.writing() as tx:
                    return list(await leases.claim(tx, worker, limit=2))

            got = await asyncio.gather(*(some(store, f"w{n}") for n, store in enumerate([first, second] * 4)))
            assert sorted(each.lease.thread_id for some in got for each in some) == [f"t{n}" for n in range(6)]

    async def test_executions_that_died_are_counted_while_no_step_is_finished(self, store: Driver) -> None:
        lease = await begun(store)
        for expected in (1, 2):
            await died(store, lease.owner)
            [got] = await claimed(store, f"w{expected}")
            assert got.crashes == expected
            lease = got.lease
            await gone_on(store, lease)
        async with store.writing() as tx:
            await step(tx, lease)
        await died(store, lease.owner)
        [got] = await claimed(store, "last")
        assert (got.crashes, got.lease.attempt) == (1, 4)

    async def test_a_claim_that_died_before_it_went_on_is_not_counted(self, store: Driver) -> None:
        lease = await begun(store)
        for attempt in (2, 3, 4):
            await died(store, lease.owner)
            [got] = await claimed(store, f"w{attempt}")
            assert (got.crashes, got.lease.attempt) == (1, attempt)
            lease = got.lease
        await gone_on(store, lease)
        await died(store, lease.owner)
        assert [each.crashes for each in await claimed(store, "last")] == [2]

    async def test_an_executor_that_lives_takes_the_crash_back_that_was_counted_for_it(self, store: Driver) -> None:
        first = await begun(store)
        await died(store, "first")
        [second] = await claimed(store, "second")
        await gone_on(store, second.lease)
        async with store.writing() as tx:
            await leases.forgive(tx, second.lease)
            await leases.forgive(tx, first)
            await leases.forgive(tx, first)
        await died(store, "second")
        [third] = await claimed(store, "third")
        assert (second.crashes, third.crashes) == (1, 1), "the second one died, the first one did not"

    async def test_a_run_that_is_given_back_did_not_die(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await runs.give_back(tx, lease)
        [got] = await claimed(store, "second")
        assert (got.crashes, got.lease.attempt) == (0, 2)
        await gone_on(store, got.lease)
        await died(store, "second")
        [got] = await claimed(store, "third")
        assert got.crashes == 1
        await gone_on(store, got.lease)
        async with store.writing() as tx:
            await step(tx, got.lease)
            await runs.give_back(tx, got.lease)
        [got] = await claimed(store, "fourth")
        assert got.crashes == 0, "it made progress"
        async with store.writing() as tx:
            await runs.give_back(tx, got.lease, claimable=False)
        assert await claimed(store, "fifth") == [], "a person is to resume it"

    async def test_a_stop_is_told_to_the_worker_or_to_who_claims_next(self, store: Driver) -> None:
        await begun(store)
        async with store.writing() as tx:
            await runs.request_stop(tx, await run_of(store), by="somebody")
            [held] = await leases.held(tx, "first")
        assert held.stop_by == "somebody"
        await died(store, "first")
        [got] = await claimed(store, "second")
        assert got.stop_by == "somebody"

    async def test_a_run_that_another_one_asked_for_is_claimed_by_that_one(self, store: Driver) -> None:
        above = await begun(store, thread_id="above", owner="gone")
        async with store.writing() as tx:
            await log.create_thread(tx, "t", user_id=USER, parent="above")
            plan = NewRun("r1", "q", None, "m", "auto", 5, answers=Answers(above.run_id, "c1"))
            await runs.begin(tx, "t", plan, owner="gone", alive=alive)
        await died(store, "gone")
        [got] = await claimed(store, "second")
        assert got.lease.thread_id == "above"
        async with store.writing() as tx:
            await runs.end(tx, got.lease, "paused", {})
        [got] = await claimed(store, "second")
        assert got.lease.thread_id == "t"

    async def test_a_worker_is_buried_unless_it_renewed_since_it_was_looked_at(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            assert await leases.renewals_of(tx, "t") == ("first", 0)
            await leases.register(tx, "alive")
            looked_at = await leases.workers(tx)
            assert await leases.renew(tx, "alive")
            await leases.bury(tx, looked_at)
            assert await leases.workers(tx) == {"alive": 1}
            assert await leases.renewals_of(tx, "t") is None
        [got] = await claimed(store, "alive")
        assert (got.lease.run_id, got.crashes) == (lease.run_id, 1)
