"""Indexes a thread's entries from the log alone, without blocking writers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from longthread.errors import StoreClosed, StoreError, StoreReadOnly
from longthread.memory.index.bitmaps import HAS_TIME, USER_SAID
from longthread.memory.index.dates import MONTHS, has_time
from longthread.memory.index.entry_text import content_of, is_recallable
from longthread.memory.index.json_escapes import unescaped
from longthread.memory.index.merge import are_many, merge_segments, write_segment
from longthread.memory.index.postings import FULL, INDEX_FORM, IndexDocument, IndexSegment, build
from longthread.memory.index.speakers import name_terms
from longthread.memory.index.terms import characters, terms
from longthread.store.driver import Driver
from longthread.store.index import recall
from longthread.store.index.recall import Extent, IndexState, Searched, Text

SAID_AT = "time"
"""Key of an entry's metadata for the time that its source gives it, in whatever words; it can be asked for."""
_PAGE = 256

_logger = logging.getLogger(__name__)

IndexProgress = Callable[[int, int], None]
"""Told how many entries of how many are done."""


async def index_thread(store: Driver, thread_id: str, progress: IndexProgress | None = None) -> int:
    """Index a thread's unindexed entries; return their number. Concurrent calls are safe.
    After a StoreError, what was indexed before stays."""
    done = 0
    async with store.reading() as tx:
        state = await recall.state(tx, thread_id)
    if any(extent.form != INDEX_FORM for extent in state.extents):
        await drop_index(store, thread_id)
        state = replace(state, extents=())
    while gaps := _gaps(state.extents, state.first, state.last):
        first, last = gaps[0][0], min(gaps[0][1], gaps[0][0] + FULL - 1)
        segment = await _segment(store, thread_id, first, last)
        async with store.writing() as tx:
            now = await recall.state(tx, thread_id, lock=True)
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
            await recall.delete_segments(tx, thread_id, 0, 2**62)


def documents(texts: Iterable[Text]) -> list[IndexDocument]:
    """Build the index documents of entries, without those that have no words or come from recall."""
    found = []
    for text in texts:
        if not is_recallable(text):
            continue
        content = unescaped(content_of(text))
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
            page = await recall.texts(tx, thread_id, at, min(last, at + _PAGE - 1))
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
        raise  # nobody asks any more
    except StoreError as error:
        _logger.warning("Thread %s could not be indexed: %s", thread.thread_id, error)
        return [f"The newest entries may be missing, for the index could not be brought up to date. {error}"]
    except TimeoutError:
        return [
            "Some entries may be missing: much is not indexed yet. That goes on in the background; ask again later."
        ]
    return []
