"""Retention: what is old is deleted with all that depends on it, and what is still needed stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from tests.contract.approvals import call
from tests.contract.base import USER, Contract, OpenStore, branch_ids, registered, thread_with
from tests.contract.graphs import at, graph_on, history, turn
from tests.contract.graphs import logged as said
from tests.contract.graphs import turns as graph_turns
from tests.contract.history import KINDS, run_id, seen, turns
from tests.contract.memories import OWNER, SOON, contents, kept
from tests.contract.recall import found, silent
from tests.contract.runs import alive, begun, dead
from tests.contract.summaries import pass_over, talk

from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.langgraph.saver.saver import LongthreadSaver
from longthread.memory.index.indexer import index_thread
from longthread.memory.index.vectors import embed_thread
from longthread.memory.user_memories import remember
from longthread.model.memory import MemorySource, Statement
from longthread.model.run import Event, Step
from longthread.model.thread import Scope
from longthread.store import attributes, listing, log, recall_index, run_events, runs, summaries, wait_list
from longthread.store.driver import Driver
from longthread.store.log import now
from longthread.store.maintenance.deletions import Pruned, prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy, expire
from longthread.store.maintenance.space import status_of
from longthread.store.run_rows import RunContent, bare_steps, ended_runs, step_values
from longthread.store.runs import NewRun
from longthread_testing.embedding import HashEmbedder

ALL = RetentionPolicy(checkpoints=None)
"""Nothing is deleted."""


def _ns(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_ns"])


async def pruned(
    store: Driver, policy: RetentionPolicy, *, apply: bool = True, alive: Callable[[str], bool] = alive
) -> Pruned:
    """Prune, or report what would go; check that the reported counts are those of the tables."""
    before = (await status_of(store)).rows
    told = await prune(store, Retention(policy, CheckpointKeeper(), alive), silent, apply=apply)
    after = (await status_of(store)).rows
    assert {name: before[name] - after[name] for name in told.rows} == {
        name: count if apply else 0 for name, count in told.rows.items()
    }
    return told


class RetentionContract(Contract):
    """`longthread.store.maintenance.retention` and `pruning`, which is what `longthread db prune` does."""

    async def test_old_turns_go_with_what_their_runs_did(self, store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        await turns(store, 1, kind="silent")
        await turns(store, 12, start=1, kind="plain")
        async with store.writing() as tx:
            await runs.save_prompt(tx, "t", "unused", b"")
            await runs.save_prompt(tx, "t", "used", b"by a step")
            # As rows of their own, which runs had before they were packed.
            await run_events.append_events(tx, [Event("t", run_id(1), 9, "warning", {}, datetime.now(UTC))])
            for number, prompt in ((1, "unused"), (12, "used")):
                run = await runs.find_run(tx, "t", run_id(number))
                assert run is not None
                step = Step("t", run.first_step, run.id, "model", "done", run.started_at, prompt=prompt)
                await tx.run("insert_step", **step_values(step), told="[]", last_event=0)
            await wait_list.let_wait(tx, "t", run_id(1), [call(1)])
        assert await pruned(store, ALL) == Pruned()
        policy = replace(ALL, entries_before=now(), window=6)
        told = await pruned(store, policy, apply=False)
        assert len(await branch_ids(store)) == 36, "nothing went"
        monkeypatch.setattr("longthread.store.maintenance.retention.ENTRIES_AT_ONCE", 5)
        monkeypatch.setattr("longthread.store.maintenance.retention.RUNS_AT_ONCE", 2)
        went = await pruned(store, policy)
        assert (went.rows["entries"], went.touched) == (told.rows["entries"], 1) == (30, 1)
        assert (went.rows["events"], went.rows["steps"], went.rows["approvals"]) == (1, 1, 1)
        assert await branch_ids(store) == [f"{n}-{part}" for n in (11, 12) for part in "qra"]
        async with store.writing() as tx:
            assert [run.id for run in await runs.list_runs(tx, "t", limit=99)] == [run_id(12), run_id(11)]
            prompts = [await runs.saved_prompt(tx, "t", name) for name in ("unused", "p00000", "p00001", "used")]
            assert prompts == [None, None, b"prompt", b"by a step"]
            assert await log.count_entries(tx, "t") == 6
        assert await pruned(store, policy) == Pruned(), "the second time there is nothing"

    async def test_entries_go_up_to_the_first_one_that_is_not_old(self, store: Driver) -> None:
        await turns(store, 6, kind="plain")
        async with store.reading() as tx:
            at = (await log.find_entry(tx, "t", "4-q")).created_at
        policy = replace(ALL, entries_before=at.isoformat(timespec="microseconds"), window=1)
        assert (await pruned(store, policy)).rows["entries"] == 12
        assert (await branch_ids(store))[0] == "4-q"

    async def test_a_run_under_way_counts_on_and_is_read_beside_those_that_ended(self, store: Driver) -> None:
        await turns(store, 9, kind="plain")
        before = await seen(store)
        async with store.writing() as tx:
            await registered(tx, "o")
            lease = await runs.begin(tx, "t", NewRun(run_id(9), "q", None, "m", "auto", 5), owner="o", alive=alive)
            assert await runs.start_step(tx, lease, "model") == 18
            warning = Event("t", run_id(9), 2, "warning", {"message": "slow"}, datetime(2026, 1, 1, tzinfo=UTC))
            await run_events.append_events(tx, [warning])
        after = await seen(store)
        assert (after["last"].id, after["last"].status) == (run_id(9), "running")
        assert (after["runs"][1:], after["steps"][1:], after["events"][1:]) == (
            before["runs"],
            before["steps"],
            before["events"],
        )
        assert [warning] in after["typed"][0]
        assert [step.index for step in after["all steps"]] == list(range(19))

    async def test_ended_runs_are_read_together_as_one_by_one(self, store: Driver) -> None:
        await turns(store, 2 * len(KINDS))
        async with store.writing() as tx:
            await registered(tx, "o")
            await runs.begin(tx, "t", NewRun(run_id(2 * len(KINDS)), "q", None, "m", "auto", 5), owner="o", alive=alive)
        async with store.reading() as tx:
            every = await runs.list_runs(tx, "t", limit=99)
            live, *ended = every
            found = await ended_runs(tx, "t", [run.id for run in every] + ["none"])
            assert live.id not in found and set(found) == {run.id for run in ended}
            for run in ended:
                warnings = await run_events.events_of_type(tx, "t", run.id, "warning")
                steps, last = await runs.steps_of(tx, run), await run_events.last_event(tx, "t", run.id)
                assert found[run.id] == RunContent(run, steps, warnings, last)
            [(first, none), *bare] = await bare_steps(tx, "t")
            assert (first.id, none) == (live.id, None)
            assert [(run.id, [step.usage for step in steps or ()]) for run, steps in bare] == [
                (run.id, [step.usage for step in found[run.id].steps]) for run in ended
            ]
            ids = [run.id for run in ended]
            assert await wait_list.of_runs(tx, "t", ids) == [await wait_list.of_run(tx, "t", each) for each in ids]
            assert await runs.answers_of_runs(tx, "t", ids) == [await runs.answers(tx, "t", each) for each in ids]
            assert await ended_runs(tx, "t", []) == {}

    async def test_many_runs_go_a_few_at_once(self, store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("longthread.store.maintenance.retention.RUNS_AT_ONCE", 3)
        await turns(store, 70)
        async with store.reading() as tx:
            cut = (await runs.steps_of(tx, (await runs.list_runs(tx, "t", limit=99))[-30]))[-1].started_at
            before = [run.id for run in await runs.list_runs(tx, "t", limit=99)]
            size = await log.count_entries(tx, "t")
        policy = replace(ALL, runs_before=cut.isoformat(timespec="microseconds"))
        await pruned(store, policy)
        async with store.reading() as tx:
            assert [run.id for run in await runs.list_runs(tx, "t", limit=99)] == before[:41]
            assert await log.count_entries(tx, "t") == size
        await pruned(store, replace(ALL, runs_before=now()))
        async with store.writing() as tx:
            assert [run.id for run in await runs.list_runs(tx, "t", limit=99)] == [run_id(69)], "the last one stays"

    async def test_what_a_run_under_way_needs_stays(self, store: Driver) -> None:
        await turns(store, 6, kind="plain")
        lease = await begun(store)
        policy = replace(ALL, entries_before=now(), idle_before=now(), window=1)
        assert await pruned(store, policy) == Pruned(busy=1)
        async with store.writing() as tx:
            await runs.check(tx, lease)
            await wait_list.let_wait(tx, "t", "r1", [call(1)])
        await pruned(store, replace(policy, idle_before=None), alive=dead)
        async with store.reading() as tx:
            assert [each.call_id for each in await wait_list.pending(tx, "t", "r1")] == ["c1"]
        assert (await pruned(store, policy, alive=dead)).threads == 1

    async def test_what_is_found_of_old_entries_goes_with_them(self, store: Driver) -> None:
        embedder = HashEmbedder(same={"wharf": "harbour"})
        await talk(store, 40)
        await pass_over(store)
        await index_thread(store, "t")
        await embed_thread(store, embedder, "t")
        async with store.writing() as tx:
            await log.position(tx, "t")
            parts = [summaries.Span("crane", 1, 9, 5, now()), summaries.Span("crane", 75, 80, 3, now())]
            await summaries.add_topics(tx, "t", parts)
            assert (await summaries.list_most_mentioned_topics(tx, "t", 9))[-1] == ("crane", 8)
        went = await pruned(store, replace(ALL, entries_before=now(), window=10))
        assert went.rows["entries"] == 70
        texts = await found(store, "harbour", k=99)
        assert texts
        assert set(texts) <= {text for n in range(35, 40) for text in (f"harbour {n}?", f"quay {n}.")}
        assert set(await found(store, "wharf", embedder=embedder, k=99)) <= {
            *texts,
            *(f"quay {n}." for n in range(35, 40)),
        }
        async with store.reading() as tx:
            assert (await recall_index.extents(tx, "t"))[-1].last == 80
            assert await summaries.find(tx, "t") is not None, "the summary still tells of what went"
            assert await summaries.find_topic_spans(tx, Scope(USER), "harbour") == {}
            assert await summaries.list_topic_names(tx, Scope(USER)) == ["crane"]
            assert await summaries.list_most_mentioned_topics(tx, "t", 9) == [("crane", 3)], (
                "as often as what is left mentions it"
            )
        assert {"recall_segments", "recall_postings", "memory_vectors", "memory_topics"} <= went.rows.keys()

    async def test_threads_that_expired_go_whole_with_those_below(self, store: Driver) -> None:
        async with store.writing() as tx:
            for name, parent in (("top", None), ("below", "top"), ("kept", None)):
                await log.create_thread(tx, name, user_id=USER, parent=parent)
        await turns(store, 3, thread_id="top")
        async with store.writing() as tx:
            await attributes.set_expiry(tx, "below", datetime.now(UTC), user_id=USER)
        assert (await pruned(store, replace(ALL, now=now()))).threads == 0, "it goes with the one above, and not before"
        async with store.writing() as tx:
            await attributes.set_expiry(tx, "top", datetime.now(UTC) + timedelta(hours=1), user_id=USER)
        assert (await pruned(store, replace(ALL, now=now()))).threads == 0
        async with store.writing() as tx:
            await attributes.set_expiry(tx, "top", datetime.now(UTC), user_id=USER)
        assert (await pruned(store, replace(ALL, now=now()), apply=False)).threads == 2
        assert (await pruned(store, replace(ALL, now=now()))).threads == 2
        async with store.reading() as tx:
            assert [thread.id for thread in await listing.list_threads(tx, user_id=USER, below=True)] == ["kept"]

    async def test_expired_threads_are_deleted_once_by_two_at_once(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            async with first.writing() as tx:
                for n in range(6):
                    await log.create_thread(tx, f"t{n}", user_id=USER)
                    await attributes.set_expiry(tx, f"t{n}", datetime.now(UTC), user_id=USER)
            one, other = await asyncio.gather(expire(first), expire(second))
            assert one.threads + other.threads == 6
            async with first.reading() as tx:
                assert await listing.list_threads(tx, user_id=USER) == []

    async def test_the_newest_checkpoints_stay_with_what_they_are_made_of(self, store: Driver) -> None:
        graph = graph_on(store)
        for number in range(3):
            await turn(graph, f"ask {number}")
            await graph.ainvoke(Command(resume="yes"), at())
        await graph_turns(graph, "one", "ask 3")
        before = await history(store)
        old = await LongthreadSaver(store).aget_tuple(before[-1].config)
        assert old is not None
        inner = [each.config async for each in LongthreadSaver(store).alist(at()) if "inner" in _ns(each.config)][-1]
        for config in (old.config, inner):
            await LongthreadSaver(store).aput_writes(config, [("notes", ["of a task"])], "task")
        went = await pruned(store, RetentionPolicy())
        assert went.rows["checkpoints"] > 5
        assert went.rows["checkpoint_writes"] > 1
        assert went.rows["checkpoint_blobs"] > 0
        assert (await history(store))[0].values == before[0].values
        ended: dict[str, Any] = await graph_on(store).ainvoke(Command(resume="yes"), at())
        assert await said(store) == [message.text for message in ended["messages"]]
        assert await pruned(store, replace(ALL, now=now())) == Pruned()

    async def test_what_was_remembered_outlives_retention_unless_told(self, store: Driver) -> None:
        for n, with_memories in enumerate((False, True)):
            for kind in ("idle", "expired", "swept"):
                thread_id = f"{kind} {n}"
                await thread_with(store, "a", thread_id=thread_id)
                await kept(store, f"{kind} {n}", source=MemorySource(thread_id, (1,)))
                async with store.writing() as tx:
                    if kind != "idle":
                        await attributes.set_expiry(tx, thread_id, datetime.now(UTC), user_id=USER)
                if kind == "swept":
                    assert (await expire(store, with_memories=with_memories)).threads == 1
                    continue
                idle = now() if kind == "idle" else None
                expired = now() if kind == "expired" else None
                policy = replace(ALL, with_memories=with_memories, idle_before=idle, now=expired)
                for apply in (False, True):
                    told = await pruned(store, policy, apply=apply)
                    assert (told.threads, told.rows.get("memories", 0)) == (1, int(with_memories))
        assert await contents(store) == ["expired 0", "idle 0", "swept 0"]

    async def test_memories_that_expired_go_too(self, store: Driver) -> None:
        await kept(store, "lasting")
        async with store.writing() as tx:
            await remember(tx, OWNER, Statement("passing", expires_at=datetime.now(UTC) + SOON))
        await asyncio.sleep(2 * SOON.total_seconds())
        assert (await pruned(store, replace(ALL, now=now()), apply=False)).rows == {"memories": 1}
        assert (await pruned(store, replace(ALL, now=now()))).rows == {"memories": 1}
        assert await pruned(store, replace(ALL, now=now())) == Pruned()
        assert await contents(store) == ["lasting"]
