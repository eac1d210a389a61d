"""Bundles: which runs are put together, what goes of them, and that nothing else does."""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from tests.store.test_run_blob import BEFORE
from tests.store.turns import at

from longthread.errors import StoreDamaged
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.memory import Used
from longthread.store import bundles, bundling, log, memories, runs
from longthread.store.bundled import _ADDED, Bundled, runs_in
from longthread.store.bundling import bundle_all, bundle_some
from longthread.store.driver import Driver, Row
from longthread.store.maintenance.prune import Pruned, prune
from longthread.store.maintenance.retention import Policy, Retention
from longthread.store.maintenance.status import status_of
from longthread.store.queries import Sql
from longthread.store.runs import Plan
from longthread.store.tables import read_tables
from longthread.testing.contract.base import USER
from longthread.testing.contract.bundles import exported, rows, run_id, seen, turns
from longthread.testing.contract.memories import kept
from longthread.testing.contract.runs import alive


async def test_behind_a_turn_only_many_are_put_together(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "BEHIND_A_TURN", 10)
    await turns(store, 10, kind="plain")
    assert await bundle_some(store, "t") == 0
    sizes = []
    for start in (10, 15, 20, 25):
        await turns(store, 5, start=start, kind="plain")
        before = await seen(store)
        sizes.append(await bundle_some(store, "t"))
        assert await seen(store) == before
    assert sizes == [14, 0, 10, 0]
    assert (await rows(store))[1] == [(run_id(0), run_id(13), 14), (run_id(14), run_id(23), 10)]


