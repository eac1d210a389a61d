"""Which entries answer a question best, by the terms that they share with it.

BM25, with one addition that conversations ask for: a term counts not only for the entry that it stands in, but, fading,
for those around it too. "What did she say about the trip?" is mostly answered by an entry that does not say "trip",
next to one that does. Of a term that several entries around say, only the strongest counts: a subject that is talked
about at length is not thereby a better answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.postings import Postings
from longthread.model.bm25 import rarity

SATURATION = 0.9
"""BM25's k1: how fast further mentions of a term in one entry stop to count."""
LENGTH = 0.4
"""BM25's b: how much a long entry is held against it. Little: an entry is one message, and not a stuffed page."""
USUAL_WORDS = 50.0
"""Words of an entry of the usual length, at most: long answers are long beside what people say to one another, and not
beside other long answers."""
NEIGHBOUR = 0.6
"""What a term counts for the entry next to it."""
FADE = 0.85
"""And for each further one, of what it counted for the one before."""
COMMON = 0.25
"""The share of entries from which on a term counts only where it stands: it is around every entry anyway."""
RAREST = 2
"""So many of a question's terms that weigh less than 1 count: those that stand in the fewest entries."""
_DOUBLINGS = 4
"""A term counts for 2 ** this many entries on either side."""
REACH = 2**_DOUBLINGS
_ROOM = 2 * REACH + 1

Scores = NDArray[np.float32]
_Counted = tuple[NDArray[np.int64], Scores]
"""Places, and what is counted at each of them."""


@dataclass(frozen=True, slots=True)
class RankingBlock:
    """A segment as the ranking sees it: the entries of `thread` from `first` on, where the terms stand in it, and, by
    their hashes, which of its entries have a mark."""

    thread: str
    first: int
    found: Mapping[int, Postings]
    marked: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    """How many entries are searched, and how many words they have."""

    entries: int
    words: int

    @property
    def usual_words(self) -> float:
        """The words of an entry of the usual length: the mean, where entries are short."""
        return min(USUAL_WORDS, max(1.0, self.words / max(1, self.entries)))


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """All blocks side by side: the place where each begins, and where the last term in it stands. Between blocks that
    are no neighbours there is room for what fades into it from either side."""

    blocks: Sequence[RankingBlock]
    starts: Sequence[int]
    ends: Sequence[int]

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.ends[-1] + _ROOM if self.ends else 0

    def marked(self, mark: int) -> NDArray[np.bool_]:
        """Whether the entry at each place has a mark."""
        there = np.zeros(self.size, dtype=bool)
        of_thread = {thread: _marked(list(its), mark) for thread, its in groupby(self.blocks, lambda each: each.thread)}
        for start, end, block in zip(self.starts, self.ends, self.blocks, strict=True):
            # What fades into the room around a block reaches entries of the blocks next to it.
            first, own = of_thread[block.thread]
            at = start + first - block.first
            begin = max(0, start - REACH, at)
            stop = max(begin, min(end + REACH + 1, at + len(own)))
            there[begin:stop] |= own[begin - at : stop - at]
        return there

    def entries_at(self, places: Iterable[int]) -> Iterator[tuple[str, int]]:
        """The threads and the numbers of the entries at places; there may be no such entries."""
        blocks, starts, ends = self.blocks, self.starts, self.ends
        for place in places:
            at = max(0, bisect_right(starts, place) - 1)
            if place - ends[at] > REACH and at + 1 < len(blocks) and starts[at + 1] - place <= REACH:
                at += 1
            yield blocks[at].thread, blocks[at].first + place - starts[at]


def _marked(blocks: Sequence[RankingBlock], mark: int) -> tuple[int, NDArray[np.bool_]]:
    """Which entries of a thread have a mark, from the first of its blocks on; and the number of the first one."""
    first = blocks[0].first
    marked = [(block.first - first, block.marked[mark]) for block in blocks if mark in block.marked]
    own = np.zeros(max((at + len(its) for at, its in marked), default=0), dtype=bool)
    for at, its in marked:
        own[at : at + len(its)] |= its
    return first, own


def lay_out(blocks: Sequence[RankingBlock]) -> BlockLayout:
    """Places for the entries of blocks, which come in the order of their threads and within one of their entries."""
    starts: list[int] = []
    ends: list[int] = []
    for at, block in enumerate(blocks):
        place = ends[-1] + _ROOM if ends else REACH
        before = blocks[at - 1]
        if at and before.thread == block.thread:
            place = min(place, starts[-1] + block.first - before.first)
        widest = max((int(postings.columns[0, -1]) for postings in block.found.values()), default=0)
        starts.append(place)
        ends.append(place + widest)
    return BlockLayout(blocks, starts, ends)


