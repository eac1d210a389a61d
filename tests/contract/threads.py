"""Threads: made, found, listed, renamed; and those below others, with the runs that answer theirs."""

from __future__ import annotations

import pytest
from tests.contract.base import USER, Contract, draft, extend, thread_with
from tests.contract.runs import alive

from longthread.errors import ThreadNotFound
from longthread.memory.forget import delete_thread, look_at_thread
from longthread.model.run import Answers
from longthread.model.thread import Thread
from longthread.store import listing, log, runs
from longthread.store.driver import Driver
from longthread.store.runs import NewRun


class ThreadContract(Contract):
    """`create_thread` to `list_threads`."""

    async def test_a_new_thread_is_empty_and_keeps_what_it_was_made_with(self, store: Driver) -> None:
        async with store.writing() as tx:
            made = await log.create_thread(tx, "t", user_id=USER, title="Raketen 火箭", source="sqlite:///a b.db")
        async with store.reading() as tx:
            found = await log.find_thread(tx, "t", user_id=USER)
        assert found == made
        assert (found.title, found.source) == ("Raketen 火箭", "sqlite:///a b.db")
        assert (found.tip, found.entry_count, found.tool_categories, found.tags) == (0, 0, (), ())
        assert found.created_at == found.updated_at
        assert found.created_at.tzinfo is not None

    async def test_making_a_thread_again_finds_it_as_it_is(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await log.rename_thread(tx, "t", "kept", user_id=USER)
            again = await log.create_thread(tx, "t", user_id=USER, title="other", source="other")
        assert (again.title, again.source, again.tip) == ("kept", None, 1)

    async def test_a_thread_that_is_not_there_is_told_by_its_id(self, store: Driver) -> None:
        async with store.writing() as tx:
            for attempt in (
                lambda: log.find_thread(tx, "none", user_id=USER),
                lambda: log.rename_thread(tx, "none", "title", user_id=USER),
                lambda: log.delete_thread(tx, "none", user_id=USER),
                lambda: log.position(tx, "none"),
                lambda: log.extend(tx, "none", [draft("a")]),
                lambda: log.add(tx, "none", [draft("a")], parent=0),
                lambda: log.set_tip(tx, "none", 0),
            ):
                with pytest.raises(ThreadNotFound, match="none"):
                    await attempt()

    async def test_a_new_title_or_source_is_no_activity(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            before = await log.find_thread(tx, "t", user_id=USER)
            await log.rename_thread(tx, "t", "other", user_id=USER)
            await log.set_source(tx, "t", "elsewhere")
            after = await log.find_thread(tx, "t", user_id=USER)
        assert (after.title, after.source, after.updated_at) == ("other", "elsewhere", before.updated_at)

    async def test_an_entry_is_activity(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            before = await log.find_thread(tx, "t", user_id=USER)
            await log.extend(tx, "t", [draft("b")])
            after = await log.find_thread(tx, "t", user_id=USER)
        assert after.updated_at > before.updated_at == before.updated_at
        assert after.created_at == before.created_at

    async def test_threads_are_listed_page_by_page_latest_active_first(self, store: Driver) -> None:
        for n in range(5):
            await thread_with(store, "a", thread_id=f"t{n}")
        await extend(store, draft("b"), thread_id="t1")
        assert await _pages(store, 2) == ["t1", "t4", "t3", "t2", "t0"]
        assert await _pages(store, 1) == await _pages(store, 5) == await _pages(store, 99)

    async def test_threads_active_at_the_same_instant_are_listed_once_each(
        self, store: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log, "now", lambda: "2026-01-01T00:00:00.000000+00:00")
        names = ["b", "A", "a", "Z", "é", "中", "😀", "_", "10", "9"]
        for name in names:
            await thread_with(store, "x", thread_id=name)
        assert await _pages(store, 3) == sorted(names, reverse=True)

    async def test_threads_are_found_by_the_beginning_of_their_ids_in_the_order_of_code_points(
        self, store: Driver
    ) -> None:
        for name in ("x_", "x%", "xB", "xa", "xé", "x中", "x😀", "x", "y", "X"):
            await thread_with(store, thread_id=name)
        async with store.reading() as tx:
            found = await listing.threads_that_begin(tx, "x", user_id=USER, limit=99)
            assert found == ["x", "x%", "xB", "x_", "xa", "xé", "x中", "x😀"]
            assert await listing.threads_that_begin(tx, "x", user_id=USER) == ["x", "x%"]
            assert await listing.threads_that_begin(tx, "x%", user_id=USER) == ["x%"]
            assert await listing.threads_that_begin(tx, "z", user_id=USER) == []


async def _pages(store: Driver, size: int) -> list[str]:
    seen: list[Thread] = []
    async with store.reading() as tx:
        page = await listing.list_threads(tx, user_id=USER, limit=size)
        while page:
            seen += page
            last = (page[-1].updated_at.isoformat(timespec="microseconds"), page[-1].id)
            page = await listing.list_threads(tx, user_id=USER, limit=size, before=last)
    return [thread.id for thread in seen]


async def family(store: Driver) -> None:
    """Create a thread `a`, two below it, `b` and `c`, and `d` below `b`; each with an entry."""
    async with store.writing() as tx:
        for name, parent in (("a", None), ("b", "a"), ("c", "a"), ("d", "b")):
            await log.create_thread(tx, name, user_id=USER, title=name, parent=parent)
            await log.extend(tx, name, [draft("1", name)])
        await log.create_thread(tx, "theirs", user_id="other", parent="a")


async def begin(store: Driver, thread_id: str, run_id: str, answers: Answers | None = None) -> None:
    plan = NewRun(run_id, "question", None, "model", "auto", 3, answers=answers)
    async with store.writing() as tx:
        await runs.begin(tx, thread_id, plan, owner="owner", alive=alive)


class LineageContract(Contract):
    """`log.children` and the queries next to it, `runs.answers`, `delete_thread`."""

    async def test_threads_are_found_from_above_and_from_below(self, store: Driver) -> None:
        await family(store)
        async with store.reading() as tx:
            assert [thread.id for thread in await listing.list_threads(tx, user_id=USER)] == ["a"]
            assert len(await listing.list_threads(tx, user_id=USER, below=True)) == 4
            below = await listing.children(tx, "a", user_id=USER)
            assert [(thread.id, thread.parent_id) for thread in below] == [("b", "a"), ("c", "a")]
            assert list(await log.threads_below(tx, "a", user_id=USER)) == ["b", "c", "d"]
            assert [await listing.depth(tx, name) for name in "abcd"] == [0, 1, 1, 2]
            assert await listing.children(tx, "b", user_id="other") == []

    async def test_a_run_says_which_call_it_answers(self, store: Driver) -> None:
        await family(store)
        await begin(store, "a", "r")
        await begin(store, "c", "r2", Answers("r", "call-2"))
        await begin(store, "b", "r1", Answers("r", "call-1"))
        await begin(store, "d", "r3", Answers("r1", "call-3"))
        async with store.reading() as tx:
            found = [(run.thread_id, run.answers) for run in await runs.answers(tx, "a", "r")]
        assert found == [("c", Answers("r", "call-2")), ("b", Answers("r", "call-1"))]

    async def test_what_is_below_goes_with_the_thread_above(self, store: Driver) -> None:
        await family(store)
        await begin(store, "d", "r")
        assert (await look_at_thread(store, "b", user_id=USER)).rows["entries"] == 2
        with pytest.raises(ThreadNotFound):
            await delete_thread(store, "a", user_id="other")
        gone = await delete_thread(store, "b", user_id=USER)
        assert (gone.ids, gone.rows["entries"], gone.rows["runs"]) == (["b", "d"], 2, 1)
        async with store.reading() as tx:
            assert sorted(t.id for t in await listing.list_threads(tx, user_id=USER, below=True)) == ["a", "c"]
            assert len(await listing.list_threads(tx, user_id="other", below=True)) == 1
