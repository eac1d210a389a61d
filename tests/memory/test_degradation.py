"""Document 004's table of what happens when something is missing: the rows that are about recall and embedders."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.memory.talking import say

from longthread.llm.embedders import embedder_of
from longthread.memory.embedder import Asker, Vectors
from longthread.memory.recall import Question, Recaller
from longthread.memory.user_memories import Memories
from longthread.model.memory import ANALYST, Statement
from longthread.model.thread import Scope
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread_testing.embedding import HashEmbedder

MINE = Scope("u", "t")


async def test_without_postgresql_everything_is_kept_and_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document falls back to memory and loses all; here it is a file, which a new process reads."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("LONGTHREAD_DATABASE_URL", raising=False)
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path))
    address = Settings.load(env_file=None).database
    assert not address.startswith("postgres")
    embedder = HashEmbedder(same={"car": "automobile"})
    async with open_store(address) as store:
        await say(store, ["the automobile is red", "noted"])
        await Recaller(store, embedder).prepare(MINE)
    async with open_store(address) as store:
        hits = (await Recaller(store, embedder).find(Question("car", MINE))).hits
        assert hits[0].entry.text == "the automobile is red"
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id="u")).entry_count == 2


async def test_without_an_embedder_recall_goes_by_keywords_and_nobody_is_warned(store: Driver) -> None:
    await say(store, ["the walrus swims", "我们把预算定为三万元。"])
    recaller = Recaller(store, embedder_of(Settings(memory_embedding_model=None, memory_embedding_base_url=None)))
    assert recaller.embedder_name is None
    for asked, text in (("walruses", "the walrus swims"), ("预算", "我们把预算定为三万元。")):
        recalled = await recaller.find(Question(asked, MINE, k=1))
        assert [hit.entry.text for hit in recalled.hits] == [text]
        assert recalled.warnings == []


async def test_of_a_store_that_is_only_read_what_is_not_indexed_is_said(
    store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_store(store_address) as store:
        await say(store, ["the walrus swims", "noted"])
    async with open_store(store_address, read_only=True) as store:
        recaller = Recaller(store)
        recalled = await recaller.find(Question("walrus", MINE))
        await recaller.close()
    assert not recalled.hits and not caplog.records
    [warning] = recalled.warnings
    assert warning.startswith("One conversation has messages that are not found")


class Unavailable(HashEmbedder):
    """An embedder that works until its server goes."""

    gone = False

    async def query(self, text: str) -> Vectors:
        if self.gone:
            raise ConnectionError("no route to host")
        return await super().query(text)


async def test_an_embedder_that_goes_leaves_keywords_and_a_warning(
    store: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    await say(store, ["the automobile is red", "the walrus swims"])
    embedder = Unavailable(same={"car": "automobile"})
    recaller = Recaller(store, embedder)
    await recaller.prepare(MINE)
    assert (await recaller.find(Question("car", MINE))).hits
    embedder.gone = True
    recalled = await recaller.find(Question("walrus", MINE))
    assert recalled.hits[0].entry.text == "the walrus swims"
    assert recalled.warnings == ["The embedder hash:words does not work: found by keywords alone."]
    assert "no route to host" in caplog.text


@pytest.mark.parametrize("name", ["local:/no/such/folder", "nonsense:model", "huggingface:nobody/nothing"])
async def test_an_embedder_that_cannot_be_made_leaves_keywords_and_a_warning(store: Driver, name: str) -> None:
    await say(store, ["the walrus swims"])
    recaller = Recaller(store, embedder_of(Settings(memory_embedding_model=name)))
    [warning] = await recaller.prepare(MINE)
    assert name in warning
    recalled = await recaller.find(Question("walrus", MINE))
    assert recalled.hits[0].entry.text == "the walrus swims"
    assert len(recalled.warnings) == 1


class Odd(HashEmbedder):
    """Answers as no embedder should."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    async def documents(self, texts: Sequence[str]) -> Vectors:
        if self.what == "cancelled":
            raise asyncio.CancelledError
        return np.ones((len(texts), 20_000), np.float32)

    async def query(self, text: str) -> Vectors:
        vectors: Vectors = (await self.documents([text]))[0]
        return vectors


@pytest.mark.parametrize("what", ["cancelled", "wide"])
async def test_an_embedder_that_answers_as_none_should_leaves_keywords_and_a_warning(store: Driver, what: str) -> None:
    await say(store, ["the walrus swims"])
    recaller, memories, owner = Recaller(store, Odd(what)), Memories(store, Asker(Odd(what))), Owner("u", ANALYST)
    [warning] = await recaller.prepare(MINE)
    assert ("cancelled" if what == "cancelled" else "20,000 numbers") in warning
    recalled = await recaller.find(Question("walrus", MINE))
    assert recalled.hits[0].entry.text == "the walrus swims"
    assert len(recalled.warnings) == 1
    await memories.remember(owner, Statement("The walrus swims."))
    assert await memories.embed("u") != []
    assert (await memories.search(owner, "walrus")).hits


async def test_who_stops_waiting_for_an_embedder_does_stop(store: Driver) -> None:
    class Slow(HashEmbedder):
        async def query(self, text: str) -> Vectors:
            await asyncio.sleep(30)
            return await super().query(text)

    await say(store, ["the walrus swims"])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Recaller(store, Slow()).find(Question("walrus", MINE))
