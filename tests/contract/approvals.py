"""Approvals: calls that wait for a person, decisions, and runs that continue or lose their lease."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.contract.base import USER, Contract
from tests.contract.runs import alive, begun

from longthread.errors import LeaseLost
from longthread.model.run import Approval
from longthread.store import listing, log, runs, wait_list
from longthread.store.driver import Driver
from longthread.store.listing import latest_runs


def call(number: int, **more: Any) -> Approval:
    about = {"args": {"sql": "DROP TABLE 表"}, "parameters": {"type": "object"}, "asked_at": datetime.now(UTC)}
    return Approval("t", "r1", "m", f"c{number}", number, "run_sql", "Ask first.", **{**about, **more})


class ApprovalContract(Contract):
    """`longthread.store.wait_list`."""

    async def test_calls_wait_and_each_keeps_what_was_decided(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await runs.check(tx, lease)
            await wait_list.let_wait(tx, "t", "r1", [call(1), call(2)])
        async with store.writing() as tx:
            waiting = await wait_list.pending(tx, "t", "r1")
            assert [(each.place, each.args, each.parameters) for each in waiting] == [
                (number, {"sql": "DROP TABLE 表"}, {"type": "object"}) for number in (1, 2)
            ]
            assert await wait_list.waiting(tx, user_id=USER) == [("t", "r1")]
            assert await wait_list.waiting(tx, user_id="another") == []
            threads = await listing.list_threads(tx, user_id=USER)
            assert await latest_runs(tx, threads, user_id=USER, alive=alive) == {"t": "waiting"}
            with pytest.raises(LeaseLost):
                await runs.check(tx, lease)
            await wait_list.decide(tx, call(1, edited={"sql": "SELECT 1"}, by="ada"), "edit")
            await wait_list.decide(tx, call(2, message="no", by="bob"), "reject")
            assert await wait_list.pending(tx, "t", "r1") == []
            first, second = await wait_list.of_run(tx, "t", "r1")
            assert (first.decision, first.made_with, first.by) == ("edit", {"sql": "SELECT 1"}, "ada")
            assert (second.decision, second.message, second.by) == ("reject", "no", "bob")
            assert first.at is not None
            run = await runs.last_run(tx, "t")
            assert run is not None
            again = await runs.take_over(tx, run, owner="second", alive=alive)
        async with store.writing() as tx:
            await runs.check(tx, again)
            await log.delete_thread(tx, "t", user_id=USER)
            assert await wait_list.of_run(tx, "t", "r1") == []

    async def test_threads_above_one_that_waits_are_told(self, store: Driver) -> None:
        async with store.writing() as tx:
            for name, parent in (("top", None), ("middle", "top"), ("t", "middle")):
                await log.create_thread(tx, name, user_id=USER, parent=parent)
        await begun(store)
        async with store.writing() as tx:
            assert await wait_list.below(tx, user_id=USER) == {}
            await wait_list.let_wait(tx, "t", "r1", [call(1)])
            assert await wait_list.below(tx, user_id=USER) == {"top": ["t"], "middle": ["t"]}
            assert await wait_list.below(tx, user_id="other") == {}

    async def test_a_run_that_is_given_back_is_anybodys(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await runs.give_back(tx, runs.Lease("t", "r1", "another", 1))
            await runs.check(tx, lease)
            await runs.give_back(tx, lease)
            with pytest.raises(LeaseLost):
                await runs.check(tx, lease)
            run = await runs.last_run(tx, "t")
            assert run is not None
            assert await runs.current_status(tx, run, alive=alive) == "interrupted"
            again = await runs.take_over(tx, run, owner="second", alive=alive)
            await runs.check(tx, again)
