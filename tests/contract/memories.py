"""Memories: no duplicates, none of another user, none that has expired, and nothing left of forgotten ones."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
import pytest
from tests.contract.base import USER, Contract, thread_with
from tests.contract.runs import begun

from longthread.errors import InvalidInput, MemoryNotFound, StoreConflict
from longthread.memory.user_memories import edit, remember, replace_memory
from longthread.model.entry import Draft
from longthread.model.memory import ANALYST, Memory, MemoryChanges, MemorySource, Origin, Statement, Used
from longthread.store import log, memories
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.queries import Sql

OWNER = Owner(USER, ANALYST)
LATER = datetime(2040, 5, 8, 12, tzinfo=UTC)
SOON = timedelta(seconds=0.05)


async def kept(store: Driver, content: str, *, owner: Owner = OWNER, source: MemorySource | None = None) -> Memory:
    async with store.writing() as tx:
        if source is not None:
            await log.position(tx, source.thread_id)
        return (await remember(tx, owner, Statement(content, source=source))).memory


async def replaced(store: Driver, old: Memory, content: str, source: MemorySource) -> Memory:
    async with store.writing() as tx:
        await log.position(tx, source.thread_id)
        return await replace_memory(tx, OWNER, old.id, Statement(content, source=source))


async def listed(store: Driver) -> list[Memory]:
    async with store.reading() as tx:
        return await memories.list_(tx, OWNER)


async def contents(store: Driver, owner: Owner = OWNER) -> list[str]:
    async with store.reading() as tx:
        return sorted(memory.content for memory in await memories.list_(tx, owner))


class MemoryContract(Contract):
    """`longthread.store.memories`."""

    async def test_what_is_remembered_twice_at_once_is_one_memory(self, store: Driver) -> None:
        async def tell() -> None:
            try:
                await kept(store, "Ann lives in Lyon.")
            except StoreConflict:
                await kept(store, "Ann lives in Lyon.")

        await asyncio.gather(*(tell() for _ in range(5)))
        assert await contents(store) == ["Ann lives in Lyon."]

    async def test_a_person_edits_a_memory_which_is_theirs_then(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        source = MemorySource("t", (1, 2))
        memory = await kept(store, "Ann lives in Lyon.", source=source)
        other = await kept(store, "Bob lives in Rome.")
        async with store.writing() as tx:
            pinned = await edit(tx, memory.id, MemoryChanges(importance=1, expires_at=LATER), user_id=USER)
            assert (pinned.importance, pinned.expires_at, pinned.thread_id) == (1, LATER, "t")
            same = await edit(tx, memory.id, MemoryChanges(never_expires=True), user_id=USER)
            assert (same.expires_at, same.importance, same.content) == (None, 1, memory.content)
            assert [each.id for each in await memories.said_in(tx, "t", user_id=USER)] == [memory.id]
            assert await memories.used_in(tx, "t", user_id=USER) == []
            ids = [memory.id, other.id]
            assert await memories.sources_of(tx, ids, user_id=USER) == {memory.id: [source]}
            assert await memories.sources_of(tx, ids, user_id="v") == {}
            with pytest.raises(InvalidInput, match="says the same"):
                await edit(tx, memory.id, MemoryChanges("bob lives in Rome"), user_id=USER)
            with pytest.raises(MemoryNotFound):
                await edit(tx, memory.id, MemoryChanges("x y"), user_id="v")
            moved = await edit(tx, memory.id, MemoryChanges("Ann lives in Nice."), user_id=USER)
            assert (moved.id, moved.thread_id) == (memory.id, None)
            await log.delete_thread(tx, "t", user_id=USER, with_memories=True)
        assert await contents(store) == ["Ann lives in Nice.", "Bob lives in Rome."]
        assert (await kept(store, "Ann lives in Nice")).id == memory.id, "it is known by its new words"
        assert (await kept(store, "Ann lives in Lyon.")).id != memory.id

    async def test_a_memory_is_nobody_elses(self, store: Driver) -> None:
        memory = await kept(store, "a secret")
        other = Owner("v", ANALYST)
        async with store.writing() as tx:
            assert await memories.list_(tx, other) == []
            assert await memories.candidates(tx, other) == []
            assert not await memories.any_of(tx, "v")
            assert await memories.sources(tx, memory.id, user_id="v") == []
            for attempt in (memories.find, memories.delete):
                with pytest.raises(MemoryNotFound):
                    await attempt(tx, memory.id, user_id="v")
            assert await memories.delete_expired(tx, user_id="v") == 0
        await kept(store, "a secret", owner=other)
        assert await contents(store) == await contents(store, other) == ["a secret"]

    async def test_an_agent_that_the_catalog_does_not_know_has_memories_of_its_own(self, store: Driver) -> None:
        unknown = Owner(USER, str(uuid4()))
        memory = await kept(store, "Ann lives in Lyon.", owner=unknown)
        assert await contents(store, unknown) == ["Ann lives in Lyon."]
        assert await contents(store) == []
        assert (await kept(store, "Ann lives in Lyon.", owner=unknown)).id == memory.id

    async def test_an_id_that_is_none_is_not_found(self, store: Driver) -> None:
        async with store.reading() as tx:
            for memory_id in ("", "no id", "0" * 32, "'"):
                with pytest.raises(MemoryNotFound):
                    await memories.find(tx, memory_id, user_id=USER)

    async def test_a_memory_is_found_by_the_beginning_of_its_id(self, store: Driver) -> None:
        memory = await kept(store, "Ann lives in Lyon.")
        async with store.reading() as tx:
            assert await memories.that_begin(tx, memory.id[:9].upper(), user_id=USER) == [memory.id]
            assert await memories.that_begin(tx, memory.id[:9], user_id="v") == []
            for nothing in ("", " ", "%", "zz"):
                assert await memories.that_begin(tx, nothing, user_id=USER) == []

    async def test_what_has_expired_is_not_found_and_is_deleted(self, store: Driver) -> None:
        await kept(store, "lasting")
        async with store.writing() as tx:
            await remember(tx, OWNER, Statement("passing", expires_at=datetime.now(UTC) + SOON))
        await asyncio.sleep(2 * SOON.total_seconds())
        assert await contents(store) == ["lasting"]
        async with store.writing() as tx:
            assert [found.content for found in await memories.candidates(tx, OWNER)] == ["lasting"]
            assert await memories.count(tx, OWNER) == await memories.count_expired(tx, now=log.now()) == 1
            assert await memories.delete_expired(tx) == 1
            assert await memories.count(tx, OWNER) == 1

    async def test_a_vector_is_of_the_words_that_it_was_made_of(self, store: Driver) -> None:
        memory = await kept(store, "Ann lives in Lyon.")
        vector = np.array([0.6, 0.8, 0.0], dtype=np.float32)
        async with store.writing() as tx:
            await memories.put_vectors(tx, "m", [(memory.id, "other words", vector)])
            assert await memories.nearest(tx, OWNER, "m", vector) == []
            await memories.put_vectors(tx, "m", [(memory.id, memory.content, vector)])
            assert await memories.nearest(tx, OWNER, "m", vector) == [(memory.id, 1.0)]
            assert await memories.nearest(tx, OWNER, "another", vector) == []
            assert await memories.nearest(tx, Owner("v"), "m", vector) == []
            assert await memories.without_vector(tx, "m", user_id=USER) == []
        await kept(store, "ann lives in Lyon")
        async with store.reading() as tx:
            assert await memories.without_vector(tx, "m", user_id=USER) == [(memory.id, "ann lives in Lyon")]

    async def test_a_memory_outlives_its_thread_and_tells_that_this_is_gone(self, store: Driver) -> None:
        for each in ("one", "two", "three"):
            await thread_with(store, "a", thread_id=each)
        origin = Origin("demo", ("run_sql q1",))
        only = await kept(store, "Only here", source=MemorySource("one", (1,), origin))
        both = await kept(store, "Said in both", source=MemorySource("two", (1,)))
        await kept(store, "said in both.", source=MemorySource("one", (1,), origin))
        await kept(store, "By hand")
        await kept(store, "by hand", source=MemorySource("one", (1,), origin))
        joint = await kept(store, "lives in Paris", source=MemorySource("one", (1,)))
        await replaced(store, joint, "lives in Rome", MemorySource("two", (1,)))
        async with store.reading() as tx:
            assert await memories.of_threads(tx, ["one"], user_id=USER) == sorted([only.id, joint.id])
            assert await memories.of_threads(tx, ["one", "two"], user_id=USER) == sorted([only.id, joint.id, both.id])
            assert await memories.of_threads(tx, ["one", "two"], user_id="v") == []
        async with store.writing() as tx:
            await log.delete_thread(tx, "one", user_id=USER)
        there = {each.content: each for each in await listed(store)}
        assert there.keys() == {"Only here", "said in both.", "By hand", "lives in Rome"}
        gone = there["Only here"]
        assert (gone.id, gone.thread_id, gone.origin, gone.is_entered) == (only.id, None, origin, False)
        assert gone.source_deleted_at is not None and gone.source_deleted_at <= datetime.now(UTC)
        kept_by_two = there["said in both."]
        assert (kept_by_two.thread_id, kept_by_two.origin, kept_by_two.source_deleted_at) == ("two", origin, None)
        assert (there["By hand"].is_entered, there["By hand"].origin) == (True, None)
        async with store.writing() as tx:
            assert await memories.sources(tx, only.id, user_id=USER) == []
            await tx.run(Sql("DELETE FROM threads WHERE id = 'two'"))  # another program does
        there = {each.id: each for each in await listed(store)}
        assert len(there) == 4 and all(each.thread_id is None for each in there.values())
        assert [each.content for each in there.values() if each.is_entered] == ["By hand"]
        again = await kept(store, "only here", source=MemorySource("three", (1,)))
        assert (again.id, again.thread_id, again.origin, again.source_deleted_at) == (only.id, "three", origin, None)
        corrected = await replaced(store, there[joint.id], "lives in Nice", MemorySource("three", (1,)))
        assert (corrected.id, corrected.thread_id) == (joint.id, "three"), "no person has entered it"
        confirmed = await kept(store, "Said in both")
        assert (confirmed.id, confirmed.is_entered, confirmed.origin) == (both.id, True, None)
        async with store.writing() as tx:
            await log.delete_thread(tx, "three", user_id=USER, with_memories=True)
        assert await contents(store) == ["By hand", "Said in both"]

    async def test_a_memory_outlives_the_threads_below_and_its_words_are_a_person_s_when_one_edits_them(
        self, store: Driver
    ) -> None:
        async with store.writing() as tx:
            await log.create_thread(tx, "t", user_id=USER)
            await log.create_thread(tx, "below", user_id=USER, parent="t")
            await log.extend(tx, "below", [Draft("a", "user", "a")])
        memory = await kept(store, "said below", source=MemorySource("below", (1,), Origin("demo", ("x",))))
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
            pinned = await edit(tx, memory.id, MemoryChanges(importance=1), user_id=USER)
            assert (pinned.is_entered, pinned.origin) == (False, Origin("demo", ("x",)))
            mine = await edit(tx, memory.id, MemoryChanges("said otherwise"), user_id=USER)
        assert (mine.is_entered, mine.origin) == (True, None)

    async def test_a_memory_goes_with_its_thread_unless_another_has_said_it_too(self, store: Driver) -> None:
        await thread_with(store, "a", thread_id="one")
        await thread_with(store, "a", "b", thread_id="two")
        await kept(store, "only here", source=MemorySource("one", (1,)))
        both = await kept(store, "Said in both", source=MemorySource("two", (2,)))
        await kept(store, "said in both.", source=MemorySource("one", (1,)))
        await kept(store, "By hand")
        await kept(store, "by hand", source=MemorySource("one", (1,)))
        async with store.writing() as tx:
            told = await memories.sources(tx, both.id, user_id=USER)
            assert told == [MemorySource("two", (2,)), MemorySource("one", (1,))]
            assert (await memories.find(tx, both.id, user_id=USER)).content == "said in both."
            await log.delete_thread(tx, "one", user_id=USER, with_memories=True)
        assert await contents(store) == ["By hand", "Said in both"]
        async with store.writing() as tx:
            assert await memories.sources(tx, both.id, user_id=USER) == [MemorySource("two", (2,))]
            assert (await memories.find(tx, both.id, user_id=USER)).thread_id == "two"
        assert (await kept(store, "Said in both", source=MemorySource("two", (2,)))).id == both.id, "it is known again"
        async with store.writing() as tx:
            await log.delete_thread(tx, "two", user_id=USER, with_memories=True)
        assert await contents(store) == ["By hand"]

    async def test_a_memory_goes_with_an_entry_that_it_comes_from(self, store: Driver) -> None:
        await thread_with(store, "a", "b", thread_id="one")
        await thread_with(store, "a", thread_id="two")
        await kept(store, "only here", source=MemorySource("one", (1, 2)))
        await kept(store, "of another", source=MemorySource("one", (1,)))
        both = await kept(store, "Said in both", source=MemorySource("two", (1,)))
        await kept(store, "said in both.", source=MemorySource("one", (2,)))
        async with store.writing() as tx:
            await log.position(tx, "one")
            assert await memories.forget_said(tx, "one", [3]) == 0
            assert await memories.forget_said(tx, "one", [2, 3]) == 1
        assert await contents(store) == ["Said in both", "of another"]
        async with store.reading() as tx:
            assert await memories.sources(tx, both.id, user_id=USER) == [MemorySource("two", (1,))]

    async def test_what_was_made_of_several_threads_together_goes_with_the_first_of_them(self, store: Driver) -> None:
        for each in ("a", "b", "c", "d"):
            await thread_with(store, "one", "two", thread_id=each)
        made = {}
        for each in ("a", "b", "c"):
            first = await kept(store, f"{each} lives in Paris", source=MemorySource("a", (1,)))
            made[each] = await replaced(store, first, f"{each} lives in Rome", MemorySource("b", (2,)))
            assert made[each].id == first.id
        alone = await kept(store, "d lives in Paris", source=MemorySource("d", (1,)))
        await replaced(store, alone, "d lives in Rome", MemorySource("d", (2,)))
        assert (await kept(store, "c lives in Rome", source=MemorySource("c", (1,)))).id == made["c"].id
        confirmed = await kept(store, "b lives in Rome")  # by a person
        assert confirmed.id == made["b"].id
        async with store.writing() as tx:
            await log.position(tx, "d")
            assert await memories.forget_said(tx, "a", [2]) == 0
            assert await memories.forget_said(tx, "d", [1]) == 1, "in one thread it comes from both of its entries"
            await log.delete_thread(tx, "c", user_id=USER, with_memories=True)
        assert await contents(store) == ["a lives in Rome", "b lives in Rome"]
        async with store.writing() as tx:
            await log.position(tx, "a")
            assert await memories.forget_said(tx, "a", [1]) == 1
        assert await contents(store) == ["b lives in Rome"]
        # It is found by its present words, and not by those of before.
        assert (await kept(store, "b lives in Paris")).id != confirmed.id
        assert (await kept(store, "b lives in Rome")).id == confirmed.id

    async def test_what_another_memory_says_already_is_not_that_one_s_source(self, store: Driver) -> None:
        for each in ("a", "b", "c"):
            await thread_with(store, "one", thread_id=each)
        old = await kept(store, "lives in Paris", source=MemorySource("a", (1,)))
        same = await kept(store, "lives in Rome", source=MemorySource("c", (1,)))
        assert (await replaced(store, old, "lives in Rome", MemorySource("b", (1,)))).id == same.id
        assert await contents(store) == ["lives in Rome"]
        async with store.writing() as tx:
            await log.delete_thread(tx, "c", user_id=USER, with_memories=True)
        assert await contents(store) == []

    async def test_a_run_that_used_a_memory_forgets_it_too(self, store: Driver) -> None:
        await thread_with(store, "a")
        lease = await begun(store, "r")
        memory, other = await kept(store, "one"), await kept(store, "other")
        used = [Used(memory.id, "given", "- one"), Used(other.id, "given", "- other")]
        async with store.writing() as tx:
            for _ in range(2):
                await memories.note_uses(tx, lease.thread_id, lease.run_id, used)
        async with store.writing() as tx:
            assert await memories.uses(tx, "t", "r", user_id=USER) == used
            assert await memories.uses(tx, "t", "r", user_id="v") == []
            await memories.delete(tx, memory.id, user_id=USER)
            await memories.note_uses(tx, lease.thread_id, lease.run_id, used)
        async with store.reading() as tx:
            assert await memories.uses(tx, "t", "r", user_id=USER) == used[1:]
