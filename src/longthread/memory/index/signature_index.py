"""The vector signatures of a scope in memory, laid out for fast comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longthread.memory.embedder import Vectors
from longthread.store.signatures import Bits, Signatures, pack_signs, rotate_vectors
from longthread.store.vectors import BLOCK, BlockHead

SLAB = 16 * BLOCK
"""Entries that are compared at a time: what is between two steps stays in the processor's cache."""
_WEIGHED_AT_ONCE = 512
_ROUGH_BITS, _FINE_BITS = 3, 6
"""Bits of each of the question's numbers that signs are compared with, and both bits."""
_LONG = 1024
"""Numbers of a vector from which on they are one less: the more there are, the less each must say."""
_STEPS = {2: 0.9957, 3: 0.586, 6: 0.1041}
"""By the bits of a number: the standard deviations from one level to the next with which least is lost."""

Ranges = Mapping[str, Sequence[tuple[int, int]]]
"""By thread: the entries that count, as ranges of (first, last) in their order. Other threads have none."""
RowNumbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SignatureBlock:
    """Consecutive blocks, one row for each entry. `starts` has each block's first row, `lengths` its row count.
    `signs` and `large` are the first 64 bits of all rows, then the next, and so on. `offsets` is each row's own term of
    the similarity by signs: the rest is its block's and the question's."""

    heads: Sequence[BlockHead]
    starts: RowNumbers
    lengths: RowNumbers
    seqs: RowNumbers
    signs: Bits
    large: Bits
    terms: Vectors
    centers: Vectors
    offsets: Vectors

    @classmethod
    def of(cls, blocks: Mapping[BlockHead, Signatures], home: Vectors) -> SignatureBlock:
        parts = list(blocks.values())
        lengths = np.array([len(part.seqs) for part in parts], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        signs, large = (
            np.ascontiguousarray(np.concatenate(each).T)
            for each in ([part.signs for part in parts], [part.large for part in parts])
        )
        terms = np.concatenate([part.terms for part in parts]).T.copy()
        centers = np.array([part.center for part in parts])
        seqs = np.concatenate([part.seqs for part in parts])
        offsets = terms[1] + terms[0] * (2 * _sums(signs, _tables(home)) - home.sum())
        return cls(list(blocks), starts, lengths, seqs, signs, large, terms, centers, offsets)

    @property
    def size(self) -> int:
        parts = self.seqs, self.signs, self.large, self.terms, self.centers, self.offsets
        return sum(part.nbytes for part in parts)

    def blocks(self) -> Iterator[tuple[BlockHead, Signatures]]:
        for at, (head, start, end) in enumerate(self._parts()):
            signs, large = (bits[:, start:end].T for bits in (self.signs, self.large))
            yield head, Signatures(self.seqs[start:end], signs, large, self.terms[:, start:end].T, self.centers[at])

    def _parts(self) -> Iterator[tuple[BlockHead, int, int]]:
        ends = [*self.starts.tolist(), len(self.seqs)]
        return ((head, ends[at], ends[at + 1]) for at, head in enumerate(self.heads))

    def rows_in(self, ranges: Ranges | None) -> RowNumbers:
        """Return the rows of entries in ranges; None: all."""
        if ranges is None:
            return _first_rows(len(self.seqs))
        found: list[RowNumbers] = [np.zeros(0, dtype=np.int64)]
        for head, start, end in self._parts():
            for first, last in ranges.get(head.thread_id, ()):
                if first < (head.block + 1) * BLOCK and last >= head.block * BLOCK:
                    begin, stop = self.seqs[start:end].searchsorted([first, last + 1])
                    found.append(np.arange(start + begin, start + stop))
        return np.concatenate(found)

    def places(self, rows: RowNumbers) -> list[tuple[str, int]]:
        seqs = self.seqs[rows].tolist()
        return [(self.heads[block].thread_id, seq) for block, seq in zip(self._blocks_of(rows), seqs, strict=True)]

    def _blocks_of(self, rows: RowNumbers) -> RowNumbers:
        found: RowNumbers = self.starts.searchsorted(rows, side="right") - 1
        return found

    def by_signs(self, asked: QuestionSignature, rows: RowNumbers) -> Vectors:
        """Estimate the cosines of rows with the question from signs."""
        if len(rows) == len(self.seqs):
            signs, scales, offsets = self.signs, self.terms[0], self.offsets
        else:
            signs, scales, offsets = self.signs.take(rows, axis=1), self.terms[0].take(rows), self.offsets.take(rows)
        found = asked.roughly.products(signs)
        found *= scales
        found += offsets
        found += self.bases(asked, rows)
        return found

    def bases(self, asked: QuestionSignature, rows: RowNumbers) -> Vectors:
        """Return each row's product of the question with its block's center."""
        of_block: Vectors = self.centers @ asked.turned
        if len(rows) == len(self.seqs):
            return of_block.repeat(self.lengths)
        found: Vectors = of_block[self._blocks_of(rows)]
        return found


@dataclass(frozen=True, slots=True)
class SignatureIndex:
    """The signatures of a scope. Questions are coarsely quantised relative to `home`, the center:
    what all vectors share then needs no bits."""

    heads: Sequence[BlockHead]
    home: Vectors
    slabs: Sequence[SignatureBlock]

    @property
    def size(self) -> int:
        return sum(slab.size for slab in self.slabs)


@dataclass(frozen=True, slots=True)
class QuantizedNumbers:
    """Numbers in a few bits: `planes` of levels a `step` apart, highest bits first.
    `most` is the product with signs that agree with all planes."""

    planes: Bits
    counting: type[np.unsignedinteger[Any]]
    step: np.float32
    most: np.float32

    @classmethod
    def of(cls, numbers: Vectors, bits: int) -> QuantizedNumbers:
        """Quantise numbers that are about normally distributed."""
        highest = 2**bits - 1
        step = np.sqrt((numbers * numbers).mean()) * np.float32(_STEPS[bits])
        levels = np.floor(numbers / max(step, np.float32(1e-30))) + 2 ** (bits - 1)
        levels = np.clip(levels, 0, highest).astype(np.uint8)
        planes = pack_signs(levels >> np.arange(bits, dtype=np.uint8)[::-1, None] & 1)
        counting = np.uint16 if len(numbers) * highest < 2**16 else np.uint32
        return cls(planes, counting, step, step * np.float32(len(numbers) * highest / 2))

    def products(self, words: Bits) -> Vectors:
        """Estimate the products of the numbers with signs, which are packed 64 to a column's number."""
        apart = np.zeros(words.shape[1], dtype=self.counting)
        for start in range(0, len(apart), SLAB):
            part = apart[start : start + SLAB]
            differing, counts = np.empty(len(part), np.uint64), np.empty(len(part), np.uint8)
            for plane in self.planes:
                part += part
                for word, own in zip(words, plane, strict=True):
                    np.bitwise_xor(word[start : start + SLAB], own, out=differing)
                    part += np.bitwise_count(differing, out=counts)
        found = apart.astype(np.float32)
        found *= -self.step
        found += self.most
        return found


@dataclass(frozen=True, slots=True)
class QuestionSignature:
    """A rotated question vector, quantised: `roughly` relative to the index's home, `finely` as it is."""

    turned: Vectors
    roughly: QuantizedNumbers
    finely: QuantizedNumbers

    @classmethod
    def of(cls, vector: Vectors, shelf: SignatureIndex) -> QuestionSignature:
        own = rotate_vectors(vector)
        bits = _ROUGH_BITS if len(own) < _LONG else _ROUGH_BITS - 1
        return cls(own, QuantizedNumbers.of(own - shelf.home, bits), QuantizedNumbers.of(own, _FINE_BITS))


def by_both(slabs: Sequence[SignatureBlock], asked: QuestionSignature, rows: Sequence[RowNumbers]) -> Vectors:
    """Estimate cosines of some rows with the question, more exactly than by signs: by both bits."""
    chosen = [(slab, some) for slab, some in zip(slabs, rows, strict=True) if len(some)]
    bits = [*(slab.signs.take(some, axis=1) for slab, some in chosen)]
    bits += [slab.large.take(some, axis=1) for slab, some in chosen]
    bases = np.concatenate([slab.bases(asked, some) + slab.terms[3].take(some) for slab, some in chosen])
    scales = np.concatenate([slab.terms[2].take(some) for slab, some in chosen])
    signs, large = asked.finely.products(np.concatenate(bits, axis=1)).reshape(2, -1)
    # A level is the sign and half of what the second bit says, as signs.
    found: Vectors = bases + scales * (signs + np.float32(0.5) * large)
    return found


def put_together(
    heads: Sequence[BlockHead], fetched: Mapping[BlockHead, Signatures], before: SignatureIndex | None
) -> SignatureIndex:
    """Build the index of these blocks from fetched ones and the index before, whose slabs are reused."""
    if not heads:
        return SignatureIndex([], np.zeros(0, np.float32), [])
    home = _center(heads[0], fetched, before)
    same = {}
    if before is not None and np.array_equal(home, before.home):
        same = {slab.heads[0]: slab for slab in before.slabs}
    made = _Making(home, fetched, before)
    at = 0
    while at < len(heads):
        slab = same.get(heads[at])
        if slab is not None and heads[at : at + len(slab.heads)] == slab.heads:
            made.keep(slab)
            at += len(slab.heads)
        else:
            made.add(heads[at])
            at += 1
    return SignatureIndex(heads, home, made.slabs())


class _Making:
    """Collects slabs. Small ones are merged with new neighbours, so that slabs stay few."""

    def __init__(self, home: Vectors, fetched: Mapping[BlockHead, Signatures], before: SignatureIndex | None) -> None:
        self._home = home
        self._known = dict(fetched)
        self._of_slab = {head: slab for slab in before.slabs for head in slab.heads} if before else {}
        self._slabs: list[SignatureBlock] = []
        self._group: dict[BlockHead, Signatures] = {}

    def add(self, head: BlockHead) -> None:
        if head not in self._known:
            self._known |= self._of_slab[head].blocks()
        if not self._group and self._slabs and _is_small(self._slabs[-1]):
            self._group |= self._slabs.pop().blocks()
        self._group[head] = self._known[head]

    def keep(self, slab: SignatureBlock) -> None:
        if self._group and _is_small(slab):
            self._group |= slab.blocks()
            return
        self._flush()
        self._slabs.append(slab)

    def slabs(self) -> list[SignatureBlock]:
        self._flush()
        return self._slabs

    def _flush(self) -> None:
        part: dict[BlockHead, Signatures] = {}
        entries = 0
        for head, block in self._group.items():
            if entries + len(block.seqs) > SLAB:
                self._slabs.append(SignatureBlock.of(part, self._home))
                part, entries = {}, 0
            part[head] = block
            entries += len(block.seqs)
        if part:
            self._slabs.append(SignatureBlock.of(part, self._home))
        self._group = {}


@lru_cache(maxsize=64)
def _first_rows(count: int) -> RowNumbers:
    """Return the first row numbers, cached for every question: never change them."""
    rows = np.arange(count)
    rows.flags.writeable = False
    return rows


def _is_small(slab: SignatureBlock) -> bool:
    return 2 * len(slab.seqs) < SLAB


def _center(head: BlockHead, fetched: Mapping[BlockHead, Signatures], before: SignatureIndex | None) -> Vectors:
    if head in fetched:
        return fetched[head].center
    assert before is not None
    return next(block.center for slab in before.slabs for other, block in slab.blocks() if other == head)


_PATTERNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
"""The bits of each byte, the highest first."""


def _tables(vector: Vectors) -> Vectors:
    """For every eight numbers of a vector, tabulate the sums of subsets by a byte's bits."""
    found: Vectors = np.einsum("ij,kj->ik", vector.reshape(-1, 8), _PATTERNS)
    return found


def _sums(words: Bits, tables: Vectors) -> Vectors:
    """Sum a vector's numbers where an entry's bit is set, by its tables."""
    own = 256 * np.arange(len(tables))
    found = np.empty(words.shape[1], dtype=np.float32)
    for start in range(0, len(found), _WEIGHED_AT_ONCE):
        part = np.ascontiguousarray(words[:, start : start + _WEIGHED_AT_ONCE].T).view(np.uint8)
        found[start : start + _WEIGHED_AT_ONCE] = np.take(tables, part + own).sum(axis=1)
    return found
