"""Commands on a whole store share it with servers and with each other."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.runs.test_workers import dead_worker

from longthread.cli.whole_store import alone
from longthread.runs.worker import here, place_of
from longthread.store import leases
from longthread.store.driver import Driver
from longthread.store.maintenance.jobs import Job
from longthread.store.open import open_store
from longthread.store.queries import Sql

PRUNING = Job("retention")


async def test_two_commands_do_one_after_the_other(
    store: Driver, store_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[str] = []

    async def second() -> None:
        async with open_store(store_address) as other, alone(other, PRUNING, "pruning"):
            order.append("second")

    async with alone(store, PRUNING, "pruning"):
        later = asyncio.create_task(second())
        said = ""
        async with asyncio.timeout(60):
            while "waiting until it has finished" not in said:
                await asyncio.sleep(0.02)
                said += capsys.readouterr().err
        assert said.startswith("Process ")
        assert said.count("waiting") == 1
        order.append("first")
    await later
    assert order == ["first", "second"]
    async with store.reading() as tx:
        assert (await leases.look_for_work(tx))[:2] == ({}, False)
        assert await tx.fetch(Sql("SELECT kind FROM background_jobs")) == []


async def test_a_command_that_was_killed_keeps_nobody_waiting(store: Driver) -> None:
    gone = dead_worker()
    async with store.writing() as tx:
        await leases.register(tx, gone)
        assert await PRUNING.claim(tx, gone) == 0
    async with alone(store, PRUNING, "pruning"), store.reading() as tx:
        assert await PRUNING.owner(tx) != gone


async def test_a_command_that_failed_can_be_given_again_at_once(store: Driver) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            async with alone(store, PRUNING, "pruning"):
                raise ValueError("no")
    async with alone(store, PRUNING, "pruning"):
        pass


def test_a_worker_s_place_is_told_without_its_marks() -> None:
    host = here().split(":")[0]
    assert place_of(f"{here()}/12/x") == f"Process 12 on {host}"
    assert place_of(json.dumps("odd")) == "Another process"
