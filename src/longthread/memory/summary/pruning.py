"""Moves older messages of a thread's window into its summary, in one transaction.

Nothing is deleted: the entries stay in the log, and recall finds them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from longthread.errors import EntryNotFound
from longthread.memory.summary.digest import Digest, digest_entries, join_digests
from longthread.memory.summary.summaries import (
    Summarizer,
    SummaryConfig,
    SummaryPart,
    is_current,
    replaced_since,
    summarise,
)
from longthread.metrics import PRUNED, SUMMARIES
from longthread.model.entry import Entry
from longthread.model.run import NO_ROOM, TEXTS, Segment, segments_of
from longthread.model.thread import active_ranges, is_active
from longthread.settings import Settings
from longthread.store import log, runs, summaries
from longthread.store.branches import branch_points, places_of_versions
from longthread.store.driver import Driver, Transaction
from longthread.store.summaries import UNWRITTEN, WRITTEN, Span, Summarised, ThreadSummary

if TYPE_CHECKING:  # they take time to load, and most turns move no window
    from longthread.memory.summary.topics import Extract, Mentions

BUFFER = 20
"""Messages that a pruned window has less than it may have (document 004 §3.1); of a small one half."""
_PAGE = 500
"""Entries that are read at a time."""
_WIDE = 8
"""How many times its limit the digest of a very long part may have before it goes into a summary."""
_HIDDEN = TEXTS | {"left out"}

_logger = logging.getLogger(__name__)

Prepare = Callable[[], Awaitable[object]]
"""Indexes and embeds what is about to leave the window."""
PruningProgress = Callable[[int], None]
"""Called with the number of entries read."""


@dataclass(frozen=True, slots=True)
class PruningPolicy:
    """A thread is pruned when its window exceeds `max_messages`, or when a view had no room for
    `threshold` of its oldest messages."""

    max_messages: int = 200
    threshold: int = 30
    summary: SummaryConfig = field(default_factory=SummaryConfig)

    @classmethod
    def of(cls, settings: Settings) -> PruningPolicy:
        return cls(
            settings.memory_max_messages_per_thread, settings.memory_summary_threshold, SummaryConfig.of(settings)
        )

    @property
    def stays(self) -> int:
        """The messages left in a window that had too many."""
        return self.max_messages - buffer_of(self.max_messages)

    def is_due(self, count: int, view: Sequence[Segment], kept: ThreadSummary | None) -> bool:
        """Whether to prune a window of `count` messages with this last view."""
        stale = kept is not None and kept.model != WRITTEN and kept.config_hash != self.summary.hash
        mark = kept.last_seq if kept else 0
        return stale or count > self.max_messages or left_out(view, mark) >= self.threshold


def buffer_of(max_messages: int) -> int:
    """Return how far below its limit pruning brings a window."""
    return min(BUFFER, max_messages // 2)


def left_out(view: Sequence[Segment], mark: int) -> int:
    """Count the entries between the mark and the first that a view shows."""
    first = first_shown(view)
    return sum(
        min(each.last, first - 1) - max(each.first, mark + 1) + 1
        for each in view
        if each.how == "left out" and each.why in NO_ROOM and each.first < first and each.last > mark
    )


def first_shown(view: Sequence[Segment]) -> int:
    """Return the first entry that a view shows; 0 when it shows none."""
    return min((each.first for each in view if each.how not in _HIDDEN), default=0)


@dataclass(frozen=True, slots=True)
class _Found:
    """A thread before a pass: its valid mark and the next, which is no earlier; 0 is none."""

    thread: Summarised
    mark: int
    target: int
    topics: Sequence[str]

    @property
    def old(self) -> ThreadSummary | None:
        kept = self.thread.kept
        return kept if kept is not None and (self.mark or not kept.last_seq) else None


async def prune_thread(
    store: Driver,
    thread_id: str,
    policy: PruningPolicy,
    *,
    view: Sequence[Segment] | None = None,
    summarizer: Summarizer | None = None,
    extract: Extract | None = None,
    prepare: Prepare | None = None,
    progress: PruningProgress | None = None,
) -> ThreadSummary | None:
    """Move a thread's mark forward where due, with summary and topics; return the stored summary.

    One transaction checks that the thread has not changed and writes everything. With a model it writes the digest
    first; the model's text replaces it in a second transaction. After an interruption, or if another process was
    faster, nothing is changed and a later pass does the work. A summary made in another way, or with a mark off the
    active branch, is made again from the entries.

    Args:
        view: the manifest of the thread's last view; None: that of its last run.
        extract: finds topics without a model; None: statistics.
        prepare: awaited before anything leaves the window.
        progress: called with the number of entries read.

    Raises:
        StoreError: the database failed; nothing was changed.
        CancelledError: nothing was changed, or the digest is stored.
    """
    writer = summarizer if policy.summary.enabled else None
    making = _Making(store, thread_id, policy, extract, progress or _ignore, owed=writer is not None)
    kept = await _move_mark(making, view, prepare)
    if writer is None or kept is None or UNWRITTEN not in kept.digest:
        return kept
    return await _write_digested(making, kept, writer)


async def _move_mark(making: _Making, view: Sequence[Segment] | None, prepare: Prepare | None) -> ThreadSummary | None:
    store, thread_id, policy = making.store, making.thread_id, making.policy
    async with store.reading() as tx:
        found = await _look(tx, thread_id, policy, view)
        if found is None:
            return None
        fresh = not await _is_current(tx, thread_id, found, policy.summary)
    if found.target == found.mark and not fresh:
        return found.old
    if prepare is not None:
        await prepare()
    made: _Made | None = None
    if found.target:
        try:
            made = await _make(making, found, fresh)
        except EntryNotFound:
            return None  # deleted meanwhile, by retention or with the thread: the next pass sees what is left
    async with store.writing() as tx:
        kept = await _commit(tx, thread_id, found, made)
    if made is not None and kept is made.kept:
        SUMMARIES.add("digest")
        before = found.thread.kept.message_count if found.thread.kept else 0  # also of one that is made again
        PRUNED.add(by=max(0, kept.message_count - before))
    return kept


def _ignore(entries: int) -> None:
    """Ignore the progress."""


async def _look(
    tx: Transaction, thread_id: str, policy: PruningPolicy, view: Sequence[Segment] | None
) -> _Found | None:
    thread = await summaries.find_thread(tx, thread_id)
    if thread is None:
        return None
    mark = thread.kept.last_seq if thread.kept else 0
    if mark and not await summaries.is_behind(tx, thread_id, mark=mark, tip=thread.tip, first_seq=thread.first_seq):
        mark = 0
    if view is None:
        view = await _last_view(tx, thread_id)
    asked = await summaries.live_question(tx, thread_id)
    limit, target = policy.max_messages + 1, None
    while target is None:
        newest = await log.branch(tx, thread_id, thread.tip, limit=limit)
        window = [entry for entry in newest if entry.seq > mark]
        target = _target(window, policy, view, mark, asked)
        if len(window) < limit:
            break
        limit *= 2  # a call with very many results, or a long run that was broken off: further back there is a place
    known = await summaries.find(tx, thread_id) if mark else None
    return _Found(thread, mark, target or mark, known.topics if known else ())


async def _last_view(tx: Transaction, thread_id: str) -> Sequence[Segment]:
    run = await runs.last_run(tx, thread_id)
    steps = await runs.steps_of(tx, run) if run is not None else []
    return next((found for step in reversed(steps) if (found := segments_of(step.manifest))), [])


async def _is_current(tx: Transaction, thread_id: str, found: _Found, config: SummaryConfig) -> bool:
    """Return whether the summary can be extended: its mark is valid, and it was made in this way from all entries.

    After retention, deleted entries cannot be counted; if all are deleted, the summary cannot be made again and stays.
    """
    kept = found.thread.kept
    if found.old is None:
        return kept is None
    assert kept is not None
    if found.thread.first_seq > kept.last_seq:
        return True
    count = await _count(tx, thread_id, kept, found.thread.first_seq)
    return is_current(kept, config, last_seq=found.mark, count=count)


async def _count(tx: Transaction, thread_id: str, kept: ThreadSummary, first_seq: int) -> int:
    """Count the messages that a summary is of as they are now, where retention has deleted none of them."""
    if first_seq > kept.first_seq:
        return kept.message_count
    ranges = active_ranges(kept.last_seq, await branch_points(tx, thread_id))
    count = sum(last - max(first, kept.first_seq) + 1 for first, last in ranges if last >= kept.first_seq)
    versions = await places_of_versions(tx, thread_id)
    return count - sum(is_active(seq, ranges) for seq in versions if seq >= kept.first_seq)


def _target(
    window: Sequence[Entry], policy: PruningPolicy, view: Sequence[Segment], mark: int, asked: int | None
) -> int | None:
    """Return the new mark; None if it stays. `asked` is the entry that an unfinished run works on."""
    last = next((n for n, entry in enumerate(window) if asked is not None and entry.seq >= asked), len(window) - 1)
    whole = [n for n in _whole(window) if 0 < n <= last]
    places = []
    if len(window) > policy.max_messages:
        first = len(window) - policy.stays
        near = (n for n in whole if first <= n <= first + BUFFER and window[n].role == "user")
        places.append(next(near, next((n for n in whole if n >= first), max(whole, default=0))))
    if left_out(view, mark) >= policy.threshold and (seen := first_shown(view)) in {entry.seq for entry in window}:
        places.append(max((n for n in whole if window[n].seq <= seen and window[n].role == "user"), default=0))
    place = max(places, default=0)
    return window[place - 1].seq if place else None


def _whole(window: Sequence[Entry]) -> list[int]:
    """Return the places where a window may begin: no call is separated from its result."""
    waiting: dict[str | None, int] = {}
    inside: set[int] = set()
    for n, entry in enumerate(window):
        if entry.role == "tool":
            # Leading results may have their call before the window; a later one without a call has none.
            start = -1 if len(inside) == n else n
            inside.update(range(waiting.pop(entry.tool_call_id, start) + 1, n + 1))
        waiting |= {call.id: n for call in entry.tool_calls}
    return [n for n in range(len(window)) if n not in inside]


@dataclass(frozen=True, slots=True)
class _Made:
    """What to write: a summary, and topics, which add to the old ones or, if `fresh`, replace them."""

    kept: ThreadSummary
    topics: Sequence[Span]
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Making:
    """The inputs of a pass. `owed`: a model is to write the summary."""

    store: Driver
    thread_id: str
    policy: PruningPolicy
    extract: Extract | None
    progress: PruningProgress
    owed: bool

    def reading(self, known: Sequence[str], tip: int) -> _Reading:
        from longthread.memory.summary.topics import Mentions

        mentions = Mentions(known, self.extract) if self.extract else Mentions(known)
        wide = self.policy.summary.max_tokens * _WIDE
        return _Reading(self.store, self.thread_id, tip, mentions, wide, self.progress)


async def _make(making: _Making, found: _Found, fresh: bool) -> _Made:
    """Digest what leaves the window. If a model is owed, it names the topics of the newest page."""
    old = None if fresh else found.old
    reading = making.reading(found.topics if old else (), found.thread.tip)
    part = await reading.read(found.target, old.last_seq if old else 0)
    kept = await summarise(old, part, making.policy.summary, None)
    if making.owed:
        before = old.digest[UNWRITTEN] if old and UNWRITTEN in old.digest else _dump_summary(old)
        kept = replace(kept, digest={**kept.digest, UNWRITTEN: before})
    else:
        await asyncio.to_thread(reading.mentions.add, part.entries)
    return _Made(kept, reading.mentions.spans, fresh=old is None)


async def _write_digested(making: _Making, kept: ThreadSummary, writer: Summarizer) -> ThreadSummary | None:
    """Let a model write what was only digested. Where it fails, the digest stays."""
    thread_id, old = making.thread_id, _load_summary(kept.digest[UNWRITTEN])
    async with making.store.reading() as tx:
        thread = await summaries.find_thread(tx, thread_id)
        known = await summaries.find(tx, thread_id)
    if thread is None or thread.kept != kept:
        return thread.kept if thread else None
    mark = old.last_seq if old else 0
    digest = {name: value for name, value in kept.digest.items() if name != UNWRITTEN}
    made = _Made(replace(kept, digest=digest), (), fresh=False)
    if thread.first_seq <= mark + 1:  # nothing of it was deleted by retention
        reading = making.reading(known.topics if known else (), thread.tip)
        try:
            part = await reading.read(kept.last_seq, mark)
        except EntryNotFound:
            return kept
        words = await summarise(old, part, making.policy.summary, writer)
        await reading.mentions.ask(part.entries, writer)
        made = _Made(words, reading.mentions.spans, fresh=False)
    async with making.store.writing() as tx:
        stored = await _commit(tx, thread_id, _Found(thread, kept.last_seq, kept.last_seq, ()), made)
    if stored is made.kept and made.kept.model is not None:
        SUMMARIES.add("model")
    return stored


def _dump_summary(old: ThreadSummary | None) -> dict[str, Any]:
    """Return a summary as JSON, to be stored along with the digest that replaces it."""
    if old is None:
        return {}
    return {name: getattr(old, name) for name in _FIELDS}


def _load_summary(data: Mapping[str, Any]) -> ThreadSummary | None:
    return ThreadSummary(**data) if data else None


_FIELDS = ("summary", "message_count", "config_hash", "first_seq", "last_seq", "model", "digest")


@dataclass(slots=True)
class _Reading:
    """Reads a stretch of a branch page by page from its end, because it may be very long.
    It counts the topics of all pages but the newest."""

    store: Driver
    thread_id: str
    tip: int
    mentions: Mentions
    limit: int
    progress: PruningProgress

    async def read(self, last: int, mark: int) -> SummaryPart:
        at, first, count = last, last, 0
        newest: Sequence[Entry] = ()
        digests: list[Digest] = []
        waiting: list[Entry] = []
        while at > mark:
            async with self.store.reading() as tx:
                read = await log.branch(tx, self.thread_id, at, limit=_PAGE, seen_from=self.tip)
            page = [entry for entry in read if entry.seq > mark]
            at, first, count = page[0].parent_seq, page[0].seq, count + len(page)
            page += waiting
            # A page begins with a question, so that calls and results are in one page.
            start = next((n for n, entry in enumerate(page) if entry.role == "user"), 0) if at > mark else 0
            waiting, page = page[:start], page[start:]
            digests.append(await asyncio.to_thread(digest_entries, page))
            if newest:
                await asyncio.to_thread(self.mentions.add, page)
            newest = newest or page
            self.progress(count)
        digest = reduce(lambda old, new: join_digests(old, new, self.limit), reversed(digests))
        return SummaryPart(newest, digest, count, first, last)


async def _commit(tx: Transaction, thread_id: str, found: _Found, made: _Made | None) -> ThreadSummary | None:
    """Write the result if the thread has not changed; None drops an invalid mark."""
    if not await tx.fetch("select_position", id=thread_id):
        return None
    now = await summaries.find_thread(tx, thread_id)
    if now is None or now.birth_id != found.thread.birth_id:
        return None
    if now.kept != found.thread.kept:
        return _late(thread_id, now.kept, made, "another pass was faster")
    kept = made.kept if made else now.kept
    mark = kept.last_seq if kept else 0
    if await summaries.is_behind(tx, thread_id, mark=mark, tip=now.tip, first_seq=now.first_seq) != bool(made):
        return _late(thread_id, now.kept, made, "the conversation went to another branch")
    if made is not None and await replaced_since(tx, thread_id, found.thread.entry_count, mark=mark):
        return _late(thread_id, now.kept, made, "a message that it tells of was replaced")
    if made is None or made.fresh:
        await summaries.drop(tx, thread_id)
    if made is None:
        return None
    await summaries.save(tx, thread_id, made.kept)
    await summaries.add_topics(tx, thread_id, made.topics)
    return made.kept


def _late(thread_id: str, kept: ThreadSummary | None, made: _Made | None, why: str) -> ThreadSummary | None:
    written = made is not None and made.kept.model is not None
    level, what = (logging.WARNING, "The summary") if written else (logging.INFO, "A digest")
    _logger.log(level, "%s of thread %s came late, and is not used: %s meanwhile", what, thread_id, why)
    return kept
