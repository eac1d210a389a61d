"""Merges segments of a thread's index without reading entries, because a question reads every segment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from longthread.memory.index.postings import (
    INDEX_FORM,
    LARGEST,
    TIER,
    IndexSegment,
    SegmentPart,
    join_segments,
    least_bucket_above,
)
from longthread.store.driver import Driver, Transaction
from longthread.store.index import recall
from longthread.store.index.recall import Extent


async def merge_segments(store: Driver, thread_id: str) -> None:
    """Merge the small segments at a thread's end, until they are few. Concurrent calls are safe.
    After a StoreError, what was merged before stays."""
    while True:
        async with store.reading() as tx:
            birth_id = await recall.birth_id(tx, thread_id)
            group = _group(await recall.extents(tx, thread_id))
            if group is None:
                return
            below = least_bucket_above(max(extent.entries for extent in group))
            parts = await _parts(tx, thread_id, group, below)
        # In a thread: large ones are slow.
        segment = await asyncio.to_thread(join_segments, parts)
        first, last = group[0].first, group[-1].last
        async with store.writing() as tx:
            if not await tx.fetch("select_position", id=thread_id):
                return
            there = [extent for extent in await recall.extents(tx, thread_id) if first <= extent.first <= last]
            if there != group or await recall.birth_id(tx, thread_id) != birth_id:
                return  # Somebody else was faster, and goes on.
            await recall.delete_segments(tx, thread_id, first, last, below=below)
            await write_segment(tx, thread_id, segment)


def are_many(extents: Sequence[Extent]) -> bool:
    """Whether `merge_segments` would merge any of these segments."""
    return _group(extents) is not None


async def write_segment(tx: Transaction, thread_id: str, segment: IndexSegment) -> Extent:
    """Write a segment. The caller has locked the thread in this transaction."""
    extent = Extent(segment.first, segment.last, INDEX_FORM, segment.entries)
    await recall.write_segment(tx, thread_id, extent, words=segment.words, times=segment.times, buckets=segment.buckets)
    return extent


async def _parts(tx: Transaction, thread_id: str, group: Sequence[Extent], below: int) -> list[SegmentPart]:
    first, last = group[0].first, group[-1].last
    buckets = await recall.buckets_between(tx, thread_id, first, last, below=below)
    return [
        SegmentPart(extent.first, extent.last, extent.entries, words, times, buckets.get(extent.first, ()))
        for extent, words, times in await recall.segments_between(tx, thread_id, first, last)
    ]


def _group(extents: Sequence[Extent]) -> list[Extent] | None:
    """Choose segments to merge at the thread's end: enough of them up to some size, oldest first."""
    for tier in range(_tier_of(LARGEST)):
        ending: list[Extent] = []
        for extent in reversed(extents):
            if _tier(extent) > tier or (ending and extent.last + 1 != ending[-1].first):
                break
            ending.append(extent)
        if len(ending) >= TIER:
            return _oldest(ending[::-1])
    return None


def _oldest(ending: Sequence[Extent]) -> list[Extent]:
    group = list(ending[:2])
    for extent in ending[2:]:
        if extent.last - group[0].first >= LARGEST:
            break
        group.append(extent)
    return group


def _tier(extent: Extent) -> int:
    return _tier_of(extent.last - extent.first + 1)


def _tier_of(entries: int) -> int:
    tier = 0
    while entries >= TIER:
        entries //= TIER
        tier += 1
    return tier
