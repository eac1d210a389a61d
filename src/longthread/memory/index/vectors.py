"""Stores a vector of each entry, of the one configured model."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from longthread.memory.embedder import (
    ANY,
    MOST_TEXT,
    BatchVectors,
    Embedder,
    EmbedderFailed,
    Vectors,
    made_by,
    make_vectors,
    name_embedder,
)
from longthread.memory.index.entry_text import content_of, is_recallable, unescape_json
from longthread.store import recall_index, vectors
from longthread.store.driver import Driver, Transaction
from longthread.store.recall_index import Text
from longthread.store.vectors import Vector, VectorMark, require_vectors

BATCH = 64
"""Entries that are embedded at a time."""
TIMEOUT = 60.0
"""Seconds that an embedder may take for a batch before it counts as failed."""

_models: WeakKeyDictionary[Embedder, str] = WeakKeyDictionary()

VectorProgress = Callable[[int, int], None]
"""Called with the number of entries done, and of all entries."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Embedded:
    """The number of entries read, and of entries that the embedder rejected, which only keywords find."""

    entries: int = 0
    refused: int = 0

    def warning(self, embedder: Embedder) -> list[str]:
        if not self.refused:
            return []
        return [
            f"The embedder {name_embedder(embedder)} refused {self.refused} entries: they are found by keywords alone."
        ]


async def embed_thread(
    store: Driver, embedder: Embedder, thread_id: str, progress: VectorProgress | None = None
) -> Embedded:
    """Give every entry of a thread a vector of this model, then drop those of other models.

    After an interruption it continues. If there is nothing to do, it reads one small row.

    Raises:
        StoreError: the database failed.
        EmbedderFailed: the embedder does not work.
    """
    model = await model_of(embedder)
    done = refused = total = 0
    while True:
        async with store.reading() as tx:
            mark = await vectors.find_mark(tx, thread_id, model)
            if mark is None or not mark.is_behind:
                break
            if progress is not None and not done:
                total = await vectors.missing_count(tx, thread_id, model, after=mark.after)
            seqs = await vectors.missing(tx, thread_id, model, after=mark.after, limit=BATCH)
            texts = [text for text in await recall_index.texts_at(tx, thread_id, seqs) if _is_embeddable(text)]
        end = seqs[-1] if len(seqs) == BATCH else mark.entry_count
        taken = await _embed(store, embedder, _Batch(thread_id, model, mark, texts, end))
        if taken is None:
            return Embedded(done, refused)  # Somebody else goes on, or the next pass does.
        refused += taken
        done += len(seqs)
        if progress is not None and seqs:
            progress(done, max(done, total))
    if mark is not None and mark.is_untidy:
        await _tidy(store, thread_id, model, mark)
    return Embedded(done, refused)


async def is_behind(store: Driver, embedder: Embedder, thread_id: str) -> bool:
    """Return whether `embed_thread` has something to do. It reads one small row. Raises as `embed_thread` does."""
    model = await model_of(embedder)
    async with store.reading() as tx:
        mark = await vectors.find_mark(tx, thread_id, model)
    return mark is not None and (mark.is_behind or mark.is_untidy)


async def model_of(embedder: Embedder) -> str:
    """Return the key of an embedder's vectors: model and dimensions. Probes it once; raises EmbedderFailed."""
    if embedder not in _models:
        vector = await made_by(partial(embedder.query, ANY), TIMEOUT)
        _models[embedder] = name_model(embedder.name, vector.shape[-1])
    return _models[embedder]


def name_model(model: str, dims: int) -> str:
    """Combine model and dimensions: some models have several under one name."""
    return f"{model}@{dims}"


async def _tidy(store: Driver, thread_id: str, model: str, mark: VectorMark) -> None:
    await sign_thread(store, thread_id, model, mark)
    async with store.writing() as tx:
        if await tx.fetch("select_position", id=thread_id) and await _is_same(tx, thread_id, model, mark):
            await vectors.delete_others(tx, thread_id, model)
            await vectors.mark_signed(tx, thread_id, model, mark.first_seq)


