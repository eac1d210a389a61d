"""Index a whole store."""

from __future__ import annotations

from longthread.memory.embedding import Embedder
from longthread.memory.indexing import index_thread
from longthread.memory.vectors import Embedded, embed_thread
from longthread.store.driver import Driver
from longthread.store.transfer import Progress, each_thread


async def index_all(store: Driver, embedder: Embedder | None, progress: Progress) -> tuple[int, list[str]]:
    """Index every thread, and give its entries vectors; how many threads there are, and what went wrong.

    Stopped at any moment, it goes on from there. An embedder that fails is not asked again.

    Raises:
        StoreError: the database failed.
    """
    done, refused, warnings = 0, 0, list[str]()
    async for thread_id in each_thread(store, progress):
        await index_thread(store, thread_id)
        if embedder is not None and not warnings:
            try:
                refused += (await embed_thread(store, embedder, thread_id)).refused
            except Exception as error:  # noqa: BLE001 - whatever keeps an embedder from working, keywords remain
                warnings.append(f"The embedder {embedder.name} does not work, and made no more vectors: {error}")
        done += 1
    if embedder is not None:
        warnings += Embedded(refused=refused).warning(embedder)
    return done, warnings
