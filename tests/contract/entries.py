"""Entries: added once, in order, and never changed."""

from __future__ import annotations

import pytest
from tests.contract.base import Contract, branch_ids, draft, extend, position, thread_with

from longthread.errors import EntryNotFound, ThreadConflict
from longthread.model.entry import Draft, ToolCall
from longthread.store import log
from longthread.store.driver import Driver

FULL = Draft(
    id="full",
    role="assistant",
    text="数据 \u0001 '\" \\ %s :name ? $1",
    tool_calls=(
        ToolCall("c1", "run_sql", {"sql": "SELECT ':x'", "深": [1, None, {"x": 2.5, "y": True}]}),
        ToolCall("c2", "", {}),
    ),
    name="n",
    payload=bytes(range(256)),
    tokens=3,
    latency_ms=7,
    run_id="r",
    metadata={"kind": "answer", "nested": {"deep": ["值", 1.5, None]}},
)
"""An entry with a value in every field."""


class EntryContract(Contract):
    """`extend` and `add`: what is stored, that it is stored once, and what is refused."""

    async def test_every_field_of_an_entry_comes_back(self, store: Driver) -> None:
        await thread_with(store)
        [written] = await extend(store, FULL)
        async with store.reading() as tx:
            found = await log.find_entry(tx, "t", "full")
        assert found == written
        assert found.says_the_same_as(FULL)
        assert (found.tokens, found.latency_ms, found.run_id, found.metadata) == (3, 7, "r", FULL.metadata)
        assert (found.thread_id, found.seq, found.parent_seq) == ("t", 1, 0)
        assert found.created_at.tzinfo is not None

    async def test_absent_and_empty_are_two_things(self, store: Driver) -> None:
        await thread_with(store)
        await extend(store, draft("absent", ""), draft("empty", "", tool_call_id="", name="", payload=b"", run_id=""))
        async with store.reading() as tx:
            absent, empty = await log.branch(tx, "t", 2)
        assert (absent.tool_call_id, absent.name, absent.payload, absent.run_id) == (None,) * 4
        assert (empty.tool_call_id, empty.name, empty.payload, empty.run_id) == ("", "", b"", "")
        assert absent.text == empty.text == ""

    async def test_entries_are_numbered_in_the_order_in_which_they_were_given(self, store: Driver) -> None:
        names = [f"m{n}" for n in range(40)]
        entries = await thread_with(store, *names)
        assert [(e.seq, e.parent_seq) for e in entries] == [(n + 1, n) for n in range(40)]
        assert await branch_ids(store) == names
        assert await position(store) == (40, 40)

    @pytest.mark.parametrize("at", [{}, {"parent": 1}, {"expect": 3}, {"expect": 1}])
    async def test_extending_twice_writes_nothing_the_second_time(self, store: Driver, at: dict[str, int]) -> None:
        first = await thread_with(store, "first", "a", "b")
        again = await extend(store, draft("a"), draft("b"), parent=at.get("parent"), expect=at.get("expect"))
        assert again == first[1:]
        assert await position(store) == (3, 3)

    async def test_the_same_id_on_two_threads_is_two_entries(self, store: Driver) -> None:
        for thread_id in ("t", "u"):
            await thread_with(store, "a", thread_id=thread_id)
        await extend(store, draft("a", "other"), thread_id="u")
        assert await position(store, "t") == (1, 1)
        assert await position(store, "u") == (2, 2)

    async def test_nothing_to_add_adds_nothing(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        assert await extend(store) == []
        assert await position(store) == (2, 2)
        assert await extend(store, parent=1) == []
        assert await position(store) == (1, 2)

    @pytest.mark.parametrize(
        "drafts", [[draft("b"), draft("a")], [draft("a")], [draft("x"), draft("b")], [draft("a", "other"), draft("b")]]
    )
    async def test_only_the_same_drafts_are_the_end_of_the_branch(self, store: Driver, drafts: list[Draft]) -> None:
        await thread_with(store, "a", "b")
        assert [entry.seq for entry in await extend(store, *drafts)] == [seq + 3 for seq in range(len(drafts))]

    async def test_a_writer_that_saw_another_tip_is_told_so_and_nothing_is_written(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        for expected in (0, 1, 3):
            with pytest.raises(ThreadConflict, match="t"):
                await extend(store, draft("c"), expect=expected)
        # Another tip is refused even if the same was written before.
        await extend(store, draft("c"))
        with pytest.raises(ThreadConflict):
            await extend(store, draft("c"), expect=1)
        assert await branch_ids(store) == ["a", "b", "c"]

    @pytest.mark.parametrize("parent", [999, 2, -1])
    async def test_an_entry_that_is_not_there_has_nothing_behind_it(self, store: Driver, parent: int) -> None:
        await thread_with(store, "a")
        for attempt in (
            lambda tx: log.extend(tx, "t", [draft("b")], parent=parent),
            lambda tx: log.add(tx, "t", [draft("b")], parent=parent),
            lambda tx: log.set_tip(tx, "t", parent),
        ):
            with pytest.raises(EntryNotFound, match=str(parent)):
                async with store.writing() as tx:
                    await attempt(tx)
        assert await position(store) == (1, 1)

    async def test_who_has_locked_the_thread_appends_behind_its_tip(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            assert await log.position(tx, "t") == (1, 1)
            await log.append(tx, "t", [draft("b"), draft("c")], tip=1, size=1)
            [last] = await log.append(tx, "t", [draft("d")], tip=3, size=3, goes_on=True)
        assert (last.seq, last.parent_seq) == (4, 3)
        assert await position(store) == (4, 4)
        assert await branch_ids(store) == ["a", "b", "c", "d"]

    async def test_entries_are_found_by_their_ids_and_by_their_numbers(self, store: Driver) -> None:
        entries = await thread_with(store, "a", "b", "c")
        async with store.reading() as tx:
            assert await log.find_entry(tx, "t", "b") == entries[1]
            assert await log.find_entries(tx, "t", ["c", "none", "a"]) == {"a": entries[0], "c": entries[2]}
            assert await log.find_entries(tx, "t", []) == {}
            assert await log.entries_between(tx, "t", 2, 99) == entries[1:]
            assert await log.entries_between(tx, "t", 3, 2) == []
            with pytest.raises(EntryNotFound, match="none"):
                await log.find_entry(tx, "t", "none")
            with pytest.raises(EntryNotFound):
                await log.find_entry(tx, "other", "a")
