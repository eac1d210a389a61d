"""Indexes a whole store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from longthread.memory.embedders.embedder import Embedder, EmbedderFailed, called
from longthread.memory.index.compaction import bind_user
from longthread.memory.index.indexer import index_thread
from longthread.memory.index.vectors import Embedded, VectorProgress, embed_thread, is_behind
from longthread.store.driver import Driver
from longthread.store.index import shards
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.transfer.threads import TransferProgress, each_thread

_LOOK_SECONDS = 0.5


async def index_all(
    store: Driver, embedder: Embedder | None, progress: TransferProgress, jobs: JobClaims | None = None
) -> tuple[int, list[str]]:
    """Index and embed every thread; return the number of threads, and warnings. Raises StoreError.

    After an interruption it continues. An embedder that fails is not called again. A thread that another process embeds
    comes last: by then that one may have finished.
    """
    embedding = _Embedding(store, embedder, jobs or JobClaims(store))
    done, at = 0, (0, 0)

    def threads_done(done: int, total: int, what: str) -> None:
        nonlocal at
        at = (done, total)
        progress(done, total, what)

    async for thread_id in each_thread(store, threads_done):
        await index_thread(store, thread_id)
        if not await embedding.embed(thread_id, partial(_entries_done, progress, lambda: at, thread_id)):
            embedding.elsewhere.append(thread_id)
        done += 1
    for thread_id in embedding.elsewhere:
        progress(*at, f"{thread_id}: waiting for the process that embeds it")
        while not await embedding.embed(thread_id):  # noqa: ASYNC110 - a row rings no event
            await asyncio.sleep(_LOOK_SECONDS)
    async with store.reading() as tx:
        users = await shards.users_with_loose(tx)
    for user_id in users:
        await bind_user(store, user_id)
    return done, embedding.warnings()


@dataclass
class _Embedding:
    """Embeds threads until the embedder fails."""

    store: Driver
    embedder: Embedder | None
    jobs: JobClaims
    elsewhere: list[str] = field(default_factory=list)
    _refused: int = 0
    _failures: list[str] = field(default_factory=list)

    async def embed(self, thread_id: str, progress: VectorProgress | None = None) -> bool:
        """Embed a thread; return False if another process does it."""
        if self.embedder is None or self._failures:
            return True
        try:
            if not await is_behind(self.store, self.embedder, thread_id):
                return True
            async with self.jobs.claimed(Job("vectors", thread_id), at_once=True) as ours:
                if ours:
                    self._refused += (await embed_thread(self.store, self.embedder, thread_id, progress)).refused
                return ours
        except EmbedderFailed as error:
            told = f"The embedder {called(self.embedder)} does not work, and made no more vectors: {error}"
            self._failures.append(told)
            return True

    def warnings(self) -> list[str]:
        refused = Embedded(refused=self._refused).warning(self.embedder) if self.embedder is not None else []
        return self._failures + refused


def _entries_done(
    progress: TransferProgress, at: Callable[[], tuple[int, int]], thread_id: str, number: int, total: int
) -> None:
    progress(*at(), f"{thread_id}: {number:,} of {total:,} entries")
