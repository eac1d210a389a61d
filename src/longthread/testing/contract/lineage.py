"""Threads below threads: found from both sides, with the runs that answer others, and deleted with the one above."""

from __future__ import annotations

import pytest

from longthread.errors import ThreadNotFound
from longthread.memory.forget import delete_thread, look_at_thread
from longthread.model.run import Answers
from longthread.store import log, runs
from longthread.store.driver import Driver
from longthread.store.runs import NewRun
from longthread.testing.contract.base import USER, Contract, draft
from longthread.testing.contract.runs import alive


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
    """`log.children` and what is beside it, `runs.answers`, `delete_thread`."""

    async def test_threads_are_found_from_above_and_from_below(self, store: Driver) -> None:
        await family(store)
        async with store.reading() as tx:
            assert [thread.id for thread in await log.list_threads(tx, user_id=USER)] == ["a"]
            assert len(await log.list_threads(tx, user_id=USER, below=True)) == 4
            assert [(t.id, t.parent_id) for t in await log.children(tx, "a", user_id=USER)] == [("b", "a"), ("c", "a")]
            assert list(await log.threads_below(tx, "a", user_id=USER)) == ["b", "c", "d"]
            assert [await log.depth(tx, name) for name in "abcd"] == [0, 1, 1, 2]
            assert await log.children(tx, "b", user_id="other") == []

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
            assert sorted(t.id for t in await log.list_threads(tx, user_id=USER, below=True)) == ["a", "c"]
            assert len(await log.list_threads(tx, user_id="other", below=True)) == 1
