"""Indexing a whole store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from tests.memory.talking import say
from tests.store.samples import all_of
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.memory.embedder import Vectors
from longthread.memory.index.indexer import index_all
from longthread.memory.index.vectors import embed_thread
from longthread.memory.recall import Question, Recaller
from longthread.model.thread import Scope
from longthread.runs.worker import RunWorker
from longthread.store.driver import Driver
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.open import open_store
from longthread_testing.embedding import HashEmbedder


async def test_every_thread_is_indexed_and_embedded(store: Driver) -> None:
    for name in ("a", "b", "c"):
        await say(store, ["one", f"the walrus of {name}"], thread_id=name, user_id=name)
    told: list[tuple[int, int, str]] = []
    assert await index_all(store, HashEmbedder(), lambda *each: told.append(each)) == (3, [])
    threads = [(0, 3, "a"), (1, 3, "b"), (2, 3, "c")]
    assert told == [each for n, m, t in threads for each in ((n, m, t), (n, m, f"{t}: 2 of 2 entries"))] + [(3, 3, "")]
    rows = await all_of(store, derived=True)
    assert [row["thread_id"] for row in rows["recall_segments"]] == ["a", "b", "c"]
    assert len(rows["memory_vectors"]) == 6


async def test_an_embedder_that_fails_is_told_once(store: Driver) -> None:
    class Broken(HashEmbedder):
        async def documents(self, texts: Sequence[str]) -> Vectors:
            raise ConnectionError("gone")

    for name in ("a", "b"):
        await say(store, ["the walrus"], thread_id=name)
    threads, [warning] = await index_all(store, Broken(), lambda *each: None)
    assert (threads, "gone" in warning) == (2, True)
    recalled = await Recaller(store).find(Question("walrus", Scope("u")))
    assert len(recalled.hits) == 2


async def test_what_another_process_embeds_comes_last_and_is_embedded_once(store: Driver, store_address: str) -> None:
    for name in ("a", "b"):
        await say(store, ["one", f"the walrus of {name}"], thread_id=name)
    told: list[str] = []
    is_waiting = asyncio.Event()

    def progress(done: int, total: int, what: str) -> None:
        told.append(what)
        if "waiting" in what:
            is_waiting.set()

    async with open_store(store_address) as other:
        worker, server = RunWorker(store), RunWorker(other)
        async with JobClaims(other, server).claim(Job("vectors", "a")) as ours:
            assert ours
            indexing = asyncio.create_task(index_all(store, HashEmbedder(), progress, JobClaims(store, worker)))
            await is_waiting.wait()
            rows = await all_of(store, derived=True)
            assert {row["thread_id"] for row in rows["memory_vectors"]} == {"b"}
            await embed_thread(other, HashEmbedder(), "a")
        assert await indexing == (2, [])
        await worker.close()
        await server.close()
    assert "a: 2 of 2 entries" not in told, "the other one has embedded it"
    rows = await all_of(store, derived=True)
    assert len(rows["memory_vectors"]) == 4
    assert rows["background_jobs"] == []


def test_the_command(store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_EMBEDDING_MODEL", raising=False)

    async def fill() -> None:
        async with open_store(store_address) as store:
            await say(store, ["one"])

    asyncio.run(fill())
    done = CliRunner().invoke(app, ["db", "index", "--json", "--database", store_address])
    assert json.loads(done.stdout) == {"threads": 1, "warnings": []}
    assert CliRunner().invoke(app, ["db", "index", "--database", store_address]).stdout == "1 thread indexed.\n"
