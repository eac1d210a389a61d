"""Finds the entries whose vectors are nearest to a question's, with equal results on every backend.

The signatures of all vectors in scope are compared first, then the full vectors of the few best. Signatures are cached
up to a limit; each question checks by their stamps whether they are still current.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from longthread.memory.embedder import Vectors
from longthread.memory.index.signature_index import (
    QuestionSignature,
    Ranges,
    RowNumbers,
    SignatureIndex,
    by_both,
    put_together,
)
from longthread.memory.keywords import EntryPlace
from longthread.model.lru import LRU
from longthread.model.thread import Scope
from longthread.store import driver, vectors
from longthread.store.driver import Transaction
from longthread.store.recall_index import Searched
from longthread.store.signatures import Signatures
from longthread.store.vectors import BLOCK, BlockHead, Candidates

MOST_KEPT = 256 * 2**20
"""Bytes of signatures that one process keeps."""
MOST_COMPARED = 250_000
"""Entries beyond which PostgreSQL's own index is asked. It is one for all users, and in small scopes finds little."""
LONG_LIST = 4096
"""Vectors that are nearest by their signs, which are then compared by both bits of each number."""
MORE = 50
"""How many more vectors are read whole than are wanted."""
_SAMPLED = 256
"""The least number of sought values in the sample that gives their threshold."""
_GOLDEN = (5**0.5 - 1) / 2
_FEW_THREADS = 8

Near = list[tuple[str, int, float]]
"""Entries by their threads and numbers, with their cosines."""


@dataclass(frozen=True)
class KnownScope:
    """A cached scope: its signatures, and the stamps that tell whether they are current."""

    stamps: str
    signatures: SignatureIndex

    @property
    def size(self) -> int:
        return len(self.stamps) + self.signatures.size

    @cached_property
    def signed_blocks(self) -> set[tuple[str, int]]:
        return {(head.thread_id, head.block) for head in self.signatures.heads}


@dataclass(frozen=True, slots=True)
class Sought:
    """A search for the `count` entries nearest to a vector of length 1, within `ranges` if given."""

    scope: Scope
    model: str
    vector: Vectors
    count: int
    ranges: Ranges | None = None


@dataclass(frozen=True, slots=True)
class Guess:
    """The entries whose vectors to read, if the cached scope is current."""

    known: KnownScope
    places: Sequence[tuple[str, int]]


class Nearest:
    """Searches a store by vectors. Safe to share between tasks.

    Args:
        most_kept: the limit of the cache in bytes.
        unsigned: called with threads whose vectors have no signatures, and the model.
    """

    def __init__(
        self, most_kept: int = MOST_KEPT, unsigned: Callable[[Sequence[str], str], None] | None = None
    ) -> None:
        self._unsigned = unsigned
        self._most_kept = most_kept
        self._kept = LRU[tuple[Scope, str], KnownScope](most_size=most_kept, size=lambda known: known.size)

    def guess(self, sought: Sought) -> Guess | None:
        """Predict the choice of `begin` from the cache, while a server is at work."""
        known = self._kept.get((sought.scope, sought.model))
        return Guess(known, _choose_candidates(known.signatures, sought)) if known else None

    async def begin(
        self, tx: Transaction, sought: Sought, threads: Sequence[Searched], guess: Guess | None = None
    ) -> Callable[[], Awaitable[Near]]:
        """Choose the entries to read; the returned function reads and ranks them, in the same transaction.

        `threads` are those in scope. The nearest come first, ties in the order of their thread.
        """
        if sought.ranges is None and sum(thread.entries for thread in threads) > MOST_COMPARED:
            more = sought.count + MORE
            found = await vectors.search_index(tx, sought.scope, sought.model, sought.vector, more)
            if found is not None:
                return partial(_at_once, _rank_candidates([found], sought))
        known = await self._load_scope(tx, sought.scope, sought.model)
        places = guess.places if guess and guess.known is known else _choose_candidates(known.signatures, sought)
        asked = vectors.at_asked(sought.model, places)
        await tx.ahead(*asked)
        return partial(self._read, tx, sought, known, asked, threads)

    async def _read(
        self,
        tx: Transaction,
        sought: Sought,
        known: KnownScope,
        asked: Sequence[driver.QueryCall],
        threads: Sequence[Searched],
    ) -> Near:
        near = await vectors.at(tx, asked)
        unsigned = await _without_signatures(tx, sought.model, known, threads)
        if unsigned.places and self._unsigned is not None:
            self._unsigned(sorted({thread_id for thread_id, _ in unsigned.places}), sought.model)
        if sought.ranges is not None:
            unsigned = unsigned.where(partial(_is_in, sought.ranges))
        return _rank_candidates([near, unsigned], sought)

    async def _load_scope(self, tx: Transaction, scope: Scope, model: str) -> KnownScope:
        stamps = await vectors.stamps(tx, scope, model)
        known = self._kept.get((scope, model))
        if known is None or known.stamps != stamps:
            heads = await vectors.heads(tx, scope, model)
            before = known.signatures if known else None
            there = set(before.heads) if before else set()
            blocks = await _fetch_signatures(tx, scope, model, [head for head in heads if head not in there])
            known = KnownScope(stamps, put_together(heads, blocks, before))
            self._kept.put((scope, model), known)
            if known.size > self._most_kept:
                self._kept.pop((scope, model))
        return known


