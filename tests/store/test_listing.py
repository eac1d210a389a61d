"""How the last runs of listed threads stand."""

from __future__ import annotations

from tests.contract.base import registered

from longthread.model.run import RunStatus
from longthread.store import listing, log, runs
from longthread.store.driver import Driver
from longthread.store.runs import Lease, NewRun


async def begin(store: Driver, thread_id: str, run_id: str, *, user_id: str = "u") -> Lease:
    plan = NewRun(run_id=run_id, question="?", source="demo", model="demo", protocol="auto", max_steps=3)
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        await registered(tx, "host/1/x")
        return await runs.begin(tx, thread_id, plan, owner="host/1/x", alive=lambda owner: True)


async def end(store: Driver, lease: Lease, status: RunStatus) -> None:
    async with store.writing() as tx:
        await runs.end(tx, lease, status, {})


async def test_each_thread_has_the_status_of_its_last_run(store: Driver) -> None:
    for status in ("finished", "paused", "failed"):
        await end(store, await begin(store, status, "1"), "finished" if status != "finished" else "failed")
        await end(store, await begin(store, status, "2"), status)  # type: ignore[arg-type]
    await begin(store, "running", "1")
    await begin(store, "theirs", "1", user_id="v")
    async with store.writing() as tx:
        await log.create_thread(tx, "unasked", user_id="u")
        threads = await listing.list_threads(tx, user_id="u")
        found = await listing.latest_runs(tx, threads, user_id="u", alive=lambda owner: True)
        assert found == {"finished": "finished", "paused": "paused", "failed": "failed", "running": "running"}
        orphaned = await listing.latest_runs(tx, threads, user_id="u", alive=lambda owner: False)
        assert orphaned == found | {"running": "interrupted"}


async def test_only_the_threads_that_are_listed_are_told(store: Driver) -> None:
    for name in "abc":
        await begin(store, name, "1")
    async with store.reading() as tx:
        threads = await listing.list_threads(tx, user_id="u")
        found = await listing.latest_runs(tx, [threads[0], threads[2]], user_id="u", alive=lambda owner: True)
        assert found.keys() == {"a", "c"}
        assert await listing.latest_runs(tx, [], user_id="u", alive=lambda owner: True) == {}
