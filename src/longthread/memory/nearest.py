"""Finds the entries whose vectors are nearest to a question's: the same ones on every backend.

The signs of all vectors in scope are compared first, and of the few that are left the numbers. The signs stay in
memory, within bounds; each question sees by their stamps whether they are still those of the store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longthread.memory.embedding import Vectors
from longthread.store import vectors
from longthread.store.driver import Transaction
from longthread.store.recall import Scope, Searched
from longthread.store.vectors import BLOCK, Bits, Candidate, Head, Signatures, signed

MOST_KEPT = 256 * 2**20
"""Bytes of signatures that one process keeps."""
MOST_COMPARED = 250_000
"""Entries beyond which PostgreSQL's own index is asked. It is one for all users, and in small scopes finds little."""
LONG_LIST = 4096
"""Vectors whose signs are most alike, which are then weighed with the question's numbers."""
MORE = 200
"""How many more vectors are read whole than are wanted."""
_FEW_THREADS = 8
_AT_ONCE, _WEIGHED_AT_ONCE = 16384, 512
"""Signatures that are compared, or weighed, at a time: what is between two steps stays in the processor's cache."""

Ranges = Mapping[str, Sequence[tuple[int, int]]]
"""By thread: the entries that count, as ranges of (first, last) in their order. Other threads have none."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The signatures of a scope, one place an entry. `starts` has the place where each block begins; `words` are the
    signatures' first 64 bits of all entries, then the next, and so on: so they are compared fastest."""

    heads: Sequence[Head]
    starts: Numbers
    seqs: Numbers
    words: Bits

    @property
    def size(self) -> int:
        return self.words.nbytes + self.seqs.nbytes

    def parts(self) -> Iterator[tuple[Head, int, int]]:
        """Each block with the rows where it begins and ends."""
        ends = [*self.starts.tolist(), len(self.seqs)]
        return ((head, ends[at], ends[at + 1]) for at, head in enumerate(self.heads))

    def blocks(self) -> dict[Head, Signatures]:
        return {head: Signatures(self.seqs[start:end], self.words[:, start:end].T) for head, start, end in self.parts()}

    def places(self, rows: Numbers) -> list[tuple[str, int]]:
        """The threads and numbers of the entries in rows."""
        blocks = (self.starts.searchsorted(rows, side="right") - 1).tolist()
        seqs = self.seqs[rows].tolist()
        return [(self.heads[block].thread_id, seq) for block, seq in zip(blocks, seqs, strict=True)]

    def rows_in(self, ranges: Ranges) -> Numbers:
        """The rows of entries that are in ranges."""
        found: list[Numbers] = [np.zeros(0, dtype=np.int64)]
        for head, start, end in self.parts():
            for first, last in ranges.get(head.thread_id, ()):
                if first < (head.block + 1) * BLOCK and last >= head.block * BLOCK:
                    begin, stop = self.seqs[start:end].searchsorted([first, last + 1])
                    found.append(np.arange(start + begin, start + stop))
        return np.concatenate(found)


class Nearest:
    """Finds near entries of a store. Safe to share between tasks."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._kept: OrderedDict[tuple[Scope, str], _Shelf] = OrderedDict()

    async def find(
        self,
        tx: Transaction,
        scope: Scope,
        model: str,
        vector: Vectors,
        count: int,
        threads: Sequence[Searched],
        ranges: Ranges | None = None,
    ) -> list[tuple[str, int, float]]:
        """The `count` entries in scope whose vectors are nearest to a vector of length 1: (thread, entry, cosine).

        The nearest first, of equals the one that comes first in its thread.

        Args:
            threads: those in scope.
            ranges: only these entries.
        """
        if ranges is None and sum(thread.entries for thread in threads) > MOST_COMPARED:
            found = await vectors.indexed(tx, scope, model, vector, count + MORE)
            if found is not None:
                return _ranked(found, vector, count)
        shelf = await self._shelf(tx, scope, model)
        rows = None if ranges is None else shelf.rows_in(ranges)
        places = shelf.places(_short_list(shelf.words, vector, count, rows))
        wanted = [(thread_id, first, last) for (thread_id, first), last in _stretches(places)]
        near = await vectors.between(tx, model, wanted) if wanted else []
        near += await _without_signatures(tx, model, shelf.heads, threads, ranges)
        return _ranked(near, vector, count)

    async def _shelf(self, tx: Transaction, scope: Scope, model: str) -> _Shelf:
        heads = await vectors.heads(tx, scope, model)
        kept = self._kept.get((scope, model))
        if kept is None or kept.heads != heads:
            known = kept.blocks() if kept else {}
            blocks = await _fetched(tx, scope, model, [head for head in heads if head not in known])
            kept = _put_together(heads, {**known, **blocks})
            self._kept[scope, model] = kept
        self._kept.move_to_end((scope, model))
        while self._kept and sum(shelf.size for shelf in self._kept.values()) > self._most_kept:
            self._kept.popitem(last=False)
        return kept


async def _fetched(tx: Transaction, scope: Scope, model: str, missing: Sequence[Head]) -> dict[Head, Signatures]:
    firsts: dict[str, int] = {}
    for head in missing:
        firsts[head.thread_id] = min(head.block, firsts.get(head.thread_id, head.block))
    if len(firsts) > _FEW_THREADS:
        return await vectors.signatures(tx, scope, model, 0)
    found: dict[Head, Signatures] = {}
    for thread_id, first in firsts.items():
        found |= await vectors.signatures(tx, Scope(scope.user_id, thread_id), model, first)
    return found


def _put_together(heads: Sequence[Head], blocks: Mapping[Head, Signatures]) -> _Shelf:
    parts = [blocks[head] for head in heads]
    starts = np.cumsum([0, *(len(part.seqs) for part in parts)], dtype=np.int64)[:-1]
    if not parts:
        return _Shelf(heads, starts, np.zeros(0, np.int64), np.zeros((0, 0), np.uint64))
    seqs = np.concatenate([part.seqs for part in parts])
    return _Shelf(heads, starts, seqs, np.concatenate([part.bits.T for part in parts], axis=1))


def _short_list(words: Bits, vector: Vectors, count: int, rows: Numbers | None) -> Numbers:
    """The places whose vectors are to be read: those whose signs fit the vector's numbers best, in order."""
    if rows is None:
        rows = np.arange(words.shape[1])
    else:
        words = words[:, rows]
    few = count + MORE
    if len(rows) > LONG_LIST:
        chosen = _smallest(_apart(words, signed(vector)), LONG_LIST)
        rows, words = rows[chosen], words[:, chosen]
    if len(rows) > few:
        rows = rows[_smallest(-_fit(words, vector), few)]
    return np.sort(rows)


