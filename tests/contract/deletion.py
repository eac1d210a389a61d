"""Deletion: nothing is left that a later thread of the same id could find."""

from __future__ import annotations

import pytest
from tests.contract.base import USER, Contract, position, rows_of, thread_with
from tests.contract.memories import contents, kept
from tests.contract.runs import begun

from longthread.errors import LeaseLost, ThreadNotFound
from longthread.memory.forget import end_deletion, forget_user
from longthread.memory.index.postings import INDEX_FORM
from longthread.model.entry import Draft
from longthread.model.memory import MemorySource
from longthread.model.run import Event
from longthread.model.thread import Scope
from longthread.store import leases, listing, log, recall_index, run_events, runs
from longthread.store.driver import Driver
from longthread.store.maintenance import deletions, jobs
from longthread.store.maintenance.deletions import RestoredThread
from longthread.store.maintenance.jobs import Job
from longthread.store.queries import Sql

CANARY = "canary-4711"


async def fill(store: Driver, thread_id: str = "t", *, word: str = CANARY) -> runs.Lease:
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=USER, title=word, source=word)
        await log.extend(tx, thread_id, [Draft(word, "user", word, payload=word.encode(), metadata={word: word})])
    lease = await begun(store, word, thread_id=thread_id)
    async with store.writing() as tx:
        step = await runs.start_step(tx, lease, "tool", action=word, args={word: word}, call_id=word)
        await runs.finish_step(tx, lease, step, "done", elapsed_ms=1, action=word, observation={word: word})
        run = await runs.find_run(tx, thread_id, word)
        assert run is not None
        await run_events.append_events(tx, [Event(thread_id, word, 1, "started", {word: word}, run.started_at)])
        await runs.save_fold(tx, thread_id, 1, {word: word})
    return lease


async def found(store: Driver) -> list[list[str]]:
    """Return the user's threads: the listed ones, the found ones, the ones that recall may search, and the ones to
    copy."""
    async with store.reading() as tx:
        listed = [thread.id for thread in await listing.list_threads(tx, user_id=USER, below=True)]
        hits = [thread.id for thread, _ in await listing.search_threads(tx, CANARY, user_id=USER)]
        recalled = [each.thread_id for each in await recall_index.threads_in(tx, Scope(USER), form=INDEX_FORM)]
        return [sorted(each) for each in (listed, hits, recalled)]


