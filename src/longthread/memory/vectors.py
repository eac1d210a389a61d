"""Keeps a vector of each entry, of the one model that is configured."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from longthread.memory.embedding import Embedder, unit
from longthread.memory.indexing import content_of, is_recallable
from longthread.store import recall, vectors
from longthread.store.driver import Driver
from longthread.store.recall import Text
from longthread.store.vectors import Vector

MOST_TEXT = 4000
"""Characters of an entry that are embedded: models read no more, or refuse more."""
BATCH = 64
"""Entries that are embedded at a time."""
TIMEOUT = 60.0
"""Seconds that an embedder may take for a batch before it counts as failed."""

_ANY = "."
"""What an embedder is asked to learn how many numbers its vectors have."""
_models: WeakKeyDictionary[Embedder, str] = WeakKeyDictionary()

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
    model = await model_of(embedder)
    async with store.reading() as tx:
        total = await vectors.missing_count(tx, thread_id, model)
    while True:
        async with store.reading() as tx:
            born = await recall.incarnation(tx, thread_id)
            seqs = await vectors.missing(tx, thread_id, model, after=after, limit=BATCH)
            texts = [text for text in await recall.texts_at(tx, thread_id, seqs) if _is_embeddable(text)]
        if not seqs:
            break
        after = seqs[-1]
        if texts:
            await _embed(store, embedder, model, thread_id, texts, born)
        done += len(seqs)
        if progress is not None:
            progress(done, max(done, total))
    await _tidy(store, thread_id, model)
    return done


async def model_of(embedder: Embedder) -> str:
    """What vectors of an embedder are kept under: its model, and how many numbers they have. It is asked once.

    Raises:
        Exception: whatever the embedder raises.
    """
    if embedder not in _models:
        async with asyncio.timeout(TIMEOUT):
            _models[embedder] = named(embedder.name, unit(await embedder.query(_ANY)).shape[-1])
    return _models[embedder]


def named(model: str, dims: int) -> str:
    """A model with the number of its dimensions: some are asked for more or fewer, under the same name."""
    return f"{model}@{dims}"


async def _tidy(store: Driver, thread_id: str, model: str) -> None:
    """Make the signatures that are missing, and drop vectors of other models."""
    async with store.reading() as tx:
        blocks = await vectors.unsigned_blocks(tx, thread_id, model)
        others = await vectors.has_others(tx, thread_id, model)
    for block in blocks:
        async with store.writing() as tx:
            if await tx.fetch("select_position", id=thread_id):
                await vectors.sign_block(tx, thread_id, model, block)
    if others:
        async with store.writing() as tx:
            if await tx.fetch("select_position", id=thread_id):
                await vectors.delete_others(tx, thread_id, model)


def text_of(text: Text) -> str:
    """What of an entry is embedded: who says what."""
    said = content_of(text)
    return (f"{text.name}: {said}" if text.name and text.role != "tool" else said)[:MOST_TEXT]


def _is_embeddable(text: Text) -> bool:
    return is_recallable(text) and bool(content_of(text).strip())


async def _embed(
    store: Driver, embedder: Embedder, model: str, thread_id: str, texts: Sequence[Text], born: str | None
) -> None:
    chunks = [text_of(text) for text in texts]
    async with asyncio.timeout(TIMEOUT):
        made = unit(await embedder.documents(chunks))
    if made.shape[:1] != (len(texts),) or made.ndim != 2:
        raise ValueError(f"the embedder gave vectors of shape {made.shape} for {len(texts)} texts")
    if named(embedder.name, made.shape[1]) != model:
        _models.pop(embedder, None)
        raise ValueError(f"the embedder now gives vectors of {made.shape[1]} numbers, and gave others before")
    rows = [
        Vector(_id(thread_id, text.seq, model), text.seq, chunk, vector.astype("<f4").tobytes())
        for text, chunk, vector in zip(texts, chunks, made, strict=True)
    ]
    async with store.writing() as tx:
        if not await tx.fetch("select_position", id=thread_id) or await recall.incarnation(tx, thread_id) != born:
            return
        first, _ = await recall.first_seq(tx, thread_id)
        await vectors.write(tx, thread_id, model, [row for row in rows if row.seq >= first])


def _id(thread_id: str, seq: int, model: str) -> str:
    return hashlib.sha256(f"{thread_id}\0{seq}\0{model}".encode()).hexdigest()[:32]
