"""Branches: an edit is a sibling, and what it replaces stays. A later version of a message takes its place."""

from __future__ import annotations

import pytest
from tests.contract.base import USER, Contract, branch_ids, draft, extend, position, thread_with

from longthread.errors import EntryNotFound, RowDamaged
from longthread.store import branches, checkpoints, log
from longthread.store.branches import places_of_versions
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.store.rows import entry_row


async def versions(store: Driver, *made: tuple[str, int, int]) -> None:
    """Append later versions (text, the entry whose place it takes, parent), and make the last one the tip."""
    async with store.writing() as tx:
        thread = await checkpoints.lock(tx, "t", user_id=USER)
        assert thread is not None
        for seq, (text, place, parent) in enumerate(made, thread.size + 1):
            of = log.version_of(draft("b", text), parent_seq=parent, replaces=place)
            row = entry_row("t", of, parent_seq=parent, seq=seq, at=log.now(), replaces=place)
            await checkpoints.add_entries(tx, [row])
        last = thread.size + len(made)
        await checkpoints.grow(tx, thread, last, last)


async def shown(
    store: Driver, tip: int, *, limit: int = 100, seen_from: int | None = None
) -> list[tuple[int, int, str]]:
    async with store.reading() as tx:
        entries = await log.branch(tx, "t", tip, limit=limit, seen_from=seen_from)
    return [(entry.seq, entry.parent_seq, entry.text) for entry in entries]


async def chosen(store: Driver, seq: int) -> int:
    """Make a branch the active one, and return its end."""
    async with store.writing() as tx:
        await log.position(tx, "t")
        return await branches.choose(tx, await log.find_thread(tx, "t", user_id=USER), seq)


async def left(store: Driver, seq: int) -> None:
    """Go to an entry, as a writer does who goes on after it."""
    async with store.writing() as tx:
        await log.position(tx, "t")
        await branches.leave(tx, await log.find_thread(tx, "t", user_id=USER), seq)
        await log.set_tip(tx, "t", seq)