async def sign_thread(store: Driver, thread_id: str, model: str, mark: VectorMark | None = None) -> None:
    """Write the missing signatures of a thread's vectors, one block in each transaction.
    After a StoreError, what was written stays."""
    async with store.reading() as tx:
        blocks = await vectors.unsigned_blocks(tx, thread_id, model, mark)
    if len(blocks) > 1:
        _logger.info("Thread %s: signatures of %d blocks of vectors are made anew.", thread_id, len(blocks))
    for block in blocks:
        async with store.writing() as tx:
            if await tx.fetch("select_position", id=thread_id):
                await vectors.sign_block(tx, thread_id, model, block)


async def _is_same(tx: Transaction, thread_id: str, model: str, mark: VectorMark) -> bool:
    """Whether it is still the thread that was read, and no other process has embedded more of it."""
    now = await vectors.find_mark(tx, thread_id, model)
    return now is not None and (now.birth_id, now.last_seq) == (mark.birth_id, mark.last_seq)


def text_of(text: Text) -> str:
    """Return what is embedded of an entry: speaker and text."""
    said = unescape_json(content_of(text))
    return (f"{text.name}: {said}" if text.name and text.role != "tool" else said)[:MOST_TEXT]


def _is_embeddable(text: Text) -> bool:
    return is_recallable(text) and bool(content_of(text).strip())


@dataclass(frozen=True, slots=True)
class _Batch:
    """Texts of a thread up to entry `end`."""

    thread_id: str
    model: str
    mark: VectorMark
    texts: Sequence[Text]
    end: int


async def _embed(store: Driver, embedder: Embedder, batch: _Batch) -> int | None:
    """Store the vectors of a batch and the mark in one transaction; return the number of rejected texts.

    None: the thread has changed, or another process was faster, and nothing was stored. Raises EmbedderFailed after
    storing what was embedded before.
    """
    await require_vectors(store)
    chunks = [text_of(text) for text in batch.texts]
    made = await make_vectors(partial(_make_checked, embedder, batch.model), chunks) if chunks else BatchVectors(0)
    rows = []
    for place, vector in made.vectors.items():
        seq = batch.texts[place].seq
        rows.append(Vector(_id(batch.thread_id, seq, batch.model), seq, chunks[place], vector.astype("<f4").tobytes()))
    for place, reason in made.refused.items():
        _logger.warning("Entry %d of thread %s gets no vector: %s", batch.texts[place].seq, batch.thread_id, reason)
    if made.failure is None:
        kept = await _keep(store, batch, rows, batch.end, len(made.refused))
        return len(made.refused) if kept else None
    if made.end:
        await _keep(store, batch, rows, batch.texts[made.end].seq - 1, len(made.refused))
    raise made.failure


async def _keep(store: Driver, batch: _Batch, rows: Sequence[Vector], end: int, refused: int) -> bool:
    thread_id, model, mark = batch.thread_id, batch.model, batch.mark
    async with store.writing() as tx:
        if not await tx.fetch("select_position", id=thread_id) or not await _is_same(tx, thread_id, model, mark):
            return False
        first, _ = await recall_index.first_seq(tx, thread_id)
        await vectors.write(tx, thread_id, model, [row for row in rows if row.seq >= first])
        await vectors.move_mark(tx, thread_id, model, end, mark.refused + refused)
    return True


async def _make_checked(embedder: Embedder, model: str, chunks: Sequence[str]) -> Vectors:
    made = await made_by(partial(embedder.documents, chunks), TIMEOUT, (len(chunks),))
    if name_model(embedder.name, made.shape[1]) != model:
        _models.pop(embedder, None)
        told = f"the embedder now gives vectors of {made.shape[1]} numbers, and gave others before"
        raise EmbedderFailed(ValueError(told))
    return made


def _id(thread_id: str, seq: int, model: str) -> str:
    return hashlib.sha256(f"{thread_id}\0{seq}\0{model}".encode()).hexdigest()[:32]
