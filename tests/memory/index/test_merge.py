"""Segments made of segments are what their entries would have made, and questions find the same in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.memory.talking import say

from longthread.memory.index import indexer
from longthread.memory.index.indexer import drop_index, index_thread
from longthread.memory.index.postings import (
    IndexDocument,
    IndexSegment,
    SegmentPart,
    build,
    join_segments,
    least_bucket_above,
)
from longthread.memory.recall import Question, Recaller
from longthread.model.thread import Scope
from longthread.store import log, recall_index
from longthread.store.driver import Driver
from longthread.store.recall_index import Extent


def document(seq: int) -> IndexDocument:
    """An entry of few words, some of them everywhere; every seventh entry cannot be found."""
    return IndexDocument(seq, {"all": 1, f"w{seq % 50}": 2, f"own{seq}": 1}, words=3 + seq % 4, at=1_000 * seq)


def segment(first: int, last: int) -> IndexSegment:
    return build(first, last, [document(seq) for seq in range(first, last + 1) if seq % 7])


def parts(ends: Sequence[int]) -> list[SegmentPart]:
    made = [segment(begin + 1, end) for begin, end in pairwise(ends)]
    return [SegmentPart(s.first, s.last, s.entries, s.words, s.times, list(s.buckets.values())) for s in made]


@pytest.mark.parametrize(
    "ends",
    [
        [0, 10, 20],
        [3, 40, 41, 90],  # one that has no entry that can be found
        [100, 1200, 1230, 1300, 5000],
        [0, 4096, 8192, 11_000],  # of three sizes of buckets one
    ],
)
def test_a_segment_of_segments_is_the_one_of_their_entries(ends: list[int]) -> None:
    joined, built = join_segments(parts(ends)), segment(ends[0] + 1, ends[-1])
    assert joined == built
    assert max(joined.buckets) < least_bucket_above(joined.entries)


def test_the_largest_segments_are_spread_over_more_buckets() -> None:
    assert [least_bucket_above(entries) for entries in (63, 64, 1024, 8191, 8192, 60_000)] == [
        *(2, 64, 2048, 2048),
        *(16_384, 16_384),
    ]


async def extents(store: Driver) -> list[Extent]:
    async with store.reading() as tx:
        return await recall_index.extents(tx, "t")


async def test_segments_of_many_steps_find_what_one_of_all_entries_does(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "FULL", 8)
    monkeypatch.setattr(indexer, "LARGEST", 64)
    texts = [f"entry {number} about {'abcdefghij'[number % 10] * 3} and {number // 7}" for number in range(200)]
    for at in range(0, len(texts), 5):
        await say(store, texts[at : at + 5])
        await index_thread(store, "t")
    there = await extents(store)
    assert [extent.first for extent in there] == [1, *(extent.last + 1 for extent in there[:-1])]
    assert len(there) < 15
    assert max(extent.entries for extent in there) < 128  # else nothing would be of the largest size
    questions = ["ccc", "entry 42", "about 7 and jjj", "nothing of it"]

    async def found() -> list[Any]:
        recaller = Recaller(store)
        asked = [await recaller.find(Question(text, Scope("u", "t"), k=20)) for text in questions]
        return [[(hit.entry.id, round(hit.score, 4)) for hit in recalled.hits] for recalled in asked]

    in_steps = await found()
    await drop_index(store, "t")
    monkeypatch.setattr(indexer, "FULL", 4096)
    assert await found() == in_steps
    assert len(await extents(store)) == 1


@pytest.mark.parametrize("begins_anew", [True, False])
async def test_what_goes_while_segments_are_put_together_does_not_come_back(
    store: Driver, monkeypatch: pytest.MonkeyPatch, begins_anew: bool
) -> None:
    for number in range(8):
        await say(store, [f"the walrus {number}"])
        if number < 7:
            await index_thread(store, "t")
    real = indexer._parts

    async def parts_and_more(*args: Any) -> Any:
        found = await real(*args)
        monkeypatch.setattr(indexer, "_parts", real)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id="u")
        if begins_anew:
            await say(store, [f"new {number}" for number in range(8)])
        return found

    monkeypatch.setattr(indexer, "_parts", parts_and_more)
    await index_thread(store, "t")
    assert await extents(store) == []
    if begins_anew:
        assert (await Recaller(store).find(Question("walrus", Scope("u", "t")))).hits == []