class BranchContract(Contract):
    """`extend` after a parent, `add`, `set_tip`, `branch` and `descends`."""

    async def test_an_edit_makes_a_sibling_and_overwrites_nothing(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        [edited] = await extend(store, draft("b", "edited"), parent=1)
        assert (edited.seq, edited.parent_seq, log.sent_id(edited)) == (4, 1, "b")
        assert edited.id != "b"
        assert await branch_ids(store, 3) == ["a", "b", "c"]
        assert await branch_ids(store) == ["a", edited.id]
        async with store.reading() as tx:
            assert (await log.find_entry(tx, "t", "b")).text == "text"

    async def test_an_edit_twice_is_one_sibling(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        first = await extend(store, draft("b", "edited"), draft("c"), parent=1)
        assert await extend(store, draft("b", "edited"), draft("c"), parent=1) == first
        assert await extend(store, draft("b", "edited"), draft("c")) == first
        assert await position(store) == (4, 4)

    async def test_the_same_edit_at_two_places_is_two_entries(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        async with store.writing() as tx:
            added = [await log.add(tx, "t", [draft("b", "edited")], parent=parent) for parent in (1, 2, 1)]
        assert [(entry.seq, entry.parent_seq) for [entry] in added] == [(3, 1), (4, 2), (3, 1)]

    async def test_a_branch_may_begin_at_the_root(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        await extend(store, draft("c"), parent=0)
        assert await branch_ids(store) == ["c"]
        assert await branch_ids(store, 2) == ["a", "b"]

    async def test_going_back_and_on_writes_only_what_is_new(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await extend(store, draft("x"), parent=1)
        await extend(store, draft("b"), draft("c"), draft("d"), parent=1)
        assert await branch_ids(store) == ["a", "b", "c", "d"]
        assert await position(store) == (5, 5)

    async def test_what_follows_an_entry_is_told_branch_by_branch(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await extend(store, draft("x"), parent=1)
        await extend(store, draft("y"), draft("z"), parent=0)
        async with store.reading() as tx:
            found = await branches.following(tx, "t", [0, 1, 2, 4, 99])
        assert {seq: [each.id for each in several] for seq, several in found.items()} == {
            0: ["a", "y"],
            1: ["b", "x"],
            2: ["c"],
        }

    async def test_a_branch_is_chosen_with_all_that_was_chosen_on_it(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")  # 1 2 3
        await left(store, 1)
        await extend(store, draft("x"), draft("y"))  # 4 5, after 1
        await left(store, 4)
        await extend(store, draft("z"))  # 6, after 4
        assert await chosen(store, 5) == 5, "an older one, below"
        assert await chosen(store, 2) == 3
        assert await branch_ids(store) == ["a", "b", "c"]
        assert await chosen(store, 4) == 5, "as it was left"
        assert await chosen(store, 1) == 5, "it is on the branch"
        assert await chosen(store, 6) == 6
        await left(store, 0)
        await extend(store, draft("new"))  # 7
        assert await chosen(store, 1) == 6
        assert await chosen(store, 7) == 7

    async def test_a_branch_that_nobody_left_is_chosen_to_its_last_entry(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await extend(store, draft("x"), parent=2)
        await extend(store, draft("y"), parent=1)
        assert await chosen(store, 2) == 4
        with pytest.raises(EntryNotFound):
            await chosen(store, 99)

    async def test_a_branch_whose_end_was_forgotten_ends_before(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await left(store, 1)
        await extend(store, draft("x"))
        async with store.writing() as tx:
            await tx.run("forget_entries", thread_id="t", seqs="[3]")
        assert await chosen(store, 2) == 2

    async def test_adding_leaves_the_tip_and_setting_it_adds_nothing(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        async with store.writing() as tx:
            added = await log.add(tx, "t", [draft("c"), draft("d")], parent=1)
            assert [(entry.seq, entry.parent_seq) for entry in added] == [(3, 1), (4, 3)]
            assert await log.add(tx, "t", [draft("c"), draft("d")], parent=1) == added
            assert await log.position(tx, "t") == (2, 4)
            await log.set_tip(tx, "t", 4)
            assert await log.position(tx, "t") == (4, 4)
            await log.set_tip(tx, "t", 0)
            assert await log.position(tx, "t") == (0, 4)
            assert [entry.seq for entry in await log.extend(tx, "t", [draft("anew")])] == [5]
        assert await branch_ids(store) == ["anew"]

    async def test_a_branch_is_read_from_its_end_across_the_gaps_of_others(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        await extend(store, *(draft(f"x{n}") for n in range(300)), parent=1)
        await extend(store, draft("c"), draft("d"), parent=2)
        assert await branch_ids(store) == ["a", "b", "c", "d"]
        assert await branch_ids(store, limit=3) == ["b", "c", "d"]
        assert await branch_ids(store, limit=1) == ["d"]
        assert len(await branch_ids(store, 302)) == 301
        assert await branch_ids(store, 0) == []

    async def test_branches_written_by_turns_are_kept_apart(self, store: Driver) -> None:
        await thread_with(store, "root")
        tips = [1, 1, 1]
        for n in range(30):
            [entry] = await extend(store, draft(f"{n % 3}-{n}"), parent=tips[n % 3])
            tips[n % 3] = entry.seq
        for k, tip in enumerate(tips):
            assert await branch_ids(store, tip) == ["root", *(f"{k}-{n}" for n in range(k, 30, 3))]

    async def test_a_branch_that_is_not_there_is_an_error(self, store: Driver) -> None:
        await thread_with(store, "a")
        for tip in (2, 99, -1):
            with pytest.raises(EntryNotFound, match=str(tip)):
                await branch_ids(store, tip)

    async def test_what_is_named_and_is_gone_is_damage(self, store: Driver) -> None:
        await thread_with(store, *"abcdef")
        async with store.writing() as tx:
            await tx.run(Sql("DELETE FROM entries WHERE thread_id = 't' AND seq IN (4, 6)"))
        for tip, limit, gone in ((6, 1, 6), (6, 200, 6), (4, 1, 4), (5, 2, 4)):
            with pytest.raises(RowDamaged, match=f"entry {gone} of thread t"):
                await branch_ids(store, tip, limit=limit)
        assert await branch_ids(store, 5, limit=1) == ["e"]
        async with store.writing() as tx:
            await tx.run(Sql("DELETE FROM entries WHERE thread_id = 't' AND seq < 5"))
            await tx.run("move_first_seq", thread_id="t", first_seq=5)
        with pytest.raises(EntryNotFound, match="4"):  # retention has deleted it
            await branch_ids(store, 4)
        async with store.writing() as tx:
            await tx.run("move_tip", id="t", tip=4096, entry_count=6, now=log.now())
        with pytest.raises(RowDamaged, match="entry 4096 of thread t"):
            await branch_ids(store)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)

    async def test_an_entry_descends_from_those_on_its_branch(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        async with store.writing() as tx:
            await log.add(tx, "t", [draft("d"), draft("e")], parent=1)
            behind = {of: [n for n in range(6) if await log.descends(tx, "t", of, n)] for of in (3, 5)}
            assert behind == {3: [0, 1, 2, 3], 5: [0, 1, 4, 5]}
            assert not await log.descends(tx, "t", 99, 1)
            assert await log.descends(tx, "t", 5, 2, limit=1)

    async def test_a_branch_shows_the_newest_version_in_the_place_of_the_first(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await versions(store, ("second", 2, 3), ("third", 2, 4))
        await extend(store, draft("d"))
        third = [(1, 0, "text"), (2, 1, "third"), (3, 2, "text"), (6, 3, "text")]
        assert await shown(store, 6) == third
        assert await shown(store, 6, limit=1) == third[3:]
        # Before the version there is the one of then, unless the whole branch is given.
        assert await shown(store, 3) == [(1, 0, "text"), (2, 1, "text"), (3, 2, "text")]
        assert await shown(store, 4) == [(1, 0, "text"), (2, 1, "second"), (3, 2, "text")]
        assert await shown(store, 3, seen_from=6) == third[:3]
        assert await shown(store, 2, limit=1, seen_from=6) == third[1:2]

    async def test_each_branch_shows_its_own_version(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await versions(store, ("second", 2, 3))
        await versions(store, ("other", 2, 3))
        assert await shown(store, 4) == [(1, 0, "text"), (2, 1, "second"), (3, 2, "text")]
        assert await shown(store, 5) == [(1, 0, "text"), (2, 1, "other"), (3, 2, "text")]
        assert await shown(store, 3, seen_from=4) == [(1, 0, "text"), (2, 1, "second"), (3, 2, "text")]
        assert await shown(store, 3, seen_from=5) == [(1, 0, "text"), (2, 1, "other"), (3, 2, "text")]
        async with store.reading() as tx:
            rows = await checkpoints.messages_of_branch(tx, "t", 4, limit=2)
            assert [(row["seq"], row["replaces"], row["text"]) for row in rows] == [(4, 2, "second"), (3, None, "text")]

    async def test_a_title_is_replaced_where_it_was_taken_from_a_text(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await log.rename_thread(tx, "t", "one", user_id=USER)
            await log.replace_title(tx, "t", "other", "two")
            assert (await log.find_thread(tx, "t", user_id=USER)).title == "one"
            await log.replace_title(tx, "t", "one", "two")
            assert (await log.find_thread(tx, "t", user_id=USER)).title == "two"

    async def test_the_versions_of_a_message_are_told(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        await versions(store, ("second", 2, 3), ("third", 2, 4), ("also", 3, 5))
        async with store.reading() as tx:
            assert [each.text for each in await log.versions_before(tx, "t", 2, 5)] == ["second", "text"]
            assert await log.changed_between(tx, "t", 3, 5) == {2}
            assert await places_of_versions(tx, "t") == {4: 2, 5: 2, 6: 3}
            assert [await log.place_at(tx, "t", seq) for seq in (0, 2, 6)] == [0, 2, 3]
