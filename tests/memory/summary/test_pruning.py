"""A pass over a thread: when it is due, what it leaves, and that nothing it is broken off at is lost or done twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.memory.threads import branch_of, counted, kept_of, talk, topics_of, turn, write

from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.memory.recall import Recaller
from longthread.memory.summary.digest import tokens_of
from longthread.memory.summary.pruning import PruningPolicy, left_out, prune_thread
from longthread.memory.summary.summaries import SummaryConfig
from longthread.metrics import PRUNED, SUMMARIES, Metric, Timer
from longthread.model.entry import Draft, ToolCall
from longthread.model.run import Segment
from longthread.model.thread import Scope
from longthread.store import log, runs, summaries
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.queries import Sql
from longthread.store.runs import NewRun
from longthread.testing.failpoints import Failpoints

pytestmark = pytest.mark.one_backend

POLICY = PruningPolicy(max_messages=40, threshold=10)


async def pass_over(store: Driver, thread_id: str = "t", policy: PruningPolicy = POLICY, **given: Any) -> Any:
    return await prune_thread(store, thread_id, policy, extract=counted, **given)


async def test_nothing_is_done_before_it_is_due(store: Driver) -> None:
    await talk(store, "t", 10)
    assert await pass_over(store) is None
    assert await pass_over(store, "nobody's") is None
    assert await kept_of(store, "t") is None


async def test_the_oldest_go_into_the_summary_and_the_window_begins_with_a_question(store: Driver) -> None:
    entries = await talk(store, "t", 12)
    kept = await pass_over(store)
    # 48 messages: 48 - 40 + 20 = 28 go, and the next one is a question.
    assert (kept.first_seq, kept.last_seq, kept.message_count) == (1, 28, 28)
    assert entries[28].role == "user"
    assert kept == await kept_of(store, "t")
    assert "How about 1?" in kept.summary
    assert "How about 7?" in kept.summary
    assert "How about 8?" not in kept.summary
    assert [entry.seq for entry in await branch_of(store, "t")] == list(range(1, 49)), "the log holds all"
    assert await topics_of(store, "t") == ["answers", "questions"]


async def test_the_documented_numbers(store: Driver) -> None:
    await talk(store, "t", 55)
    kept = await prune_thread(store, "t", PruningPolicy())
    assert kept is not None
    assert kept.message_count == 220 - 200 + 20


async def test_summaries_and_the_messages_that_go_into_them_are_counted(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = list[tuple[Metric, tuple[object, ...], float]]()
    monkeypatch.setattr(Metric, "add", lambda self, *labels, by=1: counted.append((self, labels, by)))
    monkeypatch.setattr(Timer, "note", lambda self, *labels, seconds: None)
    await talk(store, "t", 12)
    await pass_over(store)
    await pass_over(store)
    assert counted == [(SUMMARIES, ("digest",), 1), (PRUNED, (), 28)]
    counted.clear()
    await talk(store, "t", 8, first=13)
    await pass_over(store, summarizer=Writer())
    assert counted == [(SUMMARIES, ("digest",), 1), (PRUNED, (), 32), (SUMMARIES, ("model",), 1)]
    counted.clear()
    await pass_over(store, policy=replace(POLICY, summary=SummaryConfig(max_tokens=500)))
    assert counted == [(SUMMARIES, ("digest",), 1), (PRUNED, (), 0)], "made again in another way: nothing leaves twice"


class Writer:
    name, topics_only = "writer", False

    async def write(self, instructions: str, text: str) -> str:
        return "They asked a lot."


async def test_a_second_pass_changes_nothing(store: Driver) -> None:
    await talk(store, "t", 12)
    first = await pass_over(store)
    writes: list[str] = []
    assert await pass_over(Failpoints(store, writes.append)) == first
    assert writes == []
    assert await pass_over(store) == await kept_of(store, "t") == first


async def test_a_summary_goes_on_from_the_one_before(store: Driver) -> None:
    await talk(store, "t", 12)
    await pass_over(store)
    await talk(store, "t", 8, first=13)
    kept = await pass_over(store)
    assert (kept.first_seq, kept.last_seq, kept.message_count) == (1, 60, 60)
    assert "How about 1?" in kept.summary
    assert "How about 15?" in kept.summary
    async with store.reading() as tx:
        rows = await tx.fetch("select_summary", thread_id="t", topics=9)
    assert len(rows) == 1
    assert await mentions(store) == [("answers", 15), ("questions", 15)]


async def mentions(store: Driver) -> list[tuple[str, int]]:
    async with store.reading() as tx:
        rows = await tx.fetch(Sql("SELECT topic, mention_count FROM memory_topics ORDER BY topic"))
    return [(row["topic"], int(row["mention_count"])) for row in rows]


async def test_units_are_not_parted_and_ids_of_calls_may_come_again(store: Driver) -> None:
    long = turn("long", calls=40)
    await write(store, "t", long)
    kept = await pass_over(store)
    assert kept.last_seq == 63, "82 messages: 62 should go, and the 62nd is a call"
    last = (await branch_of(store, "t"))[kept.last_seq - 1]
    assert last.role == "tool"


async def test_a_call_with_several_results_stays_whole(store: Driver) -> None:
    calls = tuple(ToolCall(f"c{n}", "look", {}) for n in range(60))
    results = [Draft(f"r{n}", "tool", "x", tool_call_id=f"c{n}") for n in range(60)]
    await write(store, "t", [Draft("q", "user", "?"), Draft("a", "assistant", "", calls), *results])
    kept = await pass_over(store)
    assert kept.last_seq == 1


async def test_what_a_view_had_no_room_for_is_summarised_and_nothing_else(store: Driver) -> None:
    entries = await talk(store, "t", 9)
    view = [Segment(1, 13, "left out", 0, "budget"), Segment(14, 36, "whole", 100)]
    assert left_out(view, 0) == 13
    assert left_out(view, 4) == 9
    kept = await pass_over(store, view=view)
    assert kept.last_seq == 12, "the message that is shown first is in the turn that begins with entry 13"
    assert entries[12].role == "user"
    assert await pass_over(store, view=[Segment(1, 9, "left out", 0, "budget"), Segment(10, 36, "whole", 9)]) == kept
    # Of a view of another branch nothing is known.
    assert await pass_over(store, view=[Segment(13, 99, "left out", 0, "budget"), Segment(100, 101, "whole")]) == kept


async def test_a_broken_off_run_keeps_its_question_in_the_window(store: Driver) -> None:
    await talk(store, "t", 3)
    async with store.writing() as tx:
        plan = NewRun("r", "", None, "m", "auto", 12, question_seq=9)
        await runs.begin(tx, "t", plan, owner="gone", alive=lambda owner: False)
    await talk(store, "t", 10, first=4)
    assert (await pass_over(store)).last_seq == 8


async def test_the_index_is_made_before_anything_leaves(store: Driver) -> None:
    await talk(store, "t", 12)
    recaller = Recaller(store)
    order: list[str] = []

    async def prepare() -> None:
        order.append(str(await kept_of(store, "t")))
        await recaller.prepare(Scope("u", "t"))

    await pass_over(store, prepare=prepare)
    assert order == ["None"]
    async with store.reading() as tx:
        assert await tx.fetch("select_recall_segments", thread_id="t")


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("before", [False, True], ids=["first pass", "second pass"])
async def test_broken_off_anywhere_nothing_has_happened_and_another_pass_does_it(store: Driver, before: bool) -> None:
    reached: list[str] = []

    async def thread(thread_id: str) -> None:
        await talk(store, thread_id, 12)
        if before:
            await pass_over(store, thread_id)
            await talk(store, thread_id, 8, first=13)

    async def whole(thread_id: str) -> Any:
        return await kept_of(store, thread_id), await branch_of(store, thread_id), await topics_of(store, thread_id)

    await thread("whole")
    await pass_over(Failpoints(store, reached.append), "whole")
    wanted, _, topics = await whole("whole")
    boundaries = len(reached)
    assert boundaries > 8
    await thread("t")
    earlier = await whole("t")
    for number in range(1, boundaries):
        count = 0

        def reach(boundary: str, number: int = number) -> None:
            nonlocal count
            count += 1
            if count == number:
                raise Crash(boundary)

        with pytest.raises(Crash):
            await pass_over(Failpoints(store, reach), "t")
        assert await whole("t") == earlier, reached[number - 1]
    assert await pass_over(store, "t") == wanted
    assert (await whole("t"))[2] == topics


async def test_of_several_passes_at_once_one_counts(store: Driver) -> None:
    await talk(store, "t", 12)
    await asyncio.gather(*(pass_over(store) for _ in range(4)))
    kept = await kept_of(store, "t")
    assert kept is not None
    assert kept.message_count == 28
    assert await mentions(store) == [("answers", 7), ("questions", 7)]


async def test_back_before_the_mark_it_is_made_anew(store: Driver) -> None:
    await talk(store, "t", 12)
    await pass_over(store)
    async with store.writing() as tx:
        await log.set_tip(tx, "t", 8)
    assert await pass_over(store) is None
    assert await kept_of(store, "t") is None
    assert await mentions(store) == []
    other = [draft for n in range(20, 31) for draft in turn(str(n))]
    await write(store, "t", other, parent=8)
    kept = await pass_over(store)
    assert kept.message_count == 32
    assert "How about 2?" in kept.summary
    assert "How about 3?" not in kept.summary, "that was said on the branch that was left"
    assert "How about 20?" in kept.summary
    # Back to the other branch: the same again.
    async with store.writing() as tx:
        await log.set_tip(tx, "t", 48)
    again = await pass_over(store)
    assert (again.last_seq, again.message_count) == (28, 28)
    assert "How about 3?" in again.summary


async def test_made_in_another_way_it_is_made_anew(store: Driver) -> None:
    await talk(store, "t", 12)
    first = await pass_over(store)
    other = PruningPolicy(40, 10, SummaryConfig(max_tokens=200))
    second = await pass_over(store, policy=other)
    assert (second.last_seq, second.message_count) == (first.last_seq, first.message_count)
    assert second.config_hash != first.config_hash
    assert tokens_of(second.summary) <= 200 < tokens_of(first.summary)
    assert await mentions(store) == [("answers", 7), ("questions", 7)]
    async with store.writing() as tx:
        await summaries.save(tx, "t", summaries.ThreadSummary("x", 27, other.summary.hash, 1, 28))
    assert await pass_over(store, policy=other) == second, "it said that it told of one entry less"
    async with store.writing() as tx:
        await summaries.save(tx, "t", summaries.ThreadSummary("", 28, other.summary.hash, 1, 28))
    assert await pass_over(store, policy=other) == second


async def test_a_long_thread_is_read_page_by_page(store: Driver) -> None:
    await talk(store, "t", 400)
    told: list[int] = []
    kept = await pass_over(store, progress=told.append)
    assert kept.message_count == 1580
    assert told == [500, 1000, 1500, 1580]
    assert tokens_of(kept.summary) <= 1000
    assert dict(await mentions(store)) == {"answers": 395, "questions": 395}


async def test_entries_that_retention_deletes_leave_the_summary(store: Driver) -> None:
    await talk(store, "t", 12)
    first = await pass_over(store)
    await talk(store, "t", 12, first=13)

    async def cut(window: int) -> None:
        retention = Retention(RetentionPolicy(entries_before="9", window=window), CheckpointKeeper(), lambda o: True)
        await prune(store, retention, lambda *_: None, apply=True)

    await cut(60)  # the mark's own entry is gone
    assert (await branch_of(store, "t"))[0].seq == 37
    assert await kept_of(store, "t") == first
    second = await pass_over(store)
    assert (second.first_seq, second.last_seq) == (1, 76)
    assert second.message_count == 28 + 40
    assert "How about 1?" in second.summary
    assert "How about 10?" in second.summary
    await cut(24)
    assert await pass_over(store) == second


async def test_retention_takes_a_summary_of_a_branch_that_was_left(store: Driver) -> None:
    await talk(store, "t", 12)
    await pass_over(store)
    await write(store, "t", [draft for n in range(20, 40) for draft in turn(str(n))], parent=8)
    retention = Retention(RetentionPolicy(entries_before="9", window=60), CheckpointKeeper(), lambda o: True)
    await prune(store, retention, lambda *_: None, apply=True)
    assert await kept_of(store, "t") is None
    assert await mentions(store) == []
    assert "How about 3?" not in (await pass_over(store)).summary


@pytest.mark.parametrize("how", ["deleted", "made again"])
async def test_a_thread_that_is_deleted_meanwhile_does_not_come_back(store: Driver, how: str) -> None:
    await talk(store, "t", 12)

    async def prepare() -> None:
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id="u")
        if how == "made again":
            await talk(store, "t", 12)

    assert await pass_over(store, prepare=prepare) is None
    assert await kept_of(store, "t") is None
    assert await mentions(store) == []


async def test_a_conversation_that_went_elsewhere_meanwhile_keeps_what_it_had(store: Driver) -> None:
    await talk(store, "t", 12)

    async def prepare() -> None:
        async with store.writing() as tx:
            await log.set_tip(tx, "t", 8)

    assert await pass_over(store, prepare=prepare) is None
    assert await kept_of(store, "t") is None


async def test_a_summary_of_somebody_elses_program_is_shown_and_added_to(store: Driver) -> None:
    await talk(store, "t", 12)
    async with store.writing() as tx:
        await tx.run(
            Sql("INSERT INTO conversation_summaries (thread_id, summary) VALUES ('t', 'Theirs: 预算是700元.')")
        )
    async with store.reading() as tx:
        assert (await summaries.find_compressed(tx, "t")).summary == "Theirs: 预算是700元."
    before = await kept_of(store, "t")
    assert (before.summary, before.last_seq) == ("Theirs: 预算是700元.", 0)
    kept = await pass_over(store)
    assert kept.message_count == 28
    assert kept.summary.startswith("Theirs: 预算是700元.\n\n")


async def test_a_summary_that_a_person_changed_is_not_made_again(store: Driver) -> None:
    await talk(store, "t", 12)
    kept = await pass_over(store)
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE conversation_summaries SET summary = 'A person wrote this.' WHERE thread_id = 't'"))
    again = await pass_over(store, policy=replace(POLICY, summary=SummaryConfig(max_tokens=500)))
    assert (again.summary, again.last_seq) == ("A person wrote this.", kept.last_seq)
    await talk(store, "t", 12, first=13)
    more = await pass_over(store)
    assert more.last_seq > kept.last_seq
    assert more.summary.startswith("A person wrote this.\n\n")


async def test_chinese_threads_are_told_in_chinese(store: Driver) -> None:
    await talk(store, "t", 12, chinese=True)
    kept = await pass_over(store)
    assert kept.summary.startswith("之前的问题:")
    assert "预算是700元" in kept.summary
