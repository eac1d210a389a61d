"""Ranks entries by the terms that they share with a question.

BM25, with one addition for conversations: a term also scores for neighbouring entries, at less the further away.
"What did she say about the trip?" is mostly answered by an entry without "trip", next to one with it. Of a term's
occurrences around an entry only the strongest scores: a long talk about a subject is no better answer.

Short texts, such as memories, are scored by the same rule from their own terms (`Bag`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.postings import Postings, hash_of
from longthread.memory.index.terms import TERMS_FORM, characters, terms
from longthread.model.bm25 import occurrence, rarity

SATURATION = 0.9
"""BM25's k1: how fast further mentions of a term in one entry stop to count."""
LENGTH = 0.4
"""BM25's b: how much a long entry is held against it. Little: an entry is one message, and not a stuffed page."""
USUAL_WORDS = 50.0
"""Words of an entry of the usual length, at most: long answers are long compared to what people say to one another, and
not to other long answers."""
NEIGHBOUR = 0.6
"""What a term counts for the entry next to it."""
FADE = 0.85
"""And for each further one, of what it counted for the one before."""
COMMON = 0.25
"""The share of entries from which on a term counts only where it stands: it is around every entry anyway."""
RAREST = 2
"""So many of a question's terms that weigh less than 1 count: the ones in the fewest entries."""
_DOUBLINGS = 4
"""A term counts for 2 ** this many entries on either side."""
REACH = 2**_DOUBLINGS
_ROOM = 2 * REACH + 1

Scores = NDArray[np.float32]
_Counted = tuple[NDArray[np.int64], Scores]
"""Places, and what is counted at each of them."""