def _apart(words: Bits, asked: Bits) -> NDArray[np.uint16]:
    """In how many signs each entry differs."""
    found = np.zeros(words.shape[1], dtype=np.uint16)
    for start in range(0, len(found), _AT_ONCE):
        part = found[start : start + _AT_ONCE]
        for word, own in zip(words, asked, strict=True):
            part += np.bitwise_count(word[start : start + _AT_ONCE] ^ own)
    return found


_PATTERNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
"""The bits of each byte, the highest first."""


def _fit(words: Bits, vector: Vectors) -> Vectors:
    """The sum of the vector's numbers where an entry has a positive sign, by a table for each byte."""
    room = 64 * len(words) - len(vector)
    tables = np.pad(vector, (0, room)).reshape(-1, 8) @ _PATTERNS.T
    own = 256 * np.arange(len(tables))
    found = np.empty(words.shape[1], dtype=np.float32)
    for start in range(0, len(found), _WEIGHED_AT_ONCE):
        part = np.ascontiguousarray(words[:, start : start + _WEIGHED_AT_ONCE].T).view(np.uint8)
        found[start : start + _WEIGHED_AT_ONCE] = np.take(tables, part + own).sum(axis=1)
    return found


def _smallest(values: NDArray[np.generic], count: int) -> Numbers:
    """The places of the smallest values, with all that equal the last of them, up to twice as many."""
    limit = np.partition(values, count - 1)[count - 1]
    return np.flatnonzero(values <= limit)[: 2 * count]


def _stretches(places: Iterable[tuple[str, int]]) -> list[tuple[tuple[str, int], int]]:
    """Places as ranges: those that follow one another are read as one."""
    found: list[tuple[tuple[str, int], int]] = []
    for thread_id, seq in places:
        if found and found[-1][0][0] == thread_id and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append(((thread_id, seq), seq))
    return found


async def _without_signatures(
    tx: Transaction, model: str, heads: Iterable[Head], threads: Iterable[Searched], ranges: Ranges | None
) -> list[Candidate]:
    """The vectors of blocks whose signatures are not made yet, all of them."""
    there = {(head.thread_id, head.block) for head in heads}
    asked = [
        (thread.thread_id, block * BLOCK, block * BLOCK + BLOCK - 1)
        for thread in threads
        for block in range(thread.first_seq // BLOCK, thread.entry_count // BLOCK + 1)
        if thread.entry_count and (thread.thread_id, block) not in there
    ]
    if not asked:
        return []
    found = await vectors.between(tx, model, asked)
    return found if ranges is None else [row for row in found if _is_in(row.seq, ranges.get(row.thread_id, ()))]


def _is_in(seq: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def _ranked(found: Sequence[Candidate], vector: Vectors, count: int) -> list[tuple[str, int, float]]:
    if not found:
        return []
    similar = np.array([row.vector for row in found]) @ vector
    ranked = sorted(
        (-round(float(value), 5), row.thread_id, row.seq) for value, row in zip(similar, found, strict=True)
    )
    return [(thread_id, seq, -value) for value, thread_id, seq in ranked[:count]]