@dataclass(frozen=True, slots=True)
class _Term:
    """A term that counts: what it weighs, how many entries have it, and the blocks that do, by where they begin."""

    weight: float
    count: int
    parts: Sequence[tuple[int, Postings]]

    def fades(self, corpus: Corpus) -> bool:
        """Whether it counts around the entries that it stands in."""
        return self.weight >= 1 and self.count <= COMMON * corpus.entries

    def counted(self, corpus: Corpus) -> _Counted:
        """Its places, and what it counts at each of them."""
        places = np.empty(self.count, np.int64)
        values, norms = np.empty(self.count, np.float32), np.empty(self.count, np.float32)
        at = 0
        for start, postings in self.parts:
            own = slice(at, at + len(postings))
            places[own], values[own], norms[own] = postings.places, postings.counts, postings.columns[2]
            places[own] += start
            at = own.stop
        # `bm25.occurrence`, in place: there may be very many.
        norms *= np.float32(SATURATION * LENGTH / corpus.usual_words)
        norms += np.float32(SATURATION * (1 - LENGTH))
        norms += values
        values *= np.float32(self.weight * rarity(corpus.entries, self.count) * (SATURATION + 1))
        values /= norms
        return places, values


def score(layout: BlockLayout, hashes: Mapping[int, float], corpus: Corpus) -> Scores:
    """The score of each place, for the terms of a question and their weights. Of those that weigh less than 1 the
    rarest count, and only where they stand."""
    scores = np.zeros(layout.size, dtype=np.float32)
    terms = _terms(layout, hashes)
    # Of a term that is at many places, all are looked at: it takes less.
    narrow = [each for each, term in enumerate(terms) if term.fades(corpus) and term.count * _ROOM <= len(scores)]
    around = dict(zip(narrow, _around([terms[each].counted(corpus) for each in narrow]), strict=True))
    # All are added in the question's order: sums must not depend on how the entries are laid out.
    for each, term in enumerate(terms):
        places, values = around[each] if each in around else term.counted(corpus)
        if each in around or not term.fades(corpus):
            scores[places] += values
        else:
            own = np.zeros(len(scores), dtype=np.float32)
            own[places] = values
            scores += spread(own)
    return scores


def _terms(layout: BlockLayout, hashes: Mapping[int, float]) -> list[_Term]:
    """The terms that count, in the question's order."""
    having: dict[int, list[tuple[int, Postings]]] = {value: [] for value in hashes}
    for start, block in zip(layout.starts, layout.blocks, strict=True):
        for value, postings in block.found.items():
            if value in having:  # what another part of the question asks for is not counted here
                having[value].append((start, postings))
    counts = {value: sum(len(postings) for _, postings in parts) for value, parts in having.items() if parts}
    light = sorted((count, value) for value, count in counts.items() if hashes[value] < 1)
    left_out = {value for _, value in light[RAREST:]}
    return [
        _Term(weight, counts[value], having[value])
        for value, weight in hashes.items()
        if value in counts and value not in left_out
    ]


def _around(terms: Sequence[_Counted]) -> Iterator[_Counted]:
    """For each term the places around its own, and what it counts there."""
    if not terms:
        return
    # The stretches around the places, side by side: they are as wide as a term reaches, and do not reach each other.
    # What all terms have is put together: each step takes longer to begin than for the few places of one.
    places = np.concatenate([places for places, _ in terms])
    ends = np.cumsum([len(places) for places, _ in terms])
    near = np.empty(len(places), np.int64)
    near[0] = REACH
    np.subtract(places[1:], places[:-1], out=near[1:])
    np.minimum(near, _ROOM, out=near)
    near[ends[:-1]] = _ROOM
    near.cumsum(out=near)
    own = np.zeros(int(near[-1]) + REACH + 1, dtype=np.float32)
    own[near] = np.concatenate([values for _, values in terms])
    values = spread(own)
    lengths = near + (REACH + 1)
    lengths[1:] -= lengths[:-1].copy()
    all_places = (places - near).repeat(lengths)
    all_places += np.arange(len(own))
    stops = (near[ends - 1] + (REACH + 1)).tolist()
    for start, stop in zip([0, *stops], stops, strict=False):
        yield all_places[start:stop], values[start:stop]


def spread(own: Scores) -> Scores:
    """What a term counts for each place: there, or fading around it, whichever is most."""
    around, faded = own.copy(), np.empty_like(own)
    for doubling in range(_DOUBLINGS):
        step = 2**doubling
        np.multiply(around, np.float32(FADE**step), out=faded)
        np.maximum(around[step:], faded[:-step], out=around[step:])
        np.maximum(around[:-step], faded[step:], out=around[:-step])
    # From the next place on: what is here counts more here than what would come back of it.
    np.multiply(around, np.float32(NEIGHBOUR), out=faded)
    out = own.copy()
    np.maximum(out[1:], faded[:-1], out=out[1:])
    np.maximum(out[:-1], faded[1:], out=out[:-1])
    return out


def best(scores: Scores, count: int, *, tied: int = 0) -> list[int]:
    """The places with the highest scores above 0, the first of equals first; with up to `tied` more that equal the
    last."""
    count = min(count, len(scores))
    if count <= 0:
        return []
    limit = np.partition(scores, len(scores) - count)[len(scores) - count]
    candidates = np.flatnonzero(scores >= max(limit, np.float32(np.finfo(np.float32).tiny)))
    order = np.lexsort((candidates, -scores[candidates]))
    return [int(place) for place in candidates[order][: count + tied]]
