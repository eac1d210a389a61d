"""Finds the entries that share most with a question, by its terms: in one thread, or in all of a user's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from longthread.memory.matching import weighed
from longthread.memory.postings import Postings, by_bucket, hash_of, look_up
from longthread.memory.ranking import REACH, Block, Corpus, Layout, best, lay_out, score
from longthread.memory.shelf import Ranges
from longthread.memory.volumes import Area, Bound, Counting
from longthread.store import recall, volumes
from longthread.store.driver import Transaction
from longthread.store.recall import Searched

MOST_TERMS = 256
"""Terms of a question that count, the first ones."""
_TIED = 1000
"""Of places that equal the last one, so many are looked at: where they stand depends on what is put together."""


class Place(NamedTuple):
    """An entry by its thread and number."""

    thread_id: str
    seq: int


async def by_keywords(
    tx: Transaction,
    text: str,
    area: Area,
    count: int,
    ranges: Ranges | None = None,
    before: Place | None = None,
) -> list[tuple[Place, float]]:
    """The entries that share most with a question, by BM25 over terms; the best first, of equals by thread and number.

    Args:
        ranges: only these entries.
        before: of this entry's thread only those before it. The area has that thread on its own.
    """
    wanted = weights_of(text)
    hashes = list(wanted)
    blocks = [*await _of_threads(tx, area, hashes, before), *await _of_volumes(tx, area, hashes)]
    if not blocks:
        return []
    layout = lay_out(blocks)
    scores = score(layout, wanted, Corpus(area.entries, area.words))
    bound = {each.volume.id: each for each in area.volumes}
    scores[~_counting(layout, _ranges_of(area.threads, ranges, before), bound, ranges)] = 0
    places = best(scores, count, tied=_TIED)
    found = zip(_entries_at(layout, bound, places), scores[places].tolist(), strict=True)
    return sorted(found, key=lambda each: (-each[1], each[0]))[:count]


def weights_of(text: str) -> dict[int, float]:
    """The terms of a question that count, with what they count. Where some say what it is about, those that every
    question may have rank nothing."""
    wanted = sorted(weighed(text).items(), key=lambda each: -each[1])  # characters behind everything else
    return {hash_of(term): weight for term, weight in wanted[:MOST_TERMS]}


async def _of_threads(tx: Transaction, area: Area, hashes: Sequence[int], before: Place | None) -> list[Block]:
    buckets, scope = list(by_bucket(hashes)), area.scope
    if scope.thread_id is not None:
        rows = await recall.postings(tx, scope, buckets)
    else:
        rows = await recall.postings_of(tx, scope.user_id, [thread.thread_id for thread in area.threads], buckets)
    return _blocks(rows, hashes, before)


async def _of_volumes(tx: Transaction, area: Area, hashes: Sequence[int]) -> list[Block]:
    """The volumes as threads of which each place is an entry, as they are found in the layout."""
    if not area.volumes:
        return []
    rows = await volumes.postings(tx, area.scope.user_id, list(by_bucket(hashes)))
    blocks = _blocks([(volume, 0, bucket, data) for volume, bucket, data in rows], hashes, None)
    bound = {each.volume.id: each for each in area.volumes}
    found = []
    for block in blocks:
        its = bound[block.thread]
        if its.left_out:
            there = {value: postings.where(its.counts) for value, postings in block.found.items()}
            block = Block(block.thread, 0, {value: some for value, some in there.items() if len(some)})
        if block.found:
            found.append(block)
    return found


def _blocks(rows: Sequence[tuple[str, int, int, bytes]], hashes: Sequence[int], before: Place | None) -> list[Block]:
    found: dict[tuple[str, int], dict[int, Postings]] = {}
    of_bucket = by_bucket(hashes)
    for thread_id, segment, bucket, data in rows:
        there = look_up(data, of_bucket[bucket])
        if before is not None and before.thread_id == thread_id:
            # Before it is ranked: a question must not lift the entries around it.
            there = {value: postings.until(before.seq - segment) for value, postings in there.items()}
            there = {value: postings for value, postings in there.items() if len(postings)}
        if there:
            found.setdefault((thread_id, segment), {}).update(there)
    ordered = sorted(found.items(), key=lambda item: item[0])
    return [Block(thread_id, segment, postings) for (thread_id, segment), postings in ordered]


def _ranges_of(threads: Iterable[Searched], ranges: Ranges | None, before: Place | None) -> Ranges:
    """The entries of threads that may be found, as ranges."""
    found: dict[str, list[tuple[int, int]]] = {}
    for thread in threads:
        last = thread.entry_count
        if before is not None and before.thread_id == thread.thread_id:
            last = min(last, before.seq - 1)
        asked = ((1, last),) if ranges is None else ranges.get(thread.thread_id, ())
        found[thread.thread_id] = [(max(a, thread.first_seq), min(b, last)) for a, b in asked]
    return found


def _counting(layout: Layout, of_threads: Ranges, bound: dict[str, Bound], ranges: Ranges | None) -> Counting:
    """Of each place, whether an entry is there that may be found."""
    counts = np.zeros(layout.size, dtype=bool)
    for start, end, block in zip(layout.starts, layout.ends, layout.blocks, strict=True):
        if block.thread in bound:
            its = bound[block.thread]
            own = its.counts if ranges is None else its.within(ranges)
            part = counts[start : end + REACH + 1]
            part[: len(own)] = own[: len(part)]
            continue
        shift = start - block.first
        for first, last in of_threads.get(block.thread, ()):
            counts[max(first + shift, start - REACH, 0) : max(0, min(last + shift, end + REACH) + 1)] = True
    return counts


def _entries_at(layout: Layout, bound: dict[str, Bound], places: Sequence[int]) -> Iterator[Place]:
    for thread_id, seq in layout.entries_at(places):
        yield Place(*bound[thread_id].roll.entry_at(seq)) if thread_id in bound else Place(thread_id, seq)
