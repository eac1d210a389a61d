"""Which entries answer a question best, by the terms that they share with it.

BM25, with one addition that conversations ask for: a term counts not only for the entry that it stands in, but, fading,
for those around it too. "What did she say about the trip?" is mostly answered by an entry that does not say "trip",
next to one that does. Of a term that several entries around say, only the strongest counts: a subject that is talked
about at length is not thereby a better answer.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longthread.memory.postings import Postings

SATURATION = 0.9
"""BM25's k1: how fast further mentions of a term in one entry stop to count."""
LENGTH = 0.4
"""BM25's b: how much a long entry is held against it. Little: an entry is one message, and not a stuffed page."""
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


@dataclass(frozen=True, slots=True)
class Block:
    """A segment as the ranking sees it: the entries of `thread` from `first` on, and where the terms stand in it."""

    thread: str
    first: int
    found: Mapping[int, Postings]


@dataclass(frozen=True, slots=True)
class Corpus:
    """How many entries are searched, and how many words they have."""

    entries: int
    words: int


@dataclass(frozen=True, slots=True)
class Layout:
    """All blocks side by side: the place where each begins, and where the last term in it stands. Between blocks that
    are no neighbours there is room for what fades into it from either side."""

    blocks: Sequence[Block]
    starts: Sequence[int]
    ends: Sequence[int]

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.ends[-1] + _ROOM if self.ends else 0

    def entry_at(self, place: int) -> tuple[str, int]:
        """The thread and the number of the entry at a place; there may be no such entry."""
        at = max(0, bisect_right(self.starts, place) - 1)
        behind = place - self.ends[at]
        if behind > REACH and at + 1 < len(self.blocks) and self.starts[at + 1] - place <= REACH:
            at += 1
        return self.blocks[at].thread, self.blocks[at].first + place - self.starts[at]


def lay_out(blocks: Sequence[Block]) -> Layout:
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
    return Layout(blocks, starts, ends)


def score(layout: Layout, hashes: Mapping[int, float], corpus: Corpus) -> Scores:
    """The score of each place, for the terms of a question and their weights. Of those that weigh less than 1 the
    rarest count, and only where they stand."""
    scores = np.zeros(layout.size, dtype=np.float32)
    average = max(1.0, corpus.words / max(1, corpus.entries))
    having: dict[int, list[tuple[int, Postings]]] = {value: [] for value in hashes}
    for start, block in zip(layout.starts, layout.blocks, strict=True):
        for value, postings in block.found.items():
            having[value].append((start, postings))
    said = {value: sum(len(postings) for _, postings in parts) for value, parts in having.items() if parts}
    light = sorted((count, value) for value, count in said.items() if hashes[value] < 1)
    left_out = {value for _, value in light[RAREST:]}
    for value, weight in hashes.items():
        if value not in said or value in left_out:
            continue
        parts = having[value]
        columns = np.concatenate([postings.columns for _, postings in parts], axis=1)
        places = columns[0].astype(np.int64)
        places += np.repeat(np.array([start for start, _ in parts]), [len(postings) for _, postings in parts])
        counts, norm = columns[1:].astype(np.float32)
        rarity = math.log(1 + (max(0, corpus.entries - len(places)) + 0.5) / (len(places) + 0.5))
        # SATURATION * (1 - LENGTH + LENGTH * words / average), in place: there may be very many.
        for step, number in ((np.multiply, LENGTH), (np.divide, average), (np.add, 1 - LENGTH)):
            step(norm, np.float32(number), out=norm)
        norm *= np.float32(SATURATION)
        norm += counts
        counts *= np.float32(weight * rarity * (SATURATION + 1))
        counts /= norm
        if weight < 1 or len(places) > COMMON * corpus.entries:
            scores[places] += counts
        else:
            _add_spread(scores, places, counts)
    return scores


def _add_spread(scores: Scores, places: NDArray[np.int64], values: Scores) -> None:
    """Add what a term counts at these places and around them; only what lies there is looked at."""
    if len(places) * _ROOM > len(scores):
        own = np.zeros(len(scores), dtype=np.float32)
        own[places] = values
        scores += spread(own)
        return
    # The stretches around the places, side by side: they are as wide as a term reaches, and do not reach each other.
    steps = np.minimum(np.diff(places, prepend=places[0]), _ROOM)
    near = np.cumsum(steps) + REACH
    own = np.zeros(int(near[-1]) + REACH + 1, dtype=np.float32)
    own[near] = values
    shifts = np.repeat(places - near, np.diff(near + REACH + 1, prepend=0))
    scores[np.arange(len(own)) + shifts] += spread(own)


def spread(own: Scores) -> Scores:
    """What a term counts for each place: there, or fading around it, whichever is most."""
    before, after = own.copy(), own.copy()
    for doubling in range(_DOUBLINGS):
        step = 2**doubling
        fade = np.float32(FADE**step)
        # The sides are copied: each pass must see what the one before has left, and not what it does itself.
        np.maximum(before[step:], before[:-step] * fade, out=before[step:])
        np.maximum(after[:-step], after[step:] * fade, out=after[:-step])
    out = own.copy()
    np.maximum(out[1:], before[:-1] * np.float32(NEIGHBOUR), out=out[1:])
    np.maximum(out[:-1], after[1:] * np.float32(NEIGHBOUR), out=out[:-1])
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