async def _fetch_signatures(
    tx: Transaction, scope: Scope, model: str, missing: Sequence[BlockHead]
) -> dict[BlockHead, Signatures]:
    firsts: dict[str, int] = {}
    for head in missing:
        firsts[head.thread_id] = min(head.block, firsts.get(head.thread_id, head.block))
    if len(firsts) > _FEW_THREADS:
        return await vectors.signatures(tx, scope, model, 0)
    found: dict[BlockHead, Signatures] = {}
    for thread_id, first in firsts.items():
        found |= await vectors.signatures(tx, Scope(scope.user_id, thread_id), model, first)
    return found


def _choose_candidates(signatures: SignatureIndex, sought: Sought) -> Sequence[tuple[str, int]]:
    return short_list(signatures, sought.vector, sought.count, sought.ranges)


def short_list(signatures: SignatureIndex, vector: Vectors, count: int, ranges: Ranges | None) -> list[tuple[str, int]]:
    """Return the threads and numbers of the entries whose vectors to read, in order."""
    rows: Sequence[RowNumbers] = [slab.rows_in(ranges) for slab in signatures.slabs]
    if rows and sum(map(len, rows)) > count + MORE:
        asked = QuestionSignature.of(vector, signatures)
        rows = _best(rows, partial(_by_signs, signatures, asked), LONG_LIST)
        rows = _best(rows, partial(by_both, signatures.slabs, asked), count + MORE)
    return [place for slab, some in zip(signatures.slabs, rows, strict=True) for place in slab.places(some)]


def _by_signs(signatures: SignatureIndex, asked: QuestionSignature, rows: Sequence[RowNumbers]) -> Vectors:
    return np.concatenate([slab.by_signs(asked, some) for slab, some in zip(signatures.slabs, rows, strict=True)])


def _best(
    rows: Sequence[RowNumbers], measure: Callable[[Sequence[RowNumbers]], Vectors], most: int
) -> Sequence[RowNumbers]:
    """Return each slab's rows that are nearest by a measure, and ties with the last, up to twice as many."""
    if sum(map(len, rows)) <= most:
        return rows
    near = measure(rows)
    best = _nearest(near, most)
    ends = np.cumsum([len(some) for some in rows])
    parts = np.split(best, best.searchsorted(ends[:-1]))
    return [some[part - end + len(some)] for some, part, end in zip(rows, parts, ends, strict=True)]


