"""Keeps a vector of each entry, of the one model that is configured, and finds those that are near a question's."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence

import numpy as np

from longthread.memory.embedding import Embedder, Vectors, unit
from longthread.memory.indexing import content_of, is_recallable
from longthread.store import recall, vectors
from longthread.store.driver import Driver, Transaction
from longthread.store.recall import Scope, Text
from longthread.store.vectors import Vector

MOST_TEXT = 4000
"""Characters of an entry that are embedded: models read no more, or refuse more."""
BATCH = 64
"""Entries that are embedded at a time."""
TIMEOUT = 60.0
"""Seconds that an embedder may take for a batch before it counts as failed."""

Progress = Callable[[int, int], None]
"""Told how many entries of how many are done."""

_logger = logging.getLogger(__name__)


async def embed_thread(store: Driver, embedder: Embedder, thread_id: str, progress: Progress | None = None) -> int:
    """Give every entry of a thread a vector of this embedder's model, and drop those of others when that is done.

    Stopped at any moment, it goes on from there. How many entries got one.

    Raises:
        StoreError: the database failed.
        Exception: whatever the embedder raises.
    """
    done = 0
    after = -1
    async with store.reading() as tx:
        total = await vectors.missing_count(tx, thread_id, embedder.name)
    while True:
        async with store.reading() as tx:
            seqs = await vectors.missing(tx, thread_id, embedder.name, after=after, limit=BATCH)
            texts = [text for text in await recall.texts_at(tx, thread_id, seqs) if _is_embeddable(text)]
        if not seqs:
            break
        after = seqs[-1]
        if texts:
            await _embed(store, embedder, thread_id, texts)
        done += len(seqs)
        if progress is not None:
            progress(done, max(done, total))
    async with store.reading() as tx:
        others = await vectors.has_others(tx, thread_id, embedder.name)
    if others:
        async with store.writing() as tx:
            if await tx.fetch("select_position", id=thread_id):
                await vectors.delete_others(tx, thread_id, embedder.name)
    return done


def text_of(text: Text) -> str:
    """What of an entry is embedded: who says what."""
    said = content_of(text)
    return (f"{text.name}: {said}" if text.name and text.role != "tool" else said)[:MOST_TEXT]


def _is_embeddable(text: Text) -> bool:
    return is_recallable(text) and bool(content_of(text).strip())


async def _embed(store: Driver, embedder: Embedder, thread_id: str, texts: Sequence[Text]) -> None:
    chunks = [text_of(text) for text in texts]
    async with asyncio.timeout(TIMEOUT):
        made = unit(await embedder.documents(chunks))
    if made.shape[:1] != (len(texts),) or made.ndim != 2:
        raise ValueError(f"the embedder gave vectors of shape {made.shape} for {len(texts)} texts")
    rows = [
        Vector(_id(thread_id, text.seq, embedder.name), text.seq, chunk, vector.astype("<f4").tobytes())
        for text, chunk, vector in zip(texts, chunks, made, strict=True)
    ]
    async with store.writing() as tx:
        if not await tx.fetch("select_position", id=thread_id):
            return
        first, _ = await recall.first_seq(tx, thread_id)
        await vectors.write(tx, thread_id, embedder.name, [row for row in rows if row.seq >= first])


def _id(thread_id: str, seq: int, model: str) -> str:
    return hashlib.sha256(f"{thread_id}\0{seq}\0{model}".encode()).hexdigest()[:32]


async def nearest(
    tx: Transaction, scope: Scope, model: str, vector: Vectors, count: int
) -> list[tuple[str, int, float]]:
    """The entries in scope whose vectors are nearest to a vector of length 1, as (thread, entry, cosine).

    The nearest first, of equals the one that comes first in its thread: the same on every backend.
    """
    found = await vectors.candidates(tx, scope, model, vector, count)
    if not found:
        return []
    similar = np.array([row.vector for row in found]) @ vector
    ranked = sorted(
        (-round(float(value), 5), row.thread_id, row.seq) for value, row in zip(similar, found, strict=True)
    )
    return [(thread_id, seq, -value) for value, thread_id, seq in ranked[:count]]
