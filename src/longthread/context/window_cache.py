"""A cache of the last messages of threads: read once, and then only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from longthread.context.window import PreviousCall, WindowMessage, spots_of
from longthread.memory.summary.pruning import buffer_of
from longthread.model.lru import LRU
from longthread.model.thread import Thread
from longthread.store import log, summaries
from longthread.store.driver import Transaction, one
from longthread.store.summaries import ThreadSummary

THREADS = 64
"""Cached threads; the least recently used is evicted first."""
CHARACTERS = 16_000_000
"""Characters of cached text in all of them."""


@dataclass(frozen=True, slots=True)
class CachedWindow:
    """A thread's window: the last messages of its branch, after the mark of its `summary` if that is valid. `stale`:
    its summary covers another branch."""

    spots: list[WindowMessage]
    summary: ThreadSummary | None = None
    stale: bool = False

    @property
    def mark(self) -> int:
        return self.summary.last_seq if self.summary else 0


@dataclass(slots=True)
class _Kept:
    """A thread's cached messages, from the mark on. Entries never change: they stay valid while the thread is the
    same and retention deletes none of it."""

    since: datetime
    first_seq: int
    mark: int
    spots: list[WindowMessage]
    size: int
    run_id: str
    past: PreviousCall | None


class WindowCache:
    """The windows of some threads: at most `limit` messages each, and a few more after a mark. The next pass moves the
    mark: without them the window would move twice."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept = LRU[str, _Kept](THREADS, most_size=CHARACTERS, size=lambda kept: kept.size)

    async def read(self, tx: Transaction, thread: Thread) -> CachedWindow:
        """Return the last messages of the thread's branch, oldest first. Read only messages that are not cached."""
        summary = await summaries.find(tx, thread.id)
        mark = summary.last_seq if summary else 0
        there = await self._find_cached(tx, thread, mark)
        spots = await self._spots(tx, thread, there, mark)
        if mark and not self._began_at(thread, mark, spots) and not await _leads_to(tx, thread, spots, mark):
            return CachedWindow(await self._spots(tx, thread, await self._find_cached(tx, thread, 0), 0), stale=True)
        return CachedWindow([spot for spot in spots if spot.entry.seq > mark], summary)

    def _began_at(self, thread: Thread, mark: int, spots: Sequence[WindowMessage]) -> bool:
        """Return whether messages continue the cached ones, which began after this very mark."""
        kept = self._kept.get(thread.id)
        return kept is not None and kept.mark == mark and any(spot is kept.spots[-1] for spot in spots)

    async def _spots(
        self, tx: Transaction, thread: Thread, there: list[WindowMessage], mark: int
    ) -> list[WindowMessage]:
        """Return the branch's last messages: `there` and what is new, or from the mark's own on."""
        new = []
        if there and there[-1].entry.seq < thread.tip:
            behind = thread.tip - there[-1].entry.seq
            new = await log.branch(tx, thread.id, thread.tip, limit=min(self._most(mark), behind))
        last = new[0].parent_seq if new else thread.tip
        if there and there[-1].entry.seq == last:
            return [*there, *spots_of(new)][-self._most(mark) :]
        most = min(self._most(mark), max(1, thread.tip - mark + 1))
        return spots_of(await log.branch(tx, thread.id, thread.tip, limit=most))

    def keep(
        self,
        thread: Thread,
        spots: Sequence[WindowMessage],
        run_id: str = "",
        past: PreviousCall | None = None,
        mark: int = 0,
    ) -> None:
        """Cache the last messages of a thread's branch, which are in the log. `past` is the last model call of the
        run `run_id`; the messages begin at `mark`."""
        last = list(spots[-self._most(mark) :])
        self._kept.pop(thread.id)
        if last:
            size = sum(len(spot.entry.text) for spot in last)
            self._kept.put(thread.id, _Kept(thread.created_at, thread.first_seq, mark, last, size, run_id, past))

    def forget(self, thread_id: str) -> None:
        self._kept.pop(thread_id)

    def past(self, thread: Thread, run_id: str) -> PreviousCall | None:
        """Return the last model call of a run, if it is cached and the run was the thread's last one here."""
        kept = self._kept.get(thread.id)
        return kept.past if kept is not None and kept.since == thread.created_at and kept.run_id == run_id else None

    async def _find_cached(self, tx: Transaction, thread: Thread, mark: int) -> list[WindowMessage]:
        """Return what is cached of this very thread; nothing if retention has deleted entries since, or the mark has
        gone back: then more must be shown."""
        kept = self._kept.get(thread.id)
        if kept is None:
            return []
        last = kept.spots[-1].entry
        # A thread that was deleted and imported again has the same age: check that it has this entry.
        said = await one(tx, "select_said", thread_id=thread.id, first=last.seq, last=last.seq)
        same = (kept.since, kept.first_seq) == (thread.created_at, thread.first_seq)
        if not same or said is None or said["id"] != last.id or mark < kept.mark:
            self._kept.pop(thread.id)
            return []
        return kept.spots

    def _most(self, mark: int) -> int:
        return self.limit + (buffer_of(self.limit) if mark else 0)


async def _leads_to(tx: Transaction, thread: Thread, spots: Sequence[WindowMessage], mark: int) -> bool:
    """Return whether the branch of these messages has the mark's entry: mostly, it is among them."""
    if not spots:
        return False
    first = spots[0].entry
    if first.seq <= mark:
        return any(spot.entry.seq == mark for spot in spots)
    return first.parent_seq == mark or await summaries.is_behind(
        tx, thread.id, mark=mark, tip=first.seq, first_seq=thread.first_seq
    )
