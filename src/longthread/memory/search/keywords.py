"""Finds entries by the terms that they share with a question, in one thread or in all of a user's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.postings import HAS_TIME, MARKS, USER_SAID, Postings, look_up, spread_out
from longthread.memory.index.query import ParsedQuery
from longthread.memory.index.ranking import REACH, BlockLayout, Corpus, RankingBlock, Scores, best, lay_out, score
from longthread.memory.index.shards import Counting, SearchArea, SearchedShard
from longthread.memory.index.signature_index import Ranges
from longthread.store.driver import Transaction
from longthread.store.index import recall
from longthread.store.index.recall import Searched

OF_SPEAKER = 1.3
"""What an entry counts that was said by whom the question asks for."""
WITH_TIME = 1.2
"""What an entry counts that has a time, where the question asks for one."""
_TIED = 1000
"""Of places that equal the last one, so many are looked at: where they stand depends on what is put together."""


class EntryPlace(NamedTuple):
    thread_id: str
    seq: int


async def by_keywords(
    tx: Transaction,
    asked: ParsedQuery,
    area: SearchArea,
    count: int,
    ranges: Ranges | None = None,
    before: EntryPlace | None = None,
) -> list[tuple[EntryPlace, float]]:
    """Rank entries by BM25, best first, ties by thread and number.

    Args:
        ranges: only these entries.
        before: of this entry's thread only earlier ones. The area has that thread by its own index.
    """
    blocks = [*await _of_threads(tx, area, asked, before), *await _of_volumes(tx, area, asked)]
    if not blocks:
        return []
    layout = lay_out(blocks)
    bound = {each.volume.id: each for each in area.volumes}
    counting = _counting(layout, _ranges_of(area.threads, ranges, before), bound, ranges)
    scores = _scores(layout, asked, Corpus(area.entries, area.words), counting)
    places = best(scores, count, tied=_TIED)
    found = zip(_entries_at(layout, bound, places), scores[places].tolist(), strict=True)
    return sorted(found, key=lambda each: (-each[1], each[0]))[:count]


def _scores(layout: BlockLayout, asked: ParsedQuery, corpus: Corpus, counting: Counting) -> Scores:
    """Score each place. Each part of a question is ranked by itself, whatever its length."""
    of_parts = [score(layout, part, corpus) for part in asked.parts]
    for scores in of_parts:
        scores[~counting] = 0  # before the best of a part is looked for: it must be one that may be found
    of_parts = [scores for scores in of_parts if scores.any()] or of_parts[:1]
    scores = of_parts[0]
    if len(of_parts) > 1:
        scores = np.zeros_like(scores)
        for part in of_parts:
            scores += part / np.sqrt(part.max())
    _prefer(scores, layout, asked, counting)
    return scores


def _prefer(scores: Scores, layout: BlockLayout, asked: ParsedQuery, counting: Counting) -> None:
    """Raise scores of the speaker that the question names or asks for, and of entries with a time if it asks when."""
    named = np.zeros(layout.size, dtype=bool)
    for start, block in zip(layout.starts, layout.blocks, strict=True):
        for postings in block.found.values():
            named[start + postings.of_speaker.astype(np.int64)] = True
    named &= counting
    if named.any():
        _lift(scores, named, OF_SPEAKER)
    elif asked.by_user is not None:
        _lift(scores, layout.marked(USER_SAID) == asked.by_user, OF_SPEAKER)
    if asked.when:
        _lift(scores, layout.marked(HAS_TIME), WITH_TIME)


def _lift(scores: Scores, places: NDArray[np.bool_], factor: float) -> None:
    # `scores[places] *=` would take five times as long for half of 100,000 places.
    scores *= np.array([1.0, factor], dtype=np.float32).take(places.view(np.uint8))


async def _of_threads(
    tx: Transaction, area: SearchArea, asked: ParsedQuery, before: EntryPlace | None
) -> list[RankingBlock]:
    buckets, scope = list(asked.buckets), area.scope
    if scope.thread_id is not None:
        rows = await recall.postings(tx, scope, buckets)
    else:
        rows = await recall.postings_of(tx, scope.user_id, [thread.thread_id for thread in area.threads], buckets)
    return _blocks(rows, asked, before)


async def _of_volumes(tx: Transaction, area: SearchArea, asked: ParsedQuery) -> list[RankingBlock]:
    """Return the volumes as pseudo-threads, in which each place is an entry."""
    if not area.volumes:
        return []
    rows = await recall.volume_postings(tx, area.scope.user_id, list(asked.buckets))
    blocks = _blocks([(volume, 0, bucket, data) for volume, bucket, data in rows], asked, None)
    bound = {each.volume.id: each for each in area.volumes}
    found = []
    for block in blocks:
        its = bound[block.thread]
        if its.left_out:
            there = {value: postings.where(its.counts) for value, postings in block.found.items()}
            block = replace(block, found={value: some for value, some in there.items() if len(some)})
        if block.found or block.marked:
            found.append(block)
    return found


def _blocks(
    rows: Sequence[tuple[str, int, int, bytes]], asked: ParsedQuery, before: EntryPlace | None
) -> list[RankingBlock]:
    found: dict[tuple[str, int], dict[int, Postings]] = {}
    for thread_id, segment, bucket, data in rows:
        there = look_up(data, asked.buckets[bucket])
        if there:
            found.setdefault((thread_id, segment), {}).update(there)
    ordered = sorted(found.items(), key=lambda item: item[0])
    blocks = [_block(*place, there, before) for place, there in ordered]
    return [block for block in blocks if block.found or block.marked]


def _block(thread_id: str, segment: int, there: dict[int, Postings], before: EntryPlace | None) -> RankingBlock:
    marked = {mark: spread_out(there.pop(mark).columns) for mark in MARKS if mark in there}
    if before is not None and before.thread_id == thread_id:
        # Before the ranking: a question must not raise the entries around it.
        there = {value: postings.until(before.seq - segment) for value, postings in there.items()}
        there = {value: postings for value, postings in there.items() if len(postings)}
    return RankingBlock(thread_id, segment, there, marked)


def _ranges_of(threads: Iterable[Searched], ranges: Ranges | None, before: EntryPlace | None) -> Ranges:
    found: dict[str, list[tuple[int, int]]] = {}
    for thread in threads:
        last = thread.entry_count
        if before is not None and before.thread_id == thread.thread_id:
            last = min(last, before.seq - 1)
        asked = ((1, last),) if ranges is None else ranges.get(thread.thread_id, ())
        found[thread.thread_id] = [(max(a, thread.first_seq), min(b, last)) for a, b in asked]
    return found


def _counting(
    layout: BlockLayout, of_threads: Ranges, bound: dict[str, SearchedShard], ranges: Ranges | None
) -> Counting:
    """Return a mask of the places whose entries may be found."""
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


def _entries_at(layout: BlockLayout, bound: dict[str, SearchedShard], places: Sequence[int]) -> Iterator[EntryPlace]:
    for thread_id, seq in layout.entries_at(places):
        yield EntryPlace(*bound[thread_id].roll.entry_at(seq)) if thread_id in bound else EntryPlace(thread_id, seq)
