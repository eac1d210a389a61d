"""Summaries of long threads: the text, the mark up to which it covers the log, and the topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.contract.base import USER, Contract, extend
from tests.contract.recall import say
from tests.contract.runs import alive

from longthread.errors import EntryNotFound, InvalidInput
from longthread.memory.index.shards import bind_user
from longthread.memory.index.vectors import embed_thread
from longthread.memory.recall import Question, Recaller
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.summary.topics import Topic
from longthread.model.entry import Draft
from longthread.model.fold import Compressed
from longthread.model.thread import Scope
from longthread.store import log, recall_index, runs, summaries
from longthread.store.driver import Driver
from longthread.store.incarnation import is_cut
from longthread.store.maintenance.deletions import delete_entries, expect_free
from longthread.store.queries import Sql
from longthread.store.runs import NewRun
from longthread_testing.embedding import HashEmbedder

POLICY = PruningPolicy(max_messages=40, threshold=10)


def counted(texts: Sequence[str], known: Sequence[str]) -> list[Topic]:
    return [Topic(name, sum(name in text for text in texts)) for name in ("harbour", "quay")]


async def talk(store: Driver, turns: int, *, thread_id: str = "t") -> None:
    await say(store, [text for n in range(turns) for text in (f"harbour {n}?", f"quay {n}.")], thread_id=thread_id)


async def pass_over(store: Driver, thread_id: str = "t", **given: Any) -> summaries.ThreadSummary | None:
    return await prune_thread(store, thread_id, POLICY, extract=counted, **given)


async def kept_of(store: Driver, thread_id: str = "t") -> summaries.ThreadSummary | None:
    async with store.reading() as tx:
        thread = await summaries.find_thread(tx, thread_id)
    return thread.kept if thread else None


class SummaryContract(Contract):
    """`longthread.store.summaries` and `topics`."""

    async def test_the_oldest_go_into_a_summary_that_comes_back_with_its_topics(self, store: Driver) -> None:
        await talk(store, 10)
        assert await pass_over(store) is await kept_of(store) is None
        await talk(store, 20)
        kept = await pass_over(store)
        assert kept is not None
        assert kept == await kept_of(store)
        assert (kept.first_seq, kept.last_seq, kept.message_count) == (1, 40, 40)
        assert "harbour 3?" in kept.summary
        async with store.reading() as tx:
            view = await summaries.find(tx, "t")
            compressed = await summaries.find_compressed(tx, "t")
            assert await summaries.find_compressed(tx, "none") is None
            assert await summaries.list_most_mentioned_topics(tx, "t", 1) == [("harbour", 20)]
        assert view is not None
        assert sorted(view.topics) == ["harbour", "quay"]
        assert compressed == Compressed(kept.summary, kept.config_hash, 40, 40)
        await talk(store, 20)
        more = await pass_over(store)
        assert more is not None
        assert more.last_seq > kept.last_seq
        async with store.writing() as tx:
            await log.position(tx, "t")
            await summaries.drop(tx, "t")
        assert await kept_of(store) is None
        async with store.reading() as tx:
            assert await summaries.list_topic_names(tx, Scope(USER)) == []
            assert await summaries.list_most_mentioned_topics(tx, "t", 9) == []

    async def test_a_summary_of_a_branch_that_was_left_is_made_anew(self, store: Driver) -> None:
        await talk(store, 30)
        before = await pass_over(store)
        assert before is not None
        async with store.reading() as tx:
            assert await summaries.is_behind(tx, "t", mark=before.last_seq, tip=60, first_seq=1)
        await extend(store, Draft("other", "user", "another way"), parent=4)
        async with store.reading() as tx:
            assert not await summaries.is_behind(tx, "t", mark=before.last_seq, tip=61, first_seq=1)
        assert await pass_over(store) is await kept_of(store) is None

    async def test_a_summary_of_what_was_replaced_is_emptied_and_made_again(self, store: Driver) -> None:
        await talk(store, 30)
        before = await pass_over(store)
        assert before is not None
        for seq, empty in ((before.last_seq + 1, False), (3, True)):
            async with store.writing() as tx:
                await log.position(tx, "t")
                await summaries.outdate(tx, "t", seq)
            kept = await kept_of(store)
            assert kept is not None
            assert (kept.summary == "", kept.last_seq) == (empty, before.last_seq)
            async with store.reading() as tx:
                assert (await summaries.list_topic_names(tx, Scope(USER)) == []) is empty
                assert (await summaries.list_most_mentioned_topics(tx, "t", 9) == []) is empty
        assert await pass_over(store) == before

    async def test_a_forgotten_message_leaves_log_index_vectors_and_summary(self, store: Driver) -> None:
        await talk(store, 30)
        recaller = Recaller(store, HashEmbedder())
        await recaller.prepare(Scope(USER, "t"))
        await recaller.close()
        await bind_user(store, USER, least=1)
        before = await pass_over(store)
        assert before is not None
        async with store.writing() as tx:
            birth_id = (await recall_index.birth_id(tx, "t")) or ""
            await expect_free(tx, "t")
            gone = await log.entries_at(tx, "t", {7, 8, before.last_seq, 60})
            await delete_entries(tx, "t", USER, [gone[seq] for seq in sorted(gone)])
            assert is_cut(birth_id, (await recall_index.birth_id(tx, "t")) or "")
            assert not is_cut(birth_id, birth_id)
        async with store.reading() as tx:
            assert await log.position(tx, "t") == (59, 60)
            left = await log.branch(tx, "t", 59)
            seqs = [entry.seq for entry in left]
            assert seqs == [seq for seq in range(1, 60) if seq not in gone]
            assert [entry.parent_seq for entry in left] == [0, *seqs[:-1]]
            found = await topics_of_vectors(store)
            assert found.keys() == set(seqs)
            with pytest.raises(EntryNotFound):
                await log.branch(tx, "t", 60)
        kept = await kept_of(store)
        assert kept is not None
        assert (kept.summary, kept.last_seq) == ("", before.last_seq - 1)
        again = await pass_over(store)
        assert again is not None
        assert (again.last_seq, again.message_count) == (before.last_seq - 1, before.message_count - 3)
        for scope in (Scope(USER), Scope(USER, "t")):
            hits = (await Recaller(store).find(Question("harbour 3?", scope, k=99, neighbours=0))).hits
            assert "harbour 3?" not in {hit.entry.text for hit in hits}
            assert "harbour 2?" in {hit.entry.text for hit in hits}
        async with store.writing() as tx:
            await log.position(tx, "t")
            first = await log.entries_at(tx, "t", set(range(1, again.last_seq + 1)))
            await delete_entries(tx, "t", USER, list(first.values()))
            assert (await log.branch(tx, "t", 59))[0].parent_seq == 0
        assert await kept_of(store) is None

    async def test_what_runs_refer_to_is_not_forgotten_alone(self, store: Driver) -> None:
        await talk(store, 2)
        async with store.writing() as tx:
            await runs.begin(tx, "t", NewRun("r1", "", None, "model", "auto", 5), owner="owner", alive=alive)
            with pytest.raises(InvalidInput, match="whole thread"):
                await expect_free(tx, "t")

    async def test_calls_have_their_results(self, store: Driver) -> None:
        await talk(store, 1)
        await extend(store, Draft("r", "tool", "42", tool_call_id="c 'é'"))
        async with store.reading() as tx:
            assert await log.results_of(tx, "t", ["c 'é'", "none"]) == [3]

    async def test_what_a_run_under_way_asked_stays_in_the_window(self, store: Driver) -> None:
        await talk(store, 10)
        async with store.reading() as tx:
            assert await summaries.live_question(tx, "t") is None
        plan = NewRun("r1", "", None, "model", "auto", 5, question_seq=21)
        async with store.writing() as tx:
            lease = await runs.begin(tx, "t", plan, owner="owner", alive=alive)
        await talk(store, 20)
        async with store.reading() as tx:
            assert await summaries.live_question(tx, "t") == 21
        kept = await pass_over(store)
        assert kept is not None
        assert kept.last_seq == 20
        async with store.writing() as tx:
            await runs.end(tx, lease, "finished", {})
        kept = await pass_over(store)
        assert kept is not None
        assert kept.last_seq == 20, "what is left is no more than the window"

    async def test_stretches_are_found_by_their_topic(self, store: Driver) -> None:
        await talk(store, 30)
        await talk(store, 30, thread_id="second")
        await pass_over(store)
        await pass_over(store, "second")
        async with store.reading() as tx:
            assert sorted(await summaries.list_topic_names(tx, Scope(USER))) == ["harbour", "quay"]
            assert await summaries.list_topic_names(tx, Scope("other")) == []
            spans = await summaries.find_topic_spans(tx, Scope(USER), "quay")
        assert {name: (each[0].first, each[-1].last) for name, each in spans.items()} == {
            "t": (1, 40),
            "second": (1, 40),
        }
        hits = (await Recaller(store).find(Question("", Scope(USER, "t"), k=99, topic="quay"))).hits
        assert {hit.entry.seq for hit in hits} == set(range(2, 41, 2))

    async def test_a_vector_has_the_topics_of_the_stretches_that_its_entry_stands_in(self, store: Driver) -> None:
        await talk(store, 30)
        await embed_thread(store, HashEmbedder(), "t")
        assert set((await topics_of_vectors(store)).values()) == {()}
        kept = await pass_over(store)
        assert kept is not None
        await talk(store, 2)
        await embed_thread(store, HashEmbedder(), "t")
        told = await topics_of_vectors(store)
        assert len(told) == 64
        assert {seq for seq, names in told.items() if names} == set(range(1, kept.last_seq + 1))
        assert told[1] == ("harbour", "quay")
        async with store.writing() as tx:
            await log.position(tx, "t")
            await tx.run(Sql("DELETE FROM memory_vectors"))
            await tx.run(Sql("DELETE FROM recall_embedded"))
        await embed_thread(store, HashEmbedder(), "t")
        assert await topics_of_vectors(store) == told, "those that are made later have them too"
        async with store.writing() as tx:
            await log.position(tx, "t")
            await summaries.drop(tx, "t")
        assert set((await topics_of_vectors(store)).values()) == {()}


async def topics_of_vectors(store: Driver) -> dict[int, tuple[str, ...]]:
    array = "topics" if store.dialect == "sqlite" else "CAST(to_json(topics) AS TEXT)"
    async with store.reading() as tx:
        rows = await tx.fetch(Sql(f"SELECT seq, {array} AS topics FROM memory_vectors ORDER BY seq"))
    return {int(row["seq"]): tuple(json.loads(row["topics"])) for row in rows}