def _nearest(near: Vectors, most: int) -> RowNumbers:
    """Return the indexes of about the `most` highest numbers; a large input's threshold is sampled."""
    step = min(len(near) // (4 * most), most // _SAMPLED)
    if step > 1:
        some = near[_some(len(near), step)]
        count = most * len(some) // len(near)
        best = np.flatnonzero(near >= np.partition(some, len(some) - count)[len(some) - count])
        if most <= 2 * len(best) and len(best) <= 2 * most:
            return best
    return np.flatnonzero(near >= np.partition(near, len(near) - most)[len(near) - most])[: 2 * most]


def _some(count: int, step: int) -> RowNumbers:
    """Sample about one in `step` places, in steps of the golden ratio: speakers take turns,
    and an even step would sample only one of them."""
    return np.arange(0, count, step + _GOLDEN).astype(np.int64)


async def _without_signatures(
    tx: Transaction, model: str, known: KnownScope, threads: Iterable[Searched]
) -> Candidates:
    """Return all vectors of blocks that have no signatures yet."""
    asked = [
        (thread.thread_id, block * BLOCK, block * BLOCK + BLOCK - 1)
        for thread in threads
        for block in range(thread.first_seq // BLOCK, thread.entry_count // BLOCK + 1)
        if thread.entry_count and (thread.thread_id, block) not in known.signed_blocks
    ]
    return await vectors.between(tx, model, asked) if asked else vectors.NONE


def _is_in(ranges: Ranges, thread_id: str, seq: int) -> bool:
    return any(first <= seq <= last for first, last in ranges.get(thread_id, ()))


async def _at_once(near: Near) -> Near:
    return near


def _rank_candidates(found: Iterable[Candidates], sought: Sought) -> Near:
    ranked: list[tuple[float, tuple[str, int]]] = []
    for some in found:
        if some.places:
            # Not `@`: for so few, its threads cost more than they save, and busy-wait.
            similar = np.einsum("ij,j->i", some.vectors, sought.vector)
            ranked += zip((-similar.astype(np.float64).round(5)).tolist(), some.places, strict=True)
    return [(thread_id, seq, -value) for value, (thread_id, seq) in sorted(ranked)[: sought.count]]


MEANING = 0.25
"""What a standard deviation of the ranking by meaning counts, where one of that by keywords counts 1."""
BESIDE = 0.9
"""What nearness counts for the entries next to the near one."""


def fuse(
    words: Sequence[tuple[EntryPlace, float]], near: Sequence[tuple[EntryPlace, float]]
) -> list[tuple[EntryPlace, float]]:
    """Merge two rankings. Scores are standard deviations above the ranking's lowest, so that scales do not matter.

    An entry near in meaning also raises, at less weight, its neighbours that keywords found: an answer stands next to
    its question.
    """
    near = [(place, value) for place, value in near if value > 0]
    said = _standardise_scores(words, len(near))
    meant = _standardise_scores(near, 0)
    sums = {}
    for place in said.keys() | meant.keys():
        # A neighbour that shares no term with the question says nothing about it.
        beside = max(meant.get(other, 0.0) for other in _beside(place)) if place in said else 0.0
        sums[place] = said.get(place, 0.0) + MEANING * max(meant.get(place, 0.0), BESIDE * beside)
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def _standardise_scores(ranking: Sequence[tuple[EntryPlace, float]], least: int) -> dict[EntryPlace, float]:
    """Return scores in standard deviations above the lowest; with fewer than `least` places, others count as 0."""
    values = np.array([value for _, value in ranking] + [0.0] * (least - len(ranking)))
    deviation = float(values.std()) if len(values) else 0.0
    if deviation == 0:
        return {place: float(value > 0) for place, value in ranking}
    return {place: (value - float(values.min())) / deviation for place, value in ranking}


def _beside(place: EntryPlace) -> tuple[EntryPlace, EntryPlace]:
    return EntryPlace(place.thread_id, place.seq - 1), EntryPlace(place.thread_id, place.seq + 1)
