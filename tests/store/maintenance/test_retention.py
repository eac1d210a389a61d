"""Retention: what goes, what stays, and what works on afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.store.samples import all_of, everything, fill
from tests.store.turns import age, alive, at, begin, finish, run_id, turns

from longthread.errors import EntryNotFound, ThreadNotFound
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.entry import Draft
from longthread.model.fold import state_of
from longthread.store import listing, log, runs
from longthread.store.driver import Driver
from longthread.store.log import now
from longthread.store.maintenance.deletions import Pruned, prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import count_threads

KEEP_CHECKPOINTS = RetentionPolicy(checkpoints=None)


def silent(done: int, total: int, what: str) -> None:
    """Progress that nobody looks at."""


def dead(owner: str) -> bool:
    return False


async def pruned(store: Driver, policy: RetentionPolicy, *, apply: bool = True, alive: Any = alive) -> Pruned:
    return await prune(store, Retention(policy, CheckpointKeeper(), alive), silent, apply=apply)


def entries_before(turn: int, *, window: int = 8, **more: Any) -> RetentionPolicy:
    return replace(KEEP_CHECKPOINTS, entries_before=at(turn), window=window, **more)


async def branch(store: Driver, thread_id: str = "t") -> list[str]:
    async with store.reading() as tx:
        tip, size = await log.position(tx, thread_id)
        return [entry.id for entry in await log.branch(tx, thread_id, tip, limit=size + 1)]


async def test_nothing_goes_without_a_policy(store: Driver, plain: Any) -> None:
    await turns(store, 5)
    age(plain)
    before = await all_of(store)
    assert await pruned(store, KEEP_CHECKPOINTS) == Pruned()
    assert await all_of(store) == before


async def test_old_turns_go_with_what_their_runs_did(store: Driver, plain: Any) -> None:
    await turns(store, 10)
    age(plain)
    found = await pruned(store, entries_before(6))
    assert found.rows == {"entries": 24, "runs": 6}
    assert (found.threads, found.touched, found.busy) == (0, 1, 0)
    assert found.bytes > 24 * 50
    assert await branch(store) == [f"{turn}-{part}" for turn in range(6, 10) for part in "qcra"]
    rows = await all_of(store)
    assert [row["id"] for row in rows["runs"]] == [run_id(turn) for turn in range(6, 10)]
    assert rows["steps"] == rows["events"] == [], "they are in the rows of their runs"
    assert (rows["threads"][0]["first_seq"], rows["threads"][0]["entry_count"]) == (25, 40)
    assert await pruned(store, entries_before(6)) == Pruned(), "the second time there is nothing"


@pytest.mark.parametrize("window", [0, 1, 2, 4, 5, 11])
async def test_the_window_stays_whole_from_its_question_on(store: Driver, plain: Any, window: int) -> None:
    await turns(store, 5)
    age(plain)
    await pruned(store, entries_before(99, window=window))
    kept = await branch(store)
    assert len(kept) == -(-max(1, window) // 4) * 4
    assert kept[0].endswith("-q")


async def test_a_dry_run_tells_the_same_and_changes_nothing(store: Driver, plain: Any) -> None:
    await turns(store, 10)
    await turns(store, 3, thread_id="expired")
    age(plain)
    plain("UPDATE threads SET expires_at = ? WHERE id = ?", [at(0), "expired"])
    policy = entries_before(6, now=now())
    before = await all_of(store)
    told = await pruned(store, policy, apply=False)
    assert await all_of(store) == before
    assert told == await pruned(store, policy)
    assert told.threads == 1
    assert told.rows["entries"] == 24 + 12


async def test_many_old_turns_go_in_small_transactions(
    store: Driver, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.store.maintenance.retention.ENTRIES_AT_ONCE", 5)
    monkeypatch.setattr("longthread.store.maintenance.retention.RUNS_AT_ONCE", 2)
    await turns(store, 10)
    age(plain)
    told = await pruned(store, entries_before(6), apply=False)
    assert await pruned(store, entries_before(6)) == told
    assert await branch(store) == [f"{turn}-{part}" for turn in range(6, 10) for part in "qcra"]
    assert await pruned(store, entries_before(6)) == Pruned()


async def test_a_thread_with_a_run_under_way_is_left_alone(store: Driver, plain: Any) -> None:
    await turns(store, 5)
    async with store.writing() as tx:
        await begin(tx, "t", 5)
    age(plain)
    plain("UPDATE threads SET expires_at = ?", [at(0)])
    policy = entries_before(99, window=1, now=now(), idle_before=now())
    before = await all_of(store)
    for apply in (False, True):
        assert await pruned(store, policy, apply=apply) == Pruned(busy=1)
    assert await all_of(store) == before
    over = await pruned(store, policy, alive=dead)
    assert over.threads == 1, "an expired thread goes though its run was never ended"


async def test_what_a_killed_run_needs_stays(store: Driver, plain: Any) -> None:
    await turns(store, 5)
    async with store.writing() as tx:
        await begin(tx, "t", 5)
    age(plain)
    await pruned(store, entries_before(99, window=1, runs_before=now()), alive=dead)
    assert await branch(store) == ["5-q"]
    async with store.writing() as tx:
        run = await runs.last_run(tx, "t")
        assert run is not None
        assert (run.id, run.status) == (run_id(5), "running")
        again = await runs.take_over(tx, run, owner="second", alive=dead)
        await finish(tx, again, 5)
    assert await branch(store) == ["5-q", "5-c", "5-r", "5-a"]


async def test_runs_may_go_while_their_entries_stay(store: Driver, plain: Any) -> None:
    await turns(store, 10)
    age(plain)
    found = await pruned(store, replace(KEEP_CHECKPOINTS, runs_before=at(6)))
    assert found.rows == {"runs": 6}
    assert len(await branch(store)) == 40
    found = await pruned(store, replace(KEEP_CHECKPOINTS, runs_before=now()))
    assert found.rows == {"runs": 3}, "the last run stays"
    async with store.writing() as tx:
        lease, _ = await begin(tx, "t", 10)
        assert await runs.start_step(tx, lease, "model") == 10, "steps are counted on"


async def test_prompts_go_with_the_last_step_that_names_them(store: Driver, plain: Any) -> None:
    await turns(store, 4)
    age(plain)
    async with store.writing() as tx:
        for name in ("p0", "p1", "p1-a", "p1-b", "p2"):
            await runs.save_prompt(tx, "t", name, b"body")
    plain("UPDATE runs SET prompts = 'p0 p1-a' WHERE first_step < 2")
    plain("UPDATE runs SET prompts = 'p1-b p2' WHERE first_step >= 2")
    assert (await pruned(store, entries_before(1))).rows["runs"] == 1
    assert (await pruned(store, entries_before(2))).rows["prompts"] == 2
    async with store.reading() as tx:
        left = {name: await runs.saved_prompt(tx, "t", name) for name in ("p0", "p1", "p1-a", "p1-b", "p2")}
    assert left == {"p0": None, "p1": b"body", "p1-a": None, "p1-b": b"body", "p2": b"body"}


async def test_other_branches_are_cut_at_the_same_place(store: Driver, plain: Any) -> None:
    await turns(store, 4)
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft("2-edited", "user", "edited"), Draft("2-b", "assistant", "b")], parent=8)
        await log.extend(tx, "t", [Draft("3-edited", "user", "edited")], parent=12)
    age(plain)
    await pruned(store, entries_before(2, window=1))
    assert await branch(store) == ["2-q", "2-c", "2-r", "2-a", "3-edited"]
    async with store.reading() as tx:
        assert [entry.id for entry in await log.branch(tx, "t", 18)] == ["2-edited", "2-b"]
        assert [entry.parent_seq for entry in await log.branch(tx, "t", 18)] == [0, 17]
        assert next(entry.id for entry in await log.branch(tx, "t", 16)) == "2-q"
        with pytest.raises(EntryNotFound):
            await log.branch(tx, "t", 8)
        assert await log.descends(tx, "t", 16, 9)
        assert not await log.descends(tx, "t", 18, 9)


async def test_a_conversation_that_went_back_to_its_beginning_keeps_it(store: Driver, plain: Any) -> None:
    await turns(store, 4)
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft("3-edited", "user", "edited")], parent=4)
    age(plain)
    assert await pruned(store, entries_before(99, window=8)) == Pruned()
    await pruned(store, entries_before(99, window=1))
    assert await branch(store) == ["3-edited"]


async def test_a_conversation_that_starts_anew_has_no_window(store: Driver, plain: Any) -> None:
    await turns(store, 2)
    async with store.writing() as tx:
        await log.set_tip(tx, "t", 0)
    age(plain)
    assert (await pruned(store, entries_before(99, window=200))).rows["entries"] == 8
    async with store.writing() as tx:
        [entry] = await log.extend(tx, "t", [Draft("new", "user", "new")])
    assert (entry.seq, entry.parent_seq) == (9, 0)
    assert await branch(store) == ["new"]


async def test_extending_with_what_is_there_writes_nothing_after_retention(store: Driver, plain: Any) -> None:
    await turns(store, 6)
    age(plain)
    async with store.reading() as tx:
        whole = await log.branch(tx, "t", 24)
    await pruned(store, entries_before(3))
    async with store.writing() as tx:
        for drafts in (whole[-1:], whole[-12:], whole[-13:], whole):
            assert [entry.id for entry in await log.extend(tx, "t", drafts)] == [e.id for e in whole[-12:]][
                -len(drafts) :
            ]
            assert await log.position(tx, "t") == (24, 24)
        added = await log.extend(tx, "t", [*whole, Draft("new", "user", "new")])
        assert added[-1].id == "new"


async def test_state_and_search_are_of_what_is_left(store: Driver, plain: Any) -> None:
    await turns(store, 6)
    age(plain)
    await pruned(store, entries_before(3))
    async with store.reading() as tx:
        state = state_of(await log.branch(tx, "t", 24))
        assert [message["content"] for message in state["messages"]][:2] == ["question 3", "answer 3"]
        assert state["known_tables"] == ["table_3", "table_4", "table_5"]
        assert await listing.search_threads(tx, "answer 1", user_id="u") == []
        [(thread, hit)] = await listing.search_threads(tx, "answer 4", user_id="u")
        assert (thread.id, hit.text) == ("t", "answer 4")
    [[data]] = plain("SELECT count(*) FROM messages")
    assert data == 12


@pytest.mark.parametrize(
    ("expires", "goes"),
    [
        (timedelta(seconds=-1), True),
        (timedelta(hours=1), False),
        (None, False),
    ],
)
async def test_expired_threads_go_whole(store: Driver, plain: Any, expires: timedelta | None, goes: bool) -> None:
    await fill(store, "t")
    plain("UPDATE threads SET expires_at = ?", [expires and (datetime.now(UTC) + expires).isoformat()])
    plain("UPDATE runs SET status = 'finished'")
    found = await pruned(store, replace(KEEP_CHECKPOINTS, now=now()))
    assert found.threads == found.touched == int(goes)
    async with store.reading() as tx:
        assert await count_threads(tx) == int(not goes)


async def test_idle_threads_go_whole(store: Driver, plain: Any) -> None:
    await turns(store, 1)
    await turns(store, 1, thread_id="other")
    plain("UPDATE threads SET updated_at = ? WHERE id = 't'", [at(0)])
    found = await pruned(store, replace(KEEP_CHECKPOINTS, idle_before=at(1)))
    assert found.threads == 1
    async with store.reading() as tx:
        with pytest.raises(ThreadNotFound):
            await log.find_thread(tx, "t", user_id="u")
        await log.find_thread(tx, "other", user_id="u")


async def test_a_deleted_thread_leaves_no_row_in_any_table(store: Driver) -> None:
    await fill(store, "t")
    await fill(store, "other")
    before = await all_of(store, derived=True)
    async with store.writing() as tx:
        tables = await read_tables(tx)
        of_threads = {table.name: table.thread for table in (*tables.of_threads, *tables.derived_tables)}
        assert all(any(row[str(column)] == "t" for row in before[name]) for name, column in of_threads.items())
        await log.delete_thread(tx, "t", user_id="u")
        after = await everything(tx, derived=True)
    for name, column in of_threads.items():
        assert after[name] == [row for row in before[name] if row[str(column)] != "t"], name
    assert "'t'" not in repr(after), "nothing else names it"


async def test_writers_and_retention_do_not_get_into_each_others_way(store: Driver, plain: Any) -> None:
    await turns(store, 20)
    age(plain)

    async def write() -> None:
        for turn in range(20, 40):
            async with store.writing() as tx:
                lease, _ = await begin(tx, "t", turn)
            async with store.writing() as tx:
                await finish(tx, lease, turn)
            await asyncio.sleep(0)

    async def clean() -> None:
        for turn in range(0, 40, 2):
            await pruned(store, entries_before(turn, window=12))
            await asyncio.sleep(0)

    await asyncio.gather(write(), clean())
    await pruned(store, entries_before(38, window=12))
    kept = await branch(store)
    assert kept[-4:] == ["39-q", "39-c", "39-r", "39-a"]
    assert kept[0].endswith("-q")
    numbers = [int(name.partition("-")[0]) for name in kept]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(numbers[0], 40)), "no turn between them is missing"
    assert numbers[0] >= 19
