"""Index entries from the log alone, without blocking writers: a thread's, or all of a store.

A question reads every segment of a thread. So small ones are merged, without reading entries.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from longthread.errors import StoreClosed, StoreError, StoreReadOnly
from longthread.memory.embedder import Embedder, EmbedderFailed, name_embedder
from longthread.memory.index.dates import MONTHS, has_time
from longthread.memory.index.entry_text import content_of, is_recallable, unescape_json
from longthread.memory.index.postings import (
    FULL,
    HAS_TIME,
    INDEX_FORM,
    LARGEST,
    TIER,
    USER_SAID,
    IndexDocument,
    IndexSegment,
    SegmentPart,
    build,
    join_segments,
    least_bucket_above,
)
from longthread.memory.index.shards import bind_user
from longthread.memory.index.terms import characters, name_terms, terms
from longthread.memory.index.vectors import Embedded, VectorProgress, embed_thread, is_behind
from longthread.store import recall_index
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.recall_index import Extent, IndexState, Searched, Text
from longthread.store.transfer.threads import TransferProgress, each_thread


async def merge_segments(store: Driver, thread_id: str) -> None:
    """Merge the small segments at a thread's end, until they are few. Concurrent calls are safe.
    After a StoreError, what was merged before stays."""
    while True:
        async with store.reading() as tx:
            birth_id = await recall_index.birth_id(tx, thread_id)
            group = _group(await recall_index.extents(tx, thread_id))
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
            there = [extent for extent in await recall_index.extents(tx, thread_id) if first <= extent.first <= last]
            if there != group or await recall_index.birth_id(tx, thread_id) != birth_id:
                return  # Somebody else was faster, and goes on.
            await recall_index.delete_segments(tx, thread_id, first, last, below=below)
            await write_segment(tx, thread_id, segment)


def are_many(extents: Sequence[Extent]) -> bool:
    """Whether `merge_segments` would merge any of these segments."""
    return _group(extents) is not None


async def write_segment(tx: Transaction, thread_id: str, segment: IndexSegment) -> Extent:
    """Write a segment. The caller has locked the thread in this transaction."""
    extent = Extent(segment.first, segment.last, INDEX_FORM, segment.entries)
    await recall_index.write_segment(
        tx, thread_id, extent, words=segment.words, times=segment.times, buckets=segment.buckets
    )
    return extent


async def _parts(tx: Transaction, thread_id: str, group: Sequence[Extent], below: int) -> list[SegmentPart]:
    first, last = group[0].first, group[-1].last
    buckets = await recall_index.buckets_between(tx, thread_id, first, last, below=below)
    return [
        SegmentPart(extent.first, extent.last, extent.entries, words, times, buckets.get(extent.first, ()))
        for extent, words, times in await recall_index.segments_between(tx, thread_id, first, last)
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


SAID_AT = "time"
"""Key of an entry's metadata for the time that its source gives it, in whatever words; it can be asked for."""
_PAGE = 256

_logger = logging.getLogger(__name__)

IndexProgress = Callable[[int, int], None]
"""Called with the number of entries done, and of all entries."""


async def index_thread(store: Driver, thread_id: str, progress: IndexProgress | None = None) -> int:
    """Index a thread's unindexed entries; return their number. Concurrent calls are safe.
    After a StoreError, what was indexed before stays."""
    done = 0
    async with store.reading() as tx:
        state = await recall_index.state(tx, thread_id)
    if any(extent.form != INDEX_FORM for extent in state.extents):
        await drop_index(store, thread_id)
        state = replace(state, extents=())
    while gaps := _gaps(state.extents, state.first, state.last):
        first, last = gaps[0][0], min(gaps[0][1], gaps[0][0] + FULL - 1)
        segment = await _segment(store, thread_id, first, last)
        async with store.writing() as tx:
            now = await recall_index.state(tx, thread_id, lock=True)
            if now.birth_id is None:
                return done
            if now.birth_id == state.birth_id and _is_free(now, first, last):
                extent = await write_segment(tx, thread_id, segment)
                now = replace(now, extents=sorted([*now.extents, extent], key=lambda each: each.first))
        state = now
        done += last - first + 1
        if progress is not None:
            progress(done, max(done, sum(end - begin + 1 for begin, end in gaps)))
    if are_many(state.extents):
        await merge_segments(store, thread_id)
    return done


async def drop_index(store: Driver, thread_id: str) -> None:
    """Drop a thread's index; it is built again when needed."""
    async with store.writing() as tx:
        if await tx.fetch("select_position", id=thread_id):
            await recall_index.delete_segments(tx, thread_id, 0, 2**62)


def documents(texts: Iterable[Text]) -> list[IndexDocument]:
    """Build the index documents of entries, without entries that have no words or come from recall."""
    found = []
    for text in texts:
        if not is_recallable(text):
            continue
        content = unescape_json(content_of(text))
        said = terms(content)
        if not said:
            continue
        name = terms(text.name or "")
        about = [*name, *terms(str(text.metadata.get(SAID_AT) or _date(text.created_at)))]
        at = int((text.created_at - _EPOCH).total_seconds() * 1_000_000)
        marks = [USER_SAID] * (text.role == "user") + [HAS_TIME] * has_time(content)
        # No question names a tool as a speaker: "run" does not mean run_sql.
        speaker = name_terms(text.name or "") if text.role != "tool" else []
        its = Counter([*said, *about, *characters(content)]) | Counter(set(speaker))
        found.append(IndexDocument(text.seq, its, len(said), at, speaker, marks))
    return found


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d} {MONTHS[moment.month - 1]} {moment.day}"