async def test_runs_do_not_wait_behind_others_that_stay_on_their_own(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BEHIND_A_TURN", 5), ("_LOOKED_AT", 20)):
        monkeypatch.setattr(bundling, name, value)
    await turns(store, 30, kind="recalling")
    await turns(store, 10, start=30, kind="plain")
    before = await seen(store)
    assert [await bundle_some(store, "t") for _ in range(2)] == [9, 0]
    await turns(store, 10, start=40, kind="plain")
    assert await bundle_some(store, "t") == 10
    assert [count for *_, count in (await rows(store))[1]] == [9, 10]
    assert (await seen(store))["runs"][10:] == before["runs"]


async def test_small_bundles_become_one_and_large_ones_stay(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST", 20), ("WHERE_PRUNED", 4)):
        monkeypatch.setattr(bundling, name, value)
    sizes = []
    for start in range(0, 60, 6):
        await turns(store, 6, start=start, kind="plain")
        before = await seen(store), await exported(store)
        await bundle_all(store, "t")
        assert (await seen(store), await exported(store)) == before
        sizes.append([count for _, _, count in (await rows(store))[1]])
    assert sizes[:5] == [[5], [11], [11, 6], [11, 12], [11, 12, 6]]
    assert sizes[-1] == [11, 12, 12, 12, 12]


async def test_a_run_between_those_of_a_bundle_is_put_into_it(store: Driver) -> None:
    await turns(store, 160, kind="plain")
    memory = await kept(store, "Bob lives in Bonn.")
    async with store.writing() as tx:
        for number in range(5, 150, 7):
            await memories.note_uses(tx, "t", run_id(number), [Used(memory.id, "given", "line")])
    await bundle_all(store, "t")
    assert len((await rows(store))[0]) == 1 + 21
    async with store.writing() as tx:
        await memories.delete(tx, memory.id, user_id=USER)
    before = await seen(store), await exported(store)
    assert await bundle_all(store, "t") == 21
    assert (await seen(store), await exported(store)) == before
    own, there = await rows(store)
    assert own == [run_id(159)]
    assert [last for _, last, _ in there] < [first for first, _, _ in there[1:]] + ["z"]
    assert sum(count for *_, count in there) == 159
    assert all(count <= bundling.MOST for *_, count in there)


async def test_what_did_much_stays_on_its_own(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "LARGE", 500)
    await turns(store, 20, kind="plain")
    async with store.writing() as tx:
        args = {str(number): number**9 for number in range(200)}
        lease = await runs.begin(tx, "t", Plan(run_id(20), "q", None, "m", "auto", 5), owner="o", alive=alive)
        await runs.start_step(tx, lease, "model", args=args)
        await runs.end(tx, lease, "finished", {})
    await turns(store, 1, start=21, kind="plain")
    before = await seen(store)
    assert await bundle_all(store, "t") == 20
    assert (await rows(store))[0] == [run_id(20), run_id(21)]
    assert await seen(store) == before


async def test_what_cannot_be_read_is_told(store: Driver) -> None:
    await turns(store, 30, kind="plain")
    await bundle_all(store, "t")
    for body in (b"", b"\x09abc", b"\x01abc"):
        async with store.writing() as tx:
            await tx.run(Sql("UPDATE run_bundles SET body = :body"), body=body)
        async with store.reading() as tx:
            with pytest.raises(StoreDamaged, match="put together cannot be read"):
                await runs.find_run(tx, "t", run_id(3))
            assert await runs.find_run(tx, "t", run_id(29)) is not None


async def test_what_goes_of_bundles_is_told_as_runs(store: Driver) -> None:
    await turns(store, 60, kind="plain")
    async with store.writing() as tx:
        for number in range(60):
            ended = "UPDATE runs SET ended_at = :at WHERE thread_id = 't' AND id = :id"
            await tx.run(Sql(ended), at=at(number), id=run_id(number))
    assert await bundle_all(store, "t") == 59
    whole = await seen(store)
    policy = Policy(runs_before=at(25))
    told = [
        await prune(store, Retention(policy, CheckpointKeeper(), alive), lambda *_: None, apply=apply)
        for apply in (False, True)
    ]
    assert told[0] == told[1]
    assert (told[0].rows, told[0].touched, told[0].bundled) == ({"prompts": 2, "runs": 25}, 1, 0)
    assert await rows(store) == ([run_id(59)], [(run_id(25), run_id(58), 34)])
    assert (await seen(store))["runs"] == whole["runs"][:35]
    assert (await seen(store))["events"] == whole["events"][:35]


async def test_each_bundle_that_goes_is_opened_a_few_times(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "MOST", 4)
    opened: list[str] = []

    def opening(bundle: Row) -> Sequence[Bundled]:
        opened.append(bundle["first_id"])
        return runs_in(bundle)

    monkeypatch.setattr(bundles, "runs_in", opening)
    await turns(store, 160, kind="plain")
    assert await bundle_all(store, "t") == 159
    policy = Policy(entries_before=log.now(), window=10)
    gone = await prune(store, Retention(policy, CheckpointKeeper(), alive), lambda *_: None, apply=True)
    assert gone.rows["runs"] > 150
    assert max(Counter(opened).values()) <= 3


async def test_prompts_that_each_run_has_its_own_of_go_as_fast_as_others(store: Driver) -> None:
    """Each was once compared with each run that stays, in each transaction: minutes, with the thread locked."""
    seconds = []
    for thread_id, own in (("one", False), ("many", True)):
        await turns(store, 1, kind="plain", thread_id=thread_id)
        async with store.reading() as tx:
            [kind] = await tx.fetch(Sql("SELECT * FROM runs WHERE thread_id = :id"), id=thread_id)
        names = [f"{0:016x}-{number if own else 1:016x}" for number in range(1500)]
        made = [{**kind, "id": run_id(number), "prompts": names[number]} for number in range(1, 1500)]
        prompts = [{"thread_id": thread_id, "id": name, "body": b"prompt"} for name in [f"{0:016x}", *names[1:]]]
        async with store.writing() as tx:
            await tx.run_all(Sql(f"INSERT INTO runs ({', '.join(kind)}) VALUES (:{', :'.join(kind)})"), made)
            await tx.run_all("insert_prompt", prompts)
            await tx.run(Sql("UPDATE runs SET ended_at = '9' WHERE id >= :id"), id=run_id(1490))
        policy = Retention(Policy(runs_before="8"), CheckpointKeeper(), alive)
        began = time.monotonic()
        gone = await prune(store, policy, lambda *_: None, apply=True)
        seconds.append(time.monotonic() - began)
        assert gone.rows == {"runs": 1490, "prompts": 1490 if own else 1}, "the first turn has one of its own"
        async with store.reading() as tx:
            for name in (f"{0:016x}", names[1499]):
                assert await runs.saved_prompt(tx, thread_id, name) is not None
    assert seconds[1] < 6 * seconds[0] + 1


async def test_prune_says_how_many_it_puts_together(store: Driver) -> None:
    await turns(store, 15, kind="plain")
    retention = Retention(Policy(), CheckpointKeeper(), alive)
    assert await prune(store, retention, lambda *_: None, apply=True) == Pruned(), "they are few"
    await turns(store, 5, start=15, kind="plain")
    for apply in (False, True):
        assert await prune(store, retention, lambda *_: None, apply=apply) == Pruned(bundled=19)
    assert await prune(store, retention, lambda *_: None, apply=False) == Pruned()
    assert [count for *_, count in (await rows(store))[1]] == [19]
    assert (await status_of(store)).rows["runs"] == 20


async def test_a_value_that_would_not_be_the_same_again_is_kept(store: Driver) -> None:
    await turns(store, 20, kind="plain")
    older = base64.b64decode(BEFORE)
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE runs SET body = :body WHERE id = :id"), body=older, id=run_id(3))
        await tx.run(Sql("UPDATE runs SET body = :body WHERE id = :id"), body=b"", id=run_id(5))
    before = await exported(store)
    assert await bundle_all(store, "t") == 19
    assert await exported(store) == before
    async with store.reading() as tx:
        found = await runs.find_run(tx, "t", run_id(3))
        assert found is not None
        assert found.outcome["queries"][0]["sql"] == "SELECT 1"
        with pytest.raises(StoreDamaged, match="what run r00005 did"):
            await runs.find_run(tx, "t", run_id(5))
        assert await runs.find_run(tx, "t", run_id(6)) is not None


async def test_a_bundle_has_all_columns_of_runs(store: Driver) -> None:
    """A new one must be named in `_ADDED`, with what it has in bundles from before."""
    async with store.reading() as tx:
        table = (await read_tables(tx))["runs"]
    first = {
        *("thread_id", "id", "status", "question", "source", "model", "protocol", "max_steps", "continues"),
        *("first_step", "owner", "lease_until", "outcome", "started_at", "ended_at", "question_seq", "entry_seq"),
        *("told", "last_event", "stop_step", "prompts", "body", "agent_id", "agent_version", "agent_parts"),
        *("waiting_since", "parent_run_id", "parent_call_id"),
    }
    assert {column.name for column in table.columns} == first | _ADDED.keys()
    assert [column.name for column in table.columns if column.kind == "bytes"] == ["body"], "only this one is packed"
