"""Background work is claimed: no two processes do it at once, and none is left undone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from tests.analysts import OpenAnalyst
from tests.runs.test_workers import dead_worker, until
from tests.script import COUNT, finish

from longthread.memory import background
from longthread.memory.embedder import EmbedderFailed
from longthread.memory.recall import Recaller
from longthread.memory.user_memories import Memories
from longthread.model.memory import ANALYST, Statement
from longthread.runs import analyst as analysts
from longthread.runs.analyst import Analyst
from longthread.runs.worker import RunWorker
from longthread.store import leases, summaries
from longthread.store.driver import Driver
from longthread.store.maintenance import jobs
from longthread.store.maintenance.jobs import MOST_FAILURES, Job, JobClaims
from longthread.store.memories import Owner
from longthread.store.queries import Sql
from longthread.store.summaries import ThreadSummary
from longthread.testing import ScriptedChatModel
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

USER = "default"
SUMMARY = Job("summary", "t")


class Summarises(ScriptedChatModel):
    """Answers at once, and writes a summary when its gate is open."""

    def __init__(self, words: str, *, opened: bool = False) -> None:
        def reply(messages: list[BaseMessage]) -> Any:
            if _asks_for_a_summary(messages):
                return AIMessage(words)
            if "index of a long conversation" in messages[0].text:
                return AIMessage('["customers"]')
            return finish("3.") if messages[-1].type == "tool" else COUNT

        super().__init__(reply)
        self.metadata = {"asked": asyncio.Event(), "gate": asyncio.Event(), "summaries": 0}
        if opened:
            self.gate.set()

    async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        if _asks_for_a_summary(messages):
            self.noted["summaries"] += 1
            self.asked.set()
            await self.gate.wait()
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk

    @property
    def noted(self) -> dict[str, Any]:
        assert self.metadata is not None
        return self.metadata

    @property
    def asked(self) -> asyncio.Event:
        found: asyncio.Event = self.noted["asked"]
        return found

    @property
    def gate(self) -> asyncio.Event:
        found: asyncio.Event = self.noted["gate"]
        return found


def _asks_for_a_summary(messages: list[BaseMessage]) -> bool:
    return "memory of a long conversation" in messages[0].text


async def opened(open_analyst: OpenAnalyst, model: Summarises) -> Analyst:
    return await open_analyst(model, memory_enable_summary=True, memory_max_messages_per_thread=8)


async def turn(analyst: Analyst, shop: str) -> None:
    handle = await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)
    assert (await handle.wait()).type == "finished"
    await asyncio.gather(*(each for each in asyncio.all_tasks() if each.get_name().startswith("run ")))


async def until_it_summarises(analyst: Analyst, model: Summarises, shop: str) -> None:
    """Talk until a summary is due, and the model is asked for it."""
    for _ in range(4):
        await turn(analyst, shop)
        if analyst.pruner.is_busy:
            await model.asked.wait()
            return
    raise AssertionError("no summary is due")


async def rows(store: Driver) -> list[dict[str, Any]]:
    async with store.reading() as tx:
        return [dict(row) for row in await tx.fetch(Sql("SELECT * FROM background_jobs ORDER BY kind, subject"))]


async def is_done(store: Driver) -> bool:
    return not await rows(store)


async def kept(store: Driver) -> ThreadSummary:
    async with store.reading() as tx:
        found = await summaries.find(tx, "t")
    assert found is not None
    return found


async def left_by_a_dead_process(store: Driver) -> None:
    gone = dead_worker()
    async with store.writing() as tx:
        await leases.register(tx, gone)
        await tx.run(Sql("UPDATE background_jobs SET owner = :owner"), owner=gone)


async def test_a_summary_under_way_is_not_begun_elsewhere(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    one, other = Summarises("The first's."), Summarises("The second's.", opened=True)
    first, second = await opened(open_analyst, one), await opened(open_analyst, other)
    await until_it_summarises(first, one, shop)
    assert (await kept(store)).unwritten
    second.claims.start()
    await turn(second, shop)
    await second.pruner.settle()
    assert other.noted["summaries"] == 0, "the first one is at it"
    one.gate.set()
    await first.pruner.settle()
    assert (await kept(store)).summary == "The first's."
    assert (one.noted["summaries"], await rows(store)) == (1, [])


async def test_a_dead_process_s_summary_is_written_by_another(
    open_analyst: OpenAnalyst, store: Driver, shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = Summarises("The first's."), Summarises("The second's.", opened=True)
    first, second = await opened(open_analyst, one), await opened(open_analyst, other)
    await until_it_summarises(first, one, shop)
    await left_by_a_dead_process(store)
    second.claims.start()
    await until(lambda: is_done(store))
    assert ((await kept(store)).summary, other.noted["summaries"]) == ("The second's.", 1)
    one.gate.set()
    await first.pruner.settle()
    assert (await kept(store)).summary == "The second's.", "who comes late writes nothing"
    assert "came late" in caplog.text


async def test_a_process_that_ends_gives_its_summary_back(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "CLOSE_SECONDS", 0.01)
    one, other = Summarises("The first's."), Summarises("The second's.", opened=True)
    first, second = await opened(open_analyst, one), await opened(open_analyst, other)
    await until_it_summarises(first, one, shop)
    await first.pruner.close()
    [row] = await rows(store)
    assert (row["owner"], row["failures"]) == (None, 0)
    second.claims.start()
    await until(lambda: is_done(store))
    assert (await kept(store)).summary == "The second's."


async def test_what_nobody_noted_is_found_by_a_server_that_starts(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "CLOSE_SECONDS", 0.01)
    one, other = Summarises("The first's."), Summarises("The second's.", opened=True)
    first, second = await opened(open_analyst, one), await opened(open_analyst, other)
    await until_it_summarises(first, one, shop)
    await first.pruner.close()
    async with store.writing() as tx:
        await tx.run(Sql("DELETE FROM background_jobs"))
    second.claims.start()

    async def is_written() -> bool:
        return not (await kept(store)).unwritten

    await until(is_written)
    assert (await kept(store)).summary == "The second's."


async def test_a_worker_that_is_taken_for_dead_breaks_its_jobs_off(
    open_analyst: OpenAnalyst, store: Driver, shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = Summarises("The first's.")
    first = await opened(open_analyst, model)
    await until_it_summarises(first, model, shop)
    async with store.writing() as tx:
        await leases.remove(tx, await first.worker.id())
    first.worker.wake()
    await first.pruner.settle()
    assert "taken for dead" in caplog.text
    assert (await kept(store)).unwritten
    [row] = await rows(store)
    assert (row["owner"], row["failures"]) == (None, 0), "it gave the job back before anybody claimed it"


async def test_a_job_that_cannot_be_done_waits_longer_and_is_given_up(
    open_analyst: OpenAnalyst,
    store: Driver,
    shop: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = Summarises("The first's."), Summarises("The second's.", opened=True)
    first, second = await opened(open_analyst, one), await opened(open_analyst, other)
    await until_it_summarises(first, one, shop)
    await left_by_a_dead_process(store)

    async def refuse(thread_id: str) -> None:
        raise EmbedderFailed(ValueError("no"))

    monkeypatch.setattr(second.runs, "summarizer", refuse)
    second.claims.start()

    async def failed() -> bool:
        [row] = await rows(store)
        return row["owner"] is None

    await until(failed)
    [row] = await rows(store)
    assert row["failures"] == 2, "of the dead one, and of this one"
    assert row["due_at"] > 0
    assert "is tried again later" in caplog.text
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE background_jobs SET due_at = 0, failures = :most"), most=MOST_FAILURES)

    async def given_up() -> bool:
        return "is given up" in caplog.text and await failed()

    await until(given_up)
    assert other.noted["summaries"] == 0
    assert await jobs.note_unwritten(store) == 0, "a server that starts does not begin anew"


class Counted(HashEmbedder):
    """Counts the texts that it embeds; it fails while it is `broken`, and waits for its gate."""

    def __init__(self, *, broken: bool = False, shut: bool = False) -> None:
        super().__init__()
        self.broken = broken
        self.texts = 0
        self.asked, self.gate = asyncio.Event(), asyncio.Event()
        if not shut:
            self.gate.set()

    async def documents(self, texts: Any) -> Any:
        self.texts += len(texts)
        self.asked.set()
        await self.gate.wait()
        if self.broken:
            raise ConnectionError("away")
        return await super().documents(texts)


async def behind(analyst: Analyst | Recaller, store: Driver) -> bool:
    async with store.reading() as tx:
        [row] = await tx.fetch(
            Sql(
                "SELECT t.entry_count - coalesce(max(m.last_seq), 0) AS missing FROM threads t "
                "LEFT JOIN recall_embedded m ON m.thread_id = t.id WHERE t.id = 't' GROUP BY t.entry_count"
            )
        )
    return int(row["missing"]) > 0


async def test_entries_are_embedded_once_and_all(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Counted(shut=True), Counted()
    monkeypatch.setattr(analysts, "embedder_of", lambda settings: one)
    first = await open_analyst(Summarises(""))
    monkeypatch.setattr(analysts, "embedder_of", lambda settings: other)
    second = await open_analyst(Summarises(""))
    await turn(first, shop)
    await one.asked.wait()
    await turn(second, shop)
    await second.recaller.settle()
    assert other.texts == 0, "the first one is at it"
    one.gate.set()
    await first.recaller.settle()
    assert not await behind(first, store), "with what the second one's turn wrote meanwhile"
    assert await rows(store) == []


async def test_entries_and_memories_that_an_embedder_failed_at_are_embedded_later_by_another(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Counted(broken=True), Counted()
    monkeypatch.setattr(analysts, "embedder_of", lambda settings: one)
    first = await open_analyst(Summarises(""))
    monkeypatch.setattr(analysts, "embedder_of", lambda settings: other)
    second = await open_analyst(Summarises(""))
    await turn(first, shop)
    await first.recaller.settle()
    await first.memories.remember(Owner(USER, ANALYST), Statement("The customers are in the UK."))
    await first.memories.embed(USER)
    assert [(row["kind"], row["owner"]) for row in await rows(store)] == [("memories", None), ("vectors", None)]
    assert await behind(first, store)
    asked = one.texts
    await turn(first, shop)
    await first.recaller.settle()
    assert one.texts == asked, "it rests"
    second.claims.start()
    async with store.reading() as tx:
        assert await jobs.waiting(tx, limit=9) == [], "not yet"
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE background_jobs SET due_at = 0"))
    await until(lambda: is_done(store))
    assert not await behind(second, store)
    assert await Memories(store, second.recaller.asker)._without(other, USER) == []


async def test_without_a_worker_nothing_is_claimed(store: Driver, caplog: pytest.LogCaptureFixture) -> None:
    claims = JobClaims(store)
    async with claims.claim(SUMMARY) as ours:
        assert ours
        assert await rows(store) == []
    await claims.later(SUMMARY, 1)
    assert await rows(store) == []


async def test_the_task_that_has_a_job_may_claim_it_again(store: Driver) -> None:
    worker = RunWorker(store)
    claims, job = JobClaims(store, worker), Job("retention")
    async with claims.claim(job) as ours, claims.claim(job) as again:
        assert (ours, again) == (True, True)
        assert len(await rows(store)) == 1

        async def another() -> bool:
            async with claims.claim(job) as got:
                return got

        assert await asyncio.create_task(another()) is False
    assert await rows(store) == []
    await worker.close()