def _gaps(extents: Sequence[Extent], first: int, last: int) -> list[tuple[int, int]]:
    found = []
    for extent in extents:
        if extent.first > first:
            found.append((first, extent.first - 1))
        first = max(first, extent.last + 1)
    return [*found, (first, last)] if first <= last else found


def _is_free(state: IndexState, first: int, last: int) -> bool:
    """Whether no other process has indexed these entries, and retention has deleted none."""
    covered = any(e.first <= last and e.last >= first for e in state.extents)
    return state.first <= first and last <= state.last and not covered


async def _segment(store: Driver, thread_id: str, first: int, last: int) -> IndexSegment:
    found: list[IndexDocument] = []
    for at in range(first, last + 1, _PAGE):
        async with store.reading() as tx:
            page = await recall_index.texts(tx, thread_id, at, min(last, at + _PAGE - 1))
        # In a thread: a page of long entries is slow.
        found += await asyncio.to_thread(documents, page)
    return await asyncio.to_thread(build, first, last, found)


async def catch_up(store: Driver, threads: Sequence[Searched], seconds: float | None = None) -> list[str]:
    """Index the rest of threads; return warnings for failures and for what `seconds` was too short for."""
    try:
        async with asyncio.timeout(seconds):
            for thread in threads:
                if thread.behind:
                    await index_thread(store, thread.thread_id)
    except StoreReadOnly:
        count = sum(each.behind for each in threads)
        which = "One conversation has" if count == 1 else f"{count:,} conversations have"
        return [f"{which} messages that are not found: an index is written only where the store may be written to."]
    except StoreClosed:
        raise  # no caller asks any more
    except StoreError as error:
        _logger.warning("Thread %s could not be indexed: %s", thread.thread_id, error)
        return [f"The newest entries may be missing, for the index could not be brought up to date. {error}"]
    except TimeoutError:
        return [
            "Some entries may be missing: much is not indexed yet. That goes on in the background; ask again later."
        ]
    return []


_LOOK_SECONDS = 0.5


async def index_all(
    store: Driver, embedder: Embedder | None, progress: TransferProgress, jobs: JobClaims | None = None
) -> tuple[int, list[str]]:
    """Index and embed every thread; return the number of threads, and warnings. Raises StoreError.

    After an interruption it continues. An embedder that fails is not called again. A thread that another process embeds
    comes last: by then that one may have finished.
    """
    embedding = _Embedding(store, embedder, jobs or JobClaims(store))
    done, at = 0, (0, 0)

    def threads_done(done: int, total: int, what: str) -> None:
        nonlocal at
        at = (done, total)
        progress(done, total, what)

    async for thread_id in each_thread(store, threads_done):
        await index_thread(store, thread_id)
        if not await embedding.embed(thread_id, partial(_entries_done, progress, lambda: at, thread_id)):
            embedding.elsewhere.append(thread_id)
        done += 1
    for thread_id in embedding.elsewhere:
        progress(*at, f"{thread_id}: waiting for the process that embeds it")
        while not await embedding.embed(thread_id):  # noqa: ASYNC110 - a row rings no event
            await asyncio.sleep(_LOOK_SECONDS)
    async with store.reading() as tx:
        users = await recall_index.users_with_loose(tx)
    for user_id in users:
        await bind_user(store, user_id)
    return done, embedding.warnings()


@dataclass
class _Embedding:
    """Embeds threads until the embedder fails."""

    store: Driver
    embedder: Embedder | None
    jobs: JobClaims
    elsewhere: list[str] = field(default_factory=list)
    _refused: int = 0
    _failures: list[str] = field(default_factory=list)

    async def embed(self, thread_id: str, progress: VectorProgress | None = None) -> bool:
        """Embed a thread; return False if another process does it."""
        if self.embedder is None or self._failures:
            return True
        try:
            if not await is_behind(self.store, self.embedder, thread_id):
                return True
            async with self.jobs.claim(Job("vectors", thread_id), at_once=True) as ours:
                if ours:
                    self._refused += (await embed_thread(self.store, self.embedder, thread_id, progress)).refused
                return ours
        except EmbedderFailed as error:
            told = f"The embedder {name_embedder(self.embedder)} does not work, and made no more vectors: {error}"
            self._failures.append(told)
            return True

    def warnings(self) -> list[str]:
        refused = Embedded(refused=self._refused).warning(self.embedder) if self.embedder is not None else []
        return self._failures + refused


def _entries_done(
    progress: TransferProgress, at: Callable[[], tuple[int, int]], thread_id: str, number: int, total: int
) -> None:
    progress(*at(), f"{thread_id}: {number:,} of {total:,} entries")
