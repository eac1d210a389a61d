"""Threads below threads: found from both sides, deleted with the one above, kept together on their way elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.contract.base import registered
from tests.store.maintenance.test_retention import KEEP_CHECKPOINTS, dead, pruned
from tests.store.transfer.test_transfer import YOURS, exported, imported, silent

from longthread.errors import InvalidInput, ThreadNotFound
from longthread.memory.forget import delete_thread, look_at_thread
from longthread.model.entry import Draft
from longthread.model.run import Answers
from longthread.store import listing, log, runs
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import Pruned
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.runs import NewRun
from longthread.store.transfer.archive_reader import ImportTarget
from longthread.store.transfer.copy import copy_store


async def family(store: Driver, *, user_id: str = "u", name: str = "") -> None:
    """A thread `a`, two below it, `b` and `c`, and `d` below `b`; each with an entry."""
    async with store.writing() as tx:
        for thread, parent in (("a", None), ("b", "a"), ("c", "a"), ("d", "b")):
            above = f"{name}{parent}" if parent else None
            await log.create_thread(tx, f"{name}{thread}", user_id=user_id, title=thread, parent=above)
            await log.extend(tx, f"{name}{thread}", [Draft("1", "user", thread)])


async def begin(store: Driver, thread_id: str, run_id: str = "r", **more: Any) -> None:
    plan = NewRun(run_id=run_id, question="?", source=None, model="m", protocol="auto", max_steps=3, **more)
    async with store.writing() as tx:
        await registered(tx, "owner")
        await runs.begin(tx, thread_id, plan, owner="owner", alive=lambda owner: True)


async def there(store: Driver) -> list[str]:
    async with store.reading() as tx:
        return sorted(thread.id for thread in await listing.list_threads(tx, user_id="u", below=True))


async def test_they_are_found_from_above_and_from_below(store: Driver) -> None:
    await family(store)
    async with store.reading() as tx:
        assert [thread.id for thread in await listing.list_threads(tx, user_id="u")] == ["a"]
        assert [(t.id, t.parent_id) for t in await listing.children(tx, "a", user_id="u")] == [("b", "a"), ("c", "a")]
        assert list(await log.threads_below(tx, "a", user_id="u")) == ["b", "c", "d"]
        assert [await listing.depth(tx, name) for name in "abcd"] == [0, 1, 1, 2]
        assert await listing.children(tx, "a", user_id="somebody else") == []
        assert await log.threads_below(tx, "a", user_id="somebody else") == {}
    assert await there(store) == ["a", "b", "c", "d"]


async def test_a_run_says_which_call_it_answers(store: Driver) -> None:
    await family(store)
    await begin(store, "a")
    await begin(store, "c", "r2", answers=Answers("r", "call-2"))
    await begin(store, "b", "r1", answers=Answers("r", "call-1"))
    await begin(store, "d", "r3", answers=Answers("r1", "call-3"))
    async with store.reading() as tx:
        found = await runs.answers(tx, "a", "r")
        assert [(run.thread_id, run.answers) for run in found] == [
            ("c", Answers("r", "call-2")),
            ("b", Answers("r", "call-1")),
        ]
        last = await runs.last_run(tx, "a")
    assert last is not None and last.answers is None


async def test_who_deletes_a_thread_deletes_what_is_below(store: Driver, plain: Any) -> None:
    await family(store)
    await family(store, name="x")
    assert len((await look_at_thread(store, "a", user_id="u")).ids) == 4
    assert (await look_at_thread(store, "b", user_id="u")).rows == {
        "threads": 2,
        "entries": 2,
        "recall_loose": 2,  # what is to be put into volumes
    }
    with pytest.raises(ThreadNotFound):
        await look_at_thread(store, "a", user_id="v")
    gone = await delete_thread(store, "b", user_id="u")
    assert (gone.threads, gone.ids, gone.rows["entries"]) == (2, ["b", "d"], 2)
    assert await there(store) == ["a", "c", "xa", "xb", "xc", "xd"]
    plain("DELETE FROM threads WHERE id = ?", ["xa"])  # as another program does
    assert await there(store) == ["a", "c"]
    await begin(store, "c")
    await delete_thread(store, "a", user_id="u")
    assert await there(store) == []


async def test_a_circle_and_another_users_thread_do_no_harm(store: Driver) -> None:
    await family(store)
    async with store.writing() as tx:
        await log.create_thread(tx, "theirs", user_id="v", parent="a")
        await tx.run(Sql("UPDATE threads SET parent_thread_id = 'd' WHERE id = 'a'"))
    async with store.reading() as tx:
        assert set(await log.threads_below(tx, "a", user_id="u")) == {"b", "c", "d"}
        assert await listing.depth(tx, "a") == 100
    await delete_thread(store, "a", user_id="u")
    assert await there(store) == []
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "theirs", user_id="v")).parent_id == "a"


async def test_retention_takes_them_together(store: Driver, plain: Any) -> None:
    await family(store)
    await family(store, name="x")
    old, new = (datetime.now(UTC) - timedelta(days=days) for days in (50, 1))
    idle = replace(KEEP_CHECKPOINTS, idle_before=(datetime.now(UTC) - timedelta(days=9)).isoformat())
    plain("UPDATE threads SET updated_at = ?", [old.isoformat(timespec="microseconds")])
    # Somebody still speaks with what is below `xa`; what is idle below it goes no sooner.
    plain("UPDATE threads SET updated_at = ? WHERE id = 'xd'", [new.isoformat(timespec="microseconds")])
    await begin(store, "c")
    assert (await pruned(store, idle, apply=False)).threads == 0
    looked = await pruned(store, idle, apply=False, alive=dead)
    assert (looked.threads, looked.rows["entries"]) == (4, 4)
    assert (await pruned(store, idle, alive=dead)).threads == 4
    assert await there(store) == ["xa", "xb", "xc", "xd"]
    # One whose parent is not there stands alone.
    async with store.writing() as tx:
        await log.create_thread(tx, "alone", user_id="u", parent="gone")
        with pytest.raises(ThreadNotFound):
            await log.delete_thread(tx, "gone", user_id="u")
    plain("UPDATE threads SET updated_at = ? WHERE id = 'alone'", [old.isoformat(timespec="microseconds")])
    assert (await pruned(store, idle)).threads == 1
    assert await pruned(store, idle) == Pruned()


@pytest.mark.sampled(2)
async def test_they_keep_their_places_on_the_way_elsewhere(store: Driver, other_address: str) -> None:
    await family(store)
    await begin(store, "a")
    await begin(store, "b", "r1", answers=Answers("r", "call-1"))
    data = await exported(store, "a", "b", "c", "d")
    async with open_store(other_address) as other:
        await copy_store(store, other, silent)
        await check_family(other, "a", "b")
        assert (await imported(other, data)).same == 4
        # Under another id beside the first, and twice is once.
        for written in (4, 0):
            outcome = await imported(other, data, ImportTarget("u", thread_id="copy"))
            assert (outcome.written, outcome.refused) == (written, [])
        async with other.reading() as tx:
            below = {thread.title: thread.id for thread in await listing.children(tx, "copy", user_id="u")}
        assert below.keys() == {"b", "c"}
        await check_family(other, "copy", below["b"])
        with pytest.raises(InvalidInput, match="--as"):
            await imported(other, await exported(store, "b", "c"), ImportTarget("u", thread_id="copy2"))
        # What is below another may come alone.
        await imported(other, await exported(store, "b"), ImportTarget("u", thread_id="alone"))
        async with other.reading() as tx:
            assert (await log.find_thread(tx, "alone", user_id="u")).parent_id == "a"
    async with open_store(other_address) as other:
        assert (await imported(other, data, replace(YOURS, user_id="u"))).same == 4
        assert io.BytesIO(data).read() == await exported(other, "a", "b", "c", "d")


async def check_family(store: Driver, top: str, child: str) -> None:
    async with store.reading() as tx:
        assert len(await log.threads_below(tx, top, user_id="u")) == 3
        [run] = await runs.answers(tx, top, "r")
    assert (run.thread_id, run.answers) == (child, Answers("r", "call-1"))
