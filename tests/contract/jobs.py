"""Background jobs: each is one worker's, and what a dead one leaves is claimed by another."""

from __future__ import annotations

import asyncio

from tests.contract.base import USER, Contract, OpenStore, registered, rows_of, thread_with
from tests.contract.runs import begun

from longthread.store import leases, log, runs, summaries
from longthread.store.driver import Driver
from longthread.store.maintenance import jobs
from longthread.store.maintenance.jobs import Job
from longthread.store.queries import Sql
from longthread.store.summaries import UNWRITTEN, ThreadSummary

JOB = Job("summary", "t")


async def claim(store: Driver, worker: str, job: Job = JOB) -> int | None:
    async with store.writing() as tx:
        await registered(tx, worker)
        return await job.claim(tx, worker)


async def died(store: Driver, worker: str) -> None:
    async with store.writing() as tx:
        await leases.remove(tx, worker)


async def waiting(store: Driver) -> list[Job]:
    async with store.reading() as tx:
        found = await jobs.waiting(tx, limit=9)
        assert (await leases.look_for_work(tx))[2] == bool(found)
        return found


async def all_due(store: Driver) -> None:
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE background_jobs SET due_at = 0"))


class JobContract(Contract):
    """Claims of background work."""

    async def test_a_job_is_one_workers_until_it_is_done(self, store: Driver) -> None:
        await thread_with(store, "a")
        assert await claim(store, "first") == 0
        assert await claim(store, "first") == 0, "it is its own"
        assert await claim(store, "second") is None
        assert await claim(store, "second", Job("vectors", "t")) == 0
        async with store.writing() as tx:
            await JOB.done(tx, "second")
            assert await JOB.owner(tx) == "first"
            await JOB.done(tx, "first")
            assert await JOB.owner(tx) is None
        assert await claim(store, "second") == 0

    async def test_of_many_that_claim_at_once_one_has_the_job(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await thread_with(first, "a")
            async with first.writing() as tx:
                for n in range(8):
                    await leases.register(tx, f"w{n}")

            async def one(store: Driver, worker: str) -> int | None:
                async with store.writing() as tx:
                    return await JOB.claim(tx, worker)

            got = await asyncio.gather(*(one(store, f"w{n}") for n, store in enumerate([first, second] * 4)))
            assert sorted(each for each in got if each is not None) == [0]

    async def test_what_a_dead_worker_leaves_waits_and_is_claimed(self, store: Driver) -> None:
        await thread_with(store, "a")
        await claim(store, "first")
        await claim(store, "first", Job("retention"))
        assert await waiting(store) == []
        await died(store, "first")
        assert await waiting(store) == [JOB], "a job of the whole store is no more than a lock"
        assert await claim(store, "second") == 1
        assert await waiting(store) == []

    async def test_a_job_that_killed_two_workers_waits_for_the_third(self, store: Driver) -> None:
        await thread_with(store, "a")
        for n, worker in enumerate(["first", "second"]):
            assert await claim(store, worker) == n
            await died(store, worker)
        assert await waiting(store) == []
        assert await claim(store, "third") is None
        async with store.writing() as tx:
            assert await JOB.claim(tx, "third", at_once=True) == 2, "who is told to does not wait"

    async def test_a_job_that_failed_waits_longer_each_time(self, store: Driver) -> None:
        await thread_with(store, "a")
        waits = []
        for n in range(11):
            assert await claim(store, "first") == n
            async with store.writing() as tx:
                await JOB.fail(tx, "first")
                [row] = await tx.fetch(Sql("SELECT due_at FROM background_jobs"))
            waits.append(int(row["due_at"]) // 1000)
            assert await claim(store, "first") is None, "not yet"
            await all_due(store)
        spans = [wait - waits[0] for wait in waits]
        assert spans == sorted(spans)
        assert 3500 < spans[-1] < 3700

    async def test_a_job_that_is_given_up_waits_for_nobody_until_it_is_claimed(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await runs.end(tx, lease, "finished", {})
            await summaries.save(tx, "t", ThreadSummary("digest", 1, "hash", 1, 1, None, {UNWRITTEN: {}}))
        await claim(store, "first")
        async with store.writing() as tx:
            await JOB.fail(tx, "first")
        async with store.writing() as tx:
            assert await JOB.claim(tx, "first", at_once=True) == 1
            await JOB.give_up(tx, "first")
        assert await jobs.note_unwritten(store) == 0, "a server that starts does not note it anew"
        assert await waiting(store) == []
        assert await claim(store, "second") == 0, "as the thread's next turn does"

    async def test_a_job_that_is_given_back_waits_for_nobody(self, store: Driver) -> None:
        await thread_with(store, "a")
        await claim(store, "first")
        async with store.writing() as tx:
            await JOB.give_back(tx, "first")
        assert await waiting(store) == [JOB]
        assert await claim(store, "second") == 0

    async def test_a_job_that_is_noted_is_done_later(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await JOB.note(tx)
            await Job("memories", USER).note(tx, 60)
            await Job("vectors", "missing").note(tx)
        assert await waiting(store) == [JOB]
        assert await claim(store, "first", Job("vectors", "missing")) is None
        assert await claim(store, "first", Job("memories", USER)) is None
        await all_due(store)
        assert await claim(store, "first", Job("memories", USER)) == 0

    async def test_a_job_that_was_noted_before_the_clock_was_set_back_does_not_wait_for_it(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await JOB.note(tx, 3500)
            assert await jobs.waiting(tx, limit=9) == []
            await tx.run(Sql("UPDATE background_jobs SET due_at = due_at + 200000"))
            assert await jobs.waiting(tx, limit=9) == [JOB]
        assert await claim(store, "first") == 0

    async def test_jobs_go_with_their_thread_or_user(self, store: Driver) -> None:
        await thread_with(store, "a")
        await claim(store, "first")
        await claim(store, "first", Job("memories", USER))
        assert (await rows_of(store))["background_jobs"] == 1
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
            await jobs.forget_user(tx, USER)
            assert await tx.fetch(Sql("SELECT kind FROM background_jobs")) == []

    async def test_summaries_that_a_model_owes_are_noted(self, store: Driver) -> None:
        lease = await begun(store)
        also = await begun(store, thread_id="u")
        await thread_with(store, "b", thread_id="without a run")
        async with store.writing() as tx:
            await runs.end(tx, lease, "finished", {})
            await runs.end(tx, also, "finished", {})
            for thread_id in ("t", "u", "without a run"):
                owed = ThreadSummary("digest", 1, "hash", 1, 1, None, {UNWRITTEN: {}})
                await summaries.save(tx, thread_id, owed)
        assert [await jobs.note_unwritten(store, at_once=1), await jobs.note_unwritten(store)] == [2, 0]
        assert await waiting(store) == [JOB, Job("summary", "u")]
        async with store.writing() as tx:
            await tx.run(Sql("DELETE FROM background_jobs"))
            for thread_id in ("t", "u"):
                await summaries.save(tx, thread_id, ThreadSummary("a model's", 1, "hash", 1, 1, "m", {}))
        assert await jobs.note_unwritten(store) == 0
