"""An embedder that fails is left alone for a while, and people are told which one it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.memory.talking import say

from longthread.errors import StoreFull
from longthread.memory import embedder as embedder_module
from longthread.memory import recall
from longthread.memory.embedder import QUERY_SECONDS, Asker, EmbedderPause, Vectors, reason_of
from longthread.memory.index import indexer
from longthread.memory.index.indexer import index_all
from longthread.memory.recall import Question, Recaller
from longthread.memory.user_memories import Memories
from longthread.model.thread import Scope
from longthread.store.driver import Driver
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

MINE = Scope("u", "t")


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(embedder_module, "time", made)
    return made


class Remote(HashEmbedder):
    """An embedder with an address, which may be gone, and counts what it is asked."""

    address = "http://embedders.example/v1"

    def __init__(self, *, documents: bool = True, queries: bool = True) -> None:
        super().__init__()
        self.works = {"documents": documents, "queries": queries}
        self.asked = {"documents": 0, "queries": 0}

    def _called(self, what: str) -> None:
        self.asked[what] += 1
        if not self.works[what]:
            raise ConnectionError("no route to host")

    async def documents(self, texts: Sequence[str]) -> Vectors:
        self._called("documents")
        return await super().documents(texts)

    async def query(self, text: str) -> Vectors:
        self._called("queries")
        return await super().query(text)


def test_a_rest_grows_with_each_failure_and_ends_with_success(clock: Clock) -> None:
    rest, seen = EmbedderPause(), []
    assert rest.seconds_left == 0
    for _ in range(7):
        rest.note_failure()
        seen.append(rest.seconds_left)
        clock.now += rest.seconds_left
        assert rest.seconds_left == 0
    assert seen == [60, 120, 240, 480, 960, 960, 960]
    rest.note_success()
    rest.note_failure()
    assert rest.seconds_left == 60


async def test_passes_leave_a_broken_embedder_alone_and_name_it(
    store: Driver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Remote(documents=False)
    recaller = Recaller(store, embedder)
    memories = Memories(store, recaller.asker)
    await say(store, ["the walrus"])
    [warning] = await recaller.prepare(MINE)
    name = "hash:words at http://embedders.example/v1"
    assert warning == f"The embedder {name} does not work: no route to host"
    assert warning in caplog.text
    tried = dict(embedder.asked)
    caplog.clear()
    for turn in range(3):
        await say(store, [f"turn {turn}"])
        [warning] = await recaller.prepare(MINE)
        assert f"The embedder {name} did not work" in warning
        assert await memories.embed("u") == [warning]
    assert (embedder.asked, caplog.text) == (tried, "")
    assert (await recaller.find(Question("walrus", MINE))).warnings == [], "what it can do is asked of it"
    clock.now += 60
    embedder.works["documents"] = True
    assert await recaller.prepare(MINE) == []
    assert [hit.entry.text for hit in (await recaller.find(Question("walrus", MINE, k=1))).hits] == ["the walrus"]


async def test_one_that_takes_no_questions_is_not_given_documents(store: Driver, clock: Clock) -> None:
    embedder = Remote(queries=False)
    recaller = Recaller(store, embedder)
    await say(store, ["the walrus"])
    [warning] = (await recaller.find(Question("walrus", MINE))).warnings
    assert "hash:words at http://embedders.example/v1 does not work: found by keywords alone" in warning
    asked = dict(embedder.asked)
    assert "did not work" in (await recaller.prepare(MINE))[0]
    assert embedder.asked == asked


async def test_one_that_is_too_slow_for_haste_is_asked_by_others(clock: Clock) -> None:
    class Slow(HashEmbedder):
        asked = 0

        async def query(self, text: str) -> Vectors:
            self.asked += 1
            await asyncio.sleep(0.2)
            return await super().query(text)

    embedder = Slow()
    asker = Asker(embedder)
    for _ in range(2):
        vector, [warning] = await asker.vector("x", 0.01)
        assert vector is None and "does not work" in warning
    assert embedder.asked == 1, "and who is in haste does not wait for it again"
    vector, warnings = await asker.vector("x", QUERY_SECONDS)
    assert vector is not None and warnings == []
    clock.now += 60
    assert (await asker.vector("x", 5.0))[0] is not None


async def test_a_question_that_is_refused_costs_only_itself(clock: Clock) -> None:
    class Picky(HashEmbedder):
        longest = 0

        async def query(self, text: str) -> Vectors:
            self.longest = max(self.longest, len(text))
            if "poison" in text:
                raise RuntimeError("400: refused")
            return await super().query(text)

    embedder = Picky()
    asker = Asker(embedder)
    vector, [warning] = await asker.vector("poison")
    assert vector is None and "refused this" in warning
    vector, warnings = await asker.vector("a walrus " * 10_000)
    assert vector is not None and warnings == []
    assert embedder.longest == 4000, "as much as of an entry"


async def test_a_store_that_fails_is_not_told_as_an_embedder_that_does(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(store, ["the walrus"])
    recaller = Recaller(store, Remote())

    async def full(*given: object) -> None:
        raise StoreFull(reason="no space left.")

    monkeypatch.setattr(indexer, "embed_thread", full)
    monkeypatch.setattr(recall, "embed_thread", full)
    with pytest.raises(StoreFull):
        await index_all(store, Remote(), lambda *each: None)
    with pytest.raises(StoreFull):
        await recaller.prepare(MINE)
    assert recaller.asker.may_make()


def test_what_an_error_says() -> None:
    assert reason_of(TimeoutError()) == "it took too long"
    assert reason_of(ValueError("a\nb")) == "a"
    assert reason_of(ValueError()) == "ValueError"