@dataclass(frozen=True, slots=True)
class RankingBlock:
    """A segment for the ranking: entries of `thread` from `first` on, with postings and marks by hash."""

    thread: str
    first: int
    found: Mapping[int, Postings]
    marked: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Corpus:
    entries: int
    words: int

    @property
    def usual_words(self) -> float:
        """The usual length of an entry in words: the mean, where entries are short."""
        return min(USUAL_WORDS, max(1.0, self.words / max(1, self.entries)))


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """All blocks side by side: where each begins, and where its last term is.
    Blocks that are not neighbours have gaps between them for scores that spread."""

    blocks: Sequence[RankingBlock]
    starts: Sequence[int]
    ends: Sequence[int]

    @property
    def size(self) -> int:
        return self.ends[-1] + _ROOM if self.ends else 0

    def mask_marked(self, mark: int) -> NDArray[np.bool_]:
        """Return a mask of the places whose entries have a mark."""
        there = np.zeros(self.size, dtype=bool)
        of_thread = {
            thread: _mask_thread(list(its), mark) for thread, its in groupby(self.blocks, lambda each: each.thread)
        }
        for start, end, block in zip(self.starts, self.ends, self.blocks, strict=True):
            # Scores that spread into a gap reach entries of the next block.
            first, own = of_thread[block.thread]
            at = start + first - block.first
            begin = max(0, start - REACH, at)
            stop = max(begin, min(end + REACH + 1, at + len(own)))
            there[begin:stop] |= own[begin - at : stop - at]
        return there

    def entries_at(self, places: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Yield thread and number of the entries at places; such entries need not exist."""
        blocks, starts, ends = self.blocks, self.starts, self.ends
        for place in places:
            at = max(0, bisect_right(starts, place) - 1)
            if place - ends[at] > REACH and at + 1 < len(blocks) and starts[at + 1] - place <= REACH:
                at += 1
            yield blocks[at].thread, blocks[at].first + place - starts[at]


def _mask_thread(blocks: Sequence[RankingBlock], mark: int) -> tuple[int, NDArray[np.bool_]]:
    """Return the number of the thread's first entry, and a mask from there on."""
    first = blocks[0].first
    marked = [(block.first - first, block.marked[mark]) for block in blocks if mark in block.marked]
    own = np.zeros(max((at + len(its) for at, its in marked), default=0), dtype=bool)
    for at, its in marked:
        own[at : at + len(its)] |= its
    return first, own


def lay_out(blocks: Sequence[RankingBlock]) -> BlockLayout:
    """Lay out blocks that are sorted by thread and entry."""
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
    """A term with its weight, the number of its entries, and its blocks by their first place."""

    weight: float
    count: int
    parts: Sequence[tuple[int, Postings]]

    def fades(self, corpus: Corpus) -> bool:
        """Whether it scores for neighbouring entries."""
        return self.weight >= 1 and self.count <= COMMON * corpus.entries

    def weigh_places(self, corpus: Corpus) -> _Counted:
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
    """Score each place for weighted terms. Of those below weight 1 only the rarest score, and without spreading."""
    scores = np.zeros(layout.size, dtype=np.float32)
    terms = _terms(layout, hashes)
    # A term at many places is computed for all of them, which is faster.
    narrow = [each for each, term in enumerate(terms) if term.fades(corpus) and term.count * _ROOM <= len(scores)]
    around = dict(zip(narrow, _around([terms[each].weigh_places(corpus) for each in narrow]), strict=True))
    # Added in the question's order: sums must not depend on the layout of entries.
    for each, term in enumerate(terms):
        places, values = around[each] if each in around else term.weigh_places(corpus)
        if each in around or not term.fades(corpus):
            scores[places] += values
        else:
            own = np.zeros(len(scores), dtype=np.float32)
            own[places] = values
            scores += spread(own)
    return scores


def _terms(layout: BlockLayout, hashes: Mapping[int, float]) -> list[_Term]:
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
    if not terms:
        return
    # The ranges around the places, side by side: as wide as a term's reach, and disjoint.
    # All terms at once: a numpy call costs more than the few places of one term.
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
    """Spread a term's scores to neighbouring places; each has its highest."""
    around, faded = own.copy(), np.empty_like(own)
    for doubling in range(_DOUBLINGS):
        step = 2**doubling
        np.multiply(around, np.float32(FADE**step), out=faded)
        np.maximum(around[step:], faded[:-step], out=around[step:])
        np.maximum(around[:-step], faded[step:], out=around[:-step])
    # From the next place on: this place's own score is higher than what spreads back.
    np.multiply(around, np.float32(NEIGHBOUR), out=faded)
    out = own.copy()
    np.maximum(out[1:], faded[:-1], out=out[1:])
    np.maximum(out[:-1], faded[1:], out=out[:-1])
    return out


def best(scores: Scores, count: int, *, tied: int = 0) -> list[int]:
    """Return the places with the highest scores above 0, earlier ones first among equals.
    Up to `tied` more that equal the last are added."""
    count = min(count, len(scores))
    if count <= 0:
        return []
    limit = np.partition(scores, len(scores) - count)[len(scores) - count]
    candidates = np.flatnonzero(scores >= max(limit, np.float32(np.finfo(np.float32).tiny)))
    order = np.lexsort((candidates, -scores[candidates]))
    return [int(place) for place in candidates[order][: count + tied]]


_TERM = np.dtype([("hash", "<u8"), ("count", "<u2")])
_MOST = 65535


@dataclass(frozen=True, slots=True)
class Bag:
    """The hashed terms and characters of a text with their counts; `words` is the number of terms."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.uint16]
    words: int

    @classmethod
    def of(cls, text: str) -> Bag:
        found = terms(text)
        counted = Counter(hash_of(term) for term in [*found, *characters(text)])
        order = sorted(counted)
        counts = np.array([min(counted[value], _MOST) for value in order], dtype=np.uint16)
        return cls(np.array(order, dtype=np.uint64), counts, len(found))

    @classmethod
    def read(cls, data: bytes, words: int) -> Bag:
        rows = np.frombuffer(data, _TERM)
        return cls(rows["hash"].astype(np.uint64), rows["count"].astype(np.uint16), words)

    def pack(self) -> bytes:
        """Serialize hashes and counts; the text is not stored."""
        rows = np.empty(len(self.hashes), dtype=_TERM)
        rows["hash"], rows["count"] = self.hashes, self.counts
        return rows.tobytes()


def form_of(text: str) -> str:
    """Identify a text and the version of its terms."""
    return f"{TERMS_FORM}:{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def score_bags(bags: Mapping[str, Bag], wanted: Mapping[str, float]) -> dict[str, float]:
    """Score each text by name; texts that share no term are left out."""
    if not bags:
        return {}
    names, each = list(bags), list(bags.values())
    words = np.array([bag.words for bag in each], dtype=np.float64)
    owners = np.repeat(np.arange(len(each)), [len(bag.hashes) for bag in each])
    hashes = np.concatenate([bag.hashes for bag in each])
    counts = np.concatenate([bag.counts for bag in each]).astype(np.float64)
    average = max(1.0, float(words.mean()))
    found = np.zeros(len(each))
    for value, weight in sorted((hash_of(term), weight) for term, weight in wanted.items()):
        places = np.flatnonzero(hashes == np.uint64(value))
        at = owners[places]
        said = occurrence(counts[places], words[at], average, saturation=SATURATION, length=LENGTH)
        found[at] += weight * rarity(len(each), len(places)) * said
    return {name: round(float(value), 6) for name, value in zip(names, found, strict=True) if value > 0}


def holds_all(bag: Bag, wanted: Collection[str]) -> bool:
    return all(_place(bag, hash_of(term)) is not None for term in wanted)


def _place(bag: Bag, value: int) -> int | None:
    place = int(bag.hashes.searchsorted(np.uint64(value)))
    return place if place < len(bag.hashes) and int(bag.hashes[place]) == value else None
