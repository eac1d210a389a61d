"""Indexes a whole store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from longthread.memory.embedders.embedder import Embedder, EmbedderFailed, called
from longthread.memory.index.compaction import bind_user
from longthread.memory.index.indexer import index_thread
from longthread.memory.index.vectors import Embedded, embed_thread
from longthread.store.driver import Driver
from longthread.store.index import shards
from longthread.store.transfer.threads import TransferProgress, each_thread


async def index_all(store: Driver, embedder: Embedder | None, progress: TransferProgress) -> tuple[int, list[str]]:
    """Index and embed every thread; return the number of threads, and warnings. Raises StoreError.

    After an interruption it continues. An embedder that fails is not called again.
    """
    done, refused, warnings = 0, 0, list[str]()
    at = (0, 0)

    def threads_done(done: int, total: int, what: str) -> None:
        nonlocal at
        at = (done, total)
        progress(done, total, what)

    async for thread_id in each_thread(store, threads_done):
        await index_thread(store, thread_id)
        if embedder is not None and not warnings:
            entries = partial(_entries_done, progress, lambda: at, thread_id)
            try:
                refused += (await embed_thread(store, embedder, thread_id, entries)).refused
            except EmbedderFailed as error:
                told = f"The embedder {called(embedder)} does not work, and made no more vectors: {error}"
                warnings.append(told)
        done += 1
    async with store.reading() as tx:
        users = await shards.users_with_loose(tx)
    for user_id in users:
        await bind_user(store, user_id)
    if embedder is not None:
        warnings += Embedded(refused=refused).warning(embedder)
    return done, warnings


def _entries_done(
    progress: TransferProgress, at: Callable[[], tuple[int, int]], thread_id: str, number: int, total: int
) -> None:
    progress(*at(), f"{thread_id}: {number:,} of {total:,} entries")
