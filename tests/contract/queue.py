"""Questions that wait: their order in a thread, whose turn it is, and what becomes of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.contract.base import USER, Contract, OpenStore, draft, registered
from tests.contract.runs import alive, begun

from longthread.errors import QueueFull
from longthread.model.run import AgentRun, Answers
from longthread.store import leases, log, runs, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.leases import LiveRun
from longthread.store.maintenance import deletions
from longthread.store.queries import Sql
from longthread.store.runs import NewRun
from longthread.store.wait_list import QuestionPlan, UserLoad

PLAN = QuestionPlan("How many?", "demo", "f", "m", "auto", 5, AgentRun("clerk", 3, {"skill": {"s": 1}}), "r0")


async def queued(
    store: Driver, *ids: str, thread_id: str = "t", user_id: str = USER, first: bool = False, most: int = 9
) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        for each in ids:
            await wait_list.add(tx, thread_id, each, PLAN, user_id=user_id, first=first, most=most)


async def order(store: Driver, thread_id: str = "t") -> list[tuple[int, str]]:
    async with store.reading() as tx:
        return [(each.position, each.id) for each in await wait_list.of_thread(tx, thread_id)]


async def due(store: Driver, *, most: int | None = None, limit: int = 9) -> list[str]:
    async with store.reading() as tx:
        return [each.id for each in await wait_list.startable(tx, most=most, limit=limit)]


async def ended(store: Driver, lease: runs.Lease) -> None:
    async with store.writing() as tx:
        await runs.end(tx, lease, "finished", {})


async def aged(tx: Transaction, question_id: str) -> None:
    """Let a question have waited longer than the others."""
    old = "2020-01-01T00:00:00.000000+00:00"
    await tx.run(Sql("UPDATE queued_questions SET queued_at = :old WHERE id = :id"), old=old, id=question_id)


class QueueContract(Contract):
    """The queue of questions."""

    async def test_no_question_begins_on_a_thread_that_is_deleted_soon(self, store: Driver) -> None:
        await queued(store, "a")
        async with store.writing() as tx:
            await deletions.begin(tx, "t", user_id=USER, seconds=60)
        assert await due(store) == []
        async with store.writing() as tx:
            await deletions.undo(tx, "t", user_id=USER)
        assert await due(store) == ["a"]

    async def test_questions_wait_in_order_and_urgent_ones_come_first(self, store: Driver) -> None:
        await queued(store, "a", "b")
        await queued(store, "c", first=True)
        assert await order(store) == [(1, "c"), (2, "a"), (3, "b")]
        async with store.writing() as tx:
            found = await wait_list.find(tx, "t", "a")
            assert found is not None
            assert (found.thread_id, found.position, found.plan) == ("t", 2, PLAN)
            assert await wait_list.counts(tx, ["t", "other"]) == {"t": 3}
            assert (await leases.look_for_work(tx)).questions == 3
        async with store.writing() as tx:
            assert await wait_list.remove(tx, "t", "c")
            assert not await wait_list.remove(tx, "t", "c")
        assert await order(store) == [(1, "a"), (2, "b")]

    async def test_a_question_keeps_its_agent_or_has_none(self, store: Driver) -> None:
        async with store.writing() as tx:
            await log.create_thread(tx, "t", user_id=USER)
            bare = replace(PLAN, agent=None, source=None, fingerprint=None, rolls_back=None)
            await wait_list.add(tx, "t", "a", bare, user_id=USER, first=False, most=9)
            found = await wait_list.find(tx, "t", "a")
        assert found is not None
        assert found.plan == bare

    async def test_a_users_queue_has_an_end(self, store: Driver) -> None:
        await queued(store, "a", most=1)
        with pytest.raises(QueueFull):
            await queued(store, "b", thread_id="t2", most=1)
        await queued(store, "c", thread_id="t3", user_id="another", most=1)
        assert await order(store, "t") == [(1, "a")]

    async def test_the_first_question_of_a_free_thread_is_due(self, store: Driver) -> None:
        lease = await begun(store)
        await queued(store, "a", "b")
        assert await due(store) == []
        async with store.reading() as tx:
            assert await leases.live(tx, "t", alive=alive) == LiveRun(lease.run_id, True, False, True)
            assert await wait_list.load(tx, USER) == UserLoad(1, 0)
        await ended(store, lease)
        assert await due(store) == ["a"]
        async with store.reading() as tx:
            assert await leases.live(tx, "t", alive=alive) is None
            assert await wait_list.load(tx, USER) == UserLoad(0, 1)

    async def test_a_run_that_nobody_goes_on_with_holds_no_question_up(self, store: Driver) -> None:
        lease = await begun(store)
        await queued(store, "a")
        async with store.writing() as tx:
            await runs.give_back(tx, lease)
        assert await due(store) == [], "a worker claims the run"
        async with store.writing() as tx:
            [again] = await leases.claim(tx, lease.owner, limit=9)
            await runs.give_back(tx, again.lease, claimable=False)
        assert await due(store) == ["a"]
        async with store.reading() as tx:
            live = await leases.live(tx, "t", alive=alive)
            assert live is not None
            assert live.is_left
            assert await wait_list.load(tx, USER) == UserLoad(0, 1)

    async def test_users_with_fewer_runs_come_first_and_then_the_oldest(self, store: Driver) -> None:
        await begun(store, thread_id="busy")
        for each in ("a", "b"):
            await queued(store, each, thread_id=f"t-{each}")
        await queued(store, "x", thread_id="t-x", user_id="another")
        await queued(store, "y", thread_id="t-y", user_id="another")
        async with store.writing() as tx:
            await aged(tx, "a")
        assert await due(store) == ["x", "a", "y", "b"]
        assert await due(store, limit=2) == ["x", "a"]
        assert await due(store, most=1) == ["x"]
        assert await due(store, most=2) == ["x", "a", "y"]

    async def test_an_agents_run_for_another_is_none_of_the_users(self, store: Driver) -> None:
        above = await begun(store, thread_id="above")
        async with store.writing() as tx:
            await log.create_thread(tx, "below", user_id=USER, parent="above")
            plan = NewRun("r1", "q", None, "m", "auto", 5, answers=Answers(above.run_id, "c1"))
            await runs.begin(tx, "below", plan, owner="first", alive=alive)
            assert await wait_list.load(tx, USER) == UserLoad(1, 0)

    async def test_a_question_becomes_the_entry_of_its_run(self, store: Driver) -> None:
        await queued(store, "a")
        async with store.writing() as tx:
            assert await wait_list.run_of(tx, "t", "a") is None
            await wait_list.remove(tx, "t", "a")
            await log.extend(tx, "t", [draft("a", run_id="r1")])
        async with store.reading() as tx:
            assert await wait_list.find(tx, "t", "a") is None
            assert await wait_list.run_of(tx, "t", "a") == "r1"

    async def test_of_many_that_begin_at_once_no_more_do_than_a_user_may(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            async with first.writing() as tx:
                await registered(tx, "w")

            async def begin(store: Driver, thread_id: str) -> bool:
                async with store.writing() as tx:
                    await wait_list.lock_user(tx, USER)
                    await log.create_thread(tx, thread_id, user_id=USER)
                    if (await wait_list.load(tx, USER)).live >= 2:
                        return False
                    await runs.begin(tx, thread_id, NewRun("r1", "q", None, "m", "auto", 5), owner="w", alive=alive)
                    return True

            got = await asyncio.gather(*(begin(store, f"t{n}") for n, store in enumerate([first, second] * 4)))
            assert sum(got) == 2

    async def test_a_question_goes_with_its_thread(self, store: Driver) -> None:
        await queued(store, "a")
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
            assert (await leases.look_for_work(tx)).questions == 0