class DeletionContract(Contract):
    """`delete_thread`, and `deletions`."""

    async def test_a_thread_that_is_deleted_soon_is_nowhere_and_comes_back_as_it_was(self, store: Driver) -> None:
        await fill(store)
        async with store.writing() as tx:
            await log.create_thread(tx, "below", user_id=USER, parent="t")
        before, there = await found(store), await rows_of(store)
        async with store.writing() as tx:
            with pytest.raises(ThreadNotFound):
                await deletions.begin(tx, "t", user_id="other", seconds=60)
            pending = await deletions.begin(tx, "t", user_id=USER, seconds=60)
        assert await found(store) == [[], [], []]
        async with store.writing() as tx:
            assert await deletions.of_user(tx, USER) == ["t"]
            assert await jobs.waiting(tx, limit=9) == []
            for user in (USER, "other"):
                with pytest.raises(ThreadNotFound):
                    await log.find_thread(tx, "t", user_id=user)
            with pytest.raises(ThreadNotFound):
                await log.create_thread(tx, "t", user_id=USER)
            with pytest.raises(ThreadNotFound):
                await deletions.begin(tx, "t", user_id=USER, seconds=60)
            await log.find_thread(tx, "t", user_id=pending.nobody)
            for thread_id, user in (("t", "other"), ("below", USER)):
                with pytest.raises(ThreadNotFound):
                    await deletions.undo(tx, thread_id, user_id=user)
        async with store.writing() as tx:
            assert await deletions.undo(tx, "t", user_id=USER) == RestoredThread(USER, with_memories=False)
            with pytest.raises(ThreadNotFound):
                await deletions.undo(tx, "t", user_id=USER)
        assert (await found(store), await rows_of(store)) == (before, there)

    async def test_a_thread_whose_time_to_undo_is_over_is_a_job_and_then_gone(self, store: Driver) -> None:
        await fill(store)
        async with store.writing() as tx:
            await log.create_thread(tx, "below", user_id=USER, parent="t")
            await deletions.begin(tx, "t", user_id=USER, seconds=0)
            assert await jobs.waiting(tx, limit=9) == [Job("deletion", "t")]
            await tx.run(Sql("DELETE FROM background_jobs"))
            await deletions.note_all(tx)
            assert await jobs.waiting(tx, limit=9) == [Job("deletion", "t")], "a copy takes no jobs along"
        gone = await end_deletion(store, "t")
        assert (gone.threads, await found(store)) == (2, [[], [], []])
        assert await rows_of(store) == {}
        with pytest.raises(ThreadNotFound):
            await end_deletion(store, "t")

    async def test_while_a_worker_measures_the_time_to_undo_the_others_wait(self, store: Driver) -> None:
        """However their clocks go."""
        await fill(store)
        job = Job("deletion", "t")
        async with store.writing() as tx:
            await leases.register(tx, "measures")
            await deletions.begin(tx, "t", user_id=USER, seconds=0, owner="measures")
            assert await jobs.waiting(tx, limit=9) == []
            await leases.remove(tx, "measures")
            assert await jobs.waiting(tx, limit=9) == [job], "it died"
            await leases.register(tx, "measures")
            await job.give_back(tx, "measures")
            assert await jobs.waiting(tx, limit=9) == [job], "the time is over"

    async def test_what_was_remembered_goes_if_that_was_chosen_when_the_deletion_began(self, store: Driver) -> None:
        for thread_id, choice in (("stays", False), ("goes", True)):
            await thread_with(store, "a", thread_id=thread_id)
            await kept(store, f"it {thread_id}", source=MemorySource(thread_id, (1,)))
            for chosen in (not choice, choice):  # the first one is undone
                async with store.writing() as tx:
                    await deletions.begin(tx, thread_id, user_id=USER, seconds=60, with_memories=chosen)
                if chosen != choice:
                    async with store.writing() as tx:
                        assert await deletions.undo(tx, thread_id, user_id=USER) == RestoredThread(USER, chosen)
            assert (await end_deletion(store, thread_id)).kept == (not choice)
        assert await contents(store) == ["it stays"]

    async def test_a_thread_that_is_restored_does_not_go_with_the_one_above(self, store: Driver) -> None:
        async with store.writing() as tx:
            for name, parent in (("top", None), ("below", "top"), ("deeper", "below")):
                await log.create_thread(tx, name, user_id=USER, parent=parent)
            await deletions.begin(tx, "below", user_id=USER, seconds=60)
            await deletions.begin(tx, "top", user_id=USER, seconds=60)
            await deletions.undo(tx, "below", user_id=USER)
        assert (await end_deletion(store, "top")).ids == ["top"]
        async with store.reading() as tx:
            left = {each.id: each.parent_id for each in await listing.list_threads(tx, user_id=USER, below=True)}
        assert left == {"below": None, "deeper": "below"}

    async def test_undoing_one_deletion_leaves_the_others(self, store: Driver) -> None:
        async with store.writing() as tx:
            for name, parent in (("a", None), ("b", None), ("top", None), ("below", "top")):
                await log.create_thread(tx, name, user_id=USER, parent=parent)
            for name in ("a", "b", "below", "top"):
                await deletions.begin(tx, name, user_id=USER, seconds=60)
            await deletions.undo(tx, "a", user_id=USER)
            await deletions.undo(tx, "top", user_id=USER)
            assert await deletions.of_user(tx, USER) == ["b", "below"]
            there = {each.id: each.parent_id for each in await listing.list_threads(tx, user_id=USER, below=True)}
            assert there == {"a": None, "top": None}
            await deletions.undo(tx, "below", user_id=USER)
            assert (await log.find_thread(tx, "below", user_id=USER)).parent_id == "top", "which is there"

    async def test_a_user_is_forgotten_with_what_was_deleted_a_moment_ago(self, store: Driver) -> None:
        await fill(store)
        async with store.writing() as tx:
            await deletions.begin(tx, "t", user_id=USER, seconds=60)
        assert (await forget_user(store, USER)).threads == 1
        assert await rows_of(store) == {}

    async def test_a_deleted_thread_is_gone_with_all_that_was_kept_of_it(self, store: Driver) -> None:
        lease = await fill(store)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        async with store.writing() as tx:
            with pytest.raises(ThreadNotFound):
                await log.find_thread(tx, "t", user_id=USER)
            assert await listing.list_threads(tx, user_id=USER) == []
            assert await listing.search_threads(tx, CANARY, user_id=USER) == []
            assert await log.entries_between(tx, "t", 0, 99) == []
            assert await runs.find_run(tx, "t", CANARY) is None
            assert await runs.steps_from(tx, "t", 0) == []
            assert await run_events.events_after(tx, "t", CANARY, 0) == []
            assert await runs.saved_fold(tx, "t") is None
            with pytest.raises(LeaseLost):
                await runs.check(tx, lease)

    async def test_a_thread_of_the_same_id_begins_anew(self, store: Driver) -> None:
        await fill(store)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        [entry] = await thread_with(store, CANARY)
        assert (entry.seq, entry.parent_seq, entry.payload) == (1, 0, None)
        lease = await begun(store, CANARY)
        async with store.writing() as tx:
            assert await runs.start_step(tx, lease, "model") == 0
            assert await run_events.last_event(tx, "t", CANARY) == 0

    async def test_other_threads_keep_what_is_theirs(self, store: Driver) -> None:
        await fill(store)
        lease = await fill(store, "other", word="kept")
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        assert await position(store, "other") == (1, 1)
        async with store.writing() as tx:
            await runs.check(tx, lease)
            assert len(await runs.steps_from(tx, "other", 0)) == 1
            assert len(await run_events.events_after(tx, "other", "kept", 0)) == 1
            assert await runs.saved_fold(tx, "other") == (1, {"kept": "kept"})

    async def test_a_deletion_that_is_rolled_back_deletes_nothing(self, store: Driver) -> None:
        lease = await fill(store)
        with pytest.raises(RuntimeError):
            async with store.writing() as tx:
                await log.delete_thread(tx, "t", user_id=USER)
                raise RuntimeError
        assert await position(store) == (1, 1)
        async with store.writing() as tx:
            await runs.check(tx, lease)
            assert len(await runs.steps_from(tx, "t", 0)) == 1
