"""The threads of a saver's user: listed, found, and deleted when their time is over."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from typing_extensions import Unpack

from longthread.errors import InvalidInput, ThreadNotFound
from longthread.langgraph.backend import Backend, BackendUser
from longthread.langgraph.item_batch import expect_minutes
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.memory.index.entry_text import excerpt
from longthread.memory.index.terms import find_telling_terms
from longthread.messages.fields import storable
from longthread.model.entry import Entry
from longthread.model.thread import Scope, Thread
from longthread.store import attributes, listing, log
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import Pruned, prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy, expire, may_be_alive

if TYPE_CHECKING:
    from longthread.memory.recall import Recaller

MOST = 1000
"""Threads of one answer."""
EXCERPT = 160
"""Characters of the text that a search found."""


@dataclass(frozen=True, slots=True)
class ThreadHit:
    """A thread that a search found, and the part of its title or of a message that fits best."""

    thread: Thread
    text: str


ThreadList = list[Thread]
HitList = list[ThreadHit]
"""`list` is a method of the class below."""


class PruneOptions(TypedDict, total=False):
    """What stays when threads are pruned, see `SaverThreads.prune`."""

    idle: timedelta | None
    messages_older_than: timedelta | None
    checkpoints: int | None
    checkpoints_older_than: timedelta | None
    window: int
    with_memories: bool


class ThreadsOwner(BackendUser, Protocol):
    """The saver whose threads these are."""

    async def adelete_thread(self, thread_id: str, *, with_memories: bool = False) -> None: ...


class SharedRecaller:
    """The index of one open store, which the savers of its users share."""

    def __init__(self) -> None:
        self._made: Recaller | None = None

    async def entries(self, backing: Backend, text: str, count: int) -> Sequence[Entry]:
        """Return the best entry of each of the user's threads, the best first."""
        from longthread.memory.recall import Question, Recaller  # only here: it loads numpy

        if self._made is None:
            self._made = Recaller(backing.store)
            backing.home.at_close(self._made.close)
        asked = Question(text, Scope(backing.user_id), k=count, neighbours=0, one_a_thread=True)
        return [hit.entry for hit in (await self._made.find(asked)).hits]


class SaverThreads:
    """The threads of a saver's user, see `LongthreadSaver.threads`. Each method has an `await`ed twin, such as `alist`.

    What belongs to others is as if it were not there.
    """

    def __init__(self, saver: ThreadsOwner, recaller: SharedRecaller) -> None:
        self._saver = saver
        self._backing = saver.backing
        self._home = saver.backing.home
        self._recaller = recaller

    def list(self, *, limit: int = 50, before: Thread | None = None) -> ThreadList:
        """Return threads, the latest active first; the next ones with `before`, the last one of those before."""
        return self._home.call("threads.list", self._list, limit, before)

    async def alist(self, *, limit: int = 50, before: Thread | None = None) -> ThreadList:
        return await self._home.run(self._list, limit, before)

    def get(self, thread_id: str) -> Thread | None:
        """Return a thread, or None."""
        return self._home.call("threads.get", self._get, thread_id)

    async def aget(self, thread_id: str) -> Thread | None:
        return await self._home.run(self._get, thread_id)

    def search(self, text: str, *, limit: int = 20) -> HitList:
        """Return threads with these words in a title or a message, the best first. It asks the index of recall."""
        return self._home.call("threads.search", self._search, text, limit)

    async def asearch(self, text: str, *, limit: int = 20) -> HitList:
        return await self._home.run(self._search, text, limit)

    def set_ttl(self, thread_id: str, ttl: float | None) -> Thread:
        """Let a thread expire so many minutes from now; None: never. `sweep_ttl` deletes expired threads.

        Raises:
            ThreadNotFound: there is no such thread.
            InvalidInput: that is no number of minutes.
        """
        return self._home.call("threads.set_ttl", self._set_ttl, thread_id, ttl)

    async def aset_ttl(self, thread_id: str, ttl: float | None) -> Thread:
        return await self._home.run(self._set_ttl, thread_id, ttl)

    def sweep_ttl(self, *, with_memories: bool = False) -> int:
        """Delete expired threads with all that is derived from them; return their number. What was remembered from them
        stays, unless `with_memories`."""
        return self._home.call("threads.sweep_ttl", self._sweep, with_memories=with_memories)

    async def asweep_ttl(self, *, with_memories: bool = False) -> int:
        return await self._home.run(self._sweep, with_memories=with_memories)

    def delete(self, thread_id: str, *, with_memories: bool = False) -> None:
        """Delete everything of a thread, in every table and index; nothing if there is none. What was remembered from
        it stays, unless `with_memories`."""
        self._home.call("threads.delete", self._saver.adelete_thread, thread_id, with_memories=with_memories)

    async def adelete(self, thread_id: str, *, with_memories: bool = False) -> None:
        await self._saver.adelete_thread(thread_id, with_memories=with_memories)

    def prune(self, **options: Unpack[PruneOptions]) -> Pruned:
        """Delete what is no longer needed of all threads, and expired threads. It may run while graphs do.

        Args:
            idle: threads that were not active for so long are deleted.
            messages_older_than: older messages are deleted, from a thread's beginning up to its window.
            checkpoints: how many of the newest stay in each namespace; None: all.
            checkpoints_older_than: only older ones are deleted.
            window: so many messages at the end of a thread stay, of any age.
            with_memories: what was remembered from a deleted thread is deleted too.

        Raises:
            InvalidInput: an age or a number is below 0, or no checkpoint would stay.
        """
        return self._home.call("threads.prune", self._prune, _policy(**options))

    async def aprune(self, **options: Unpack[PruneOptions]) -> Pruned:
        return await self._home.run(self._prune, _policy(**options))

    @property
    def _store(self) -> Driver:
        return self._backing.store

    async def _list(self, limit: int, before: Thread | None) -> ThreadList:
        _expect_limit(limit)
        after = listing.LATEST if before is None else (_text(before.updated_at), before.id)
        async with self._store.reading() as tx:
            return await listing.list_threads(tx, user_id=self._backing.user_id, limit=limit, before=after)

    async def _get(self, thread_id: str) -> Thread | None:
        async with self._store.reading() as tx:
            try:
                return await log.find_thread(tx, thread_id, user_id=self._backing.user_id)
            except ThreadNotFound:
                return None

    async def _search(self, text: str, limit: int) -> HitList:
        _expect_limit(limit)
        text = storable(text)
        wanted = find_telling_terms(text)
        if not wanted:
            return []
        best = {entry.thread_id: entry for entry in await self._recaller.entries(self._backing, text, limit)}
        async with self._store.reading() as tx:
            titled = await listing.search_titles(tx, text, user_id=self._backing.user_id, limit=limit)
            found = {thread.id: ThreadHit(thread, thread.title or "") for thread in titled}
            for thread_id, entry in best.items():
                with suppress(ThreadNotFound):  # deleted since the index was asked
                    thread = await log.find_thread(tx, thread_id, user_id=self._backing.user_id)
                    found[thread_id] = ThreadHit(thread, excerpt(entry.text, wanted, EXCERPT))
        order = dict.fromkeys([*best, *(each.id for each in titled)])
        return [found[thread_id] for thread_id in order if thread_id in found][:limit]

    async def _set_ttl(self, thread_id: str, ttl: float | None) -> Thread:
        expect_minutes(ttl, "ttl")
        moment = None if ttl is None else datetime.now(UTC) + timedelta(minutes=ttl)
        async with self._store.writing() as tx:
            return await attributes.set_expiry(tx, thread_id, moment, user_id=self._backing.user_id)

    async def _sweep(self, *, with_memories: bool) -> int:
        return (await expire(self._store, user_id=self._backing.user_id, with_memories=with_memories)).threads

    async def _prune(self, policy: RetentionPolicy) -> Pruned:
        retention = Retention(policy, CheckpointKeeper(), may_be_alive)
        return await prune(self._store, retention, _silently, apply=True, user_id=self._backing.user_id)


def _expect_limit(limit: int) -> None:
    if not 1 <= limit <= MOST:
        raise InvalidInput(reason=f"limit is {limit!r}; allowed is a whole number from 1 to {MOST:,}.")


def _policy(
    idle: timedelta | None = None,
    messages_older_than: timedelta | None = None,
    checkpoints: int | None = None,
    checkpoints_older_than: timedelta | None = None,
    window: int = 200,
    with_memories: bool = False,
) -> RetentionPolicy:
    if checkpoints is not None and checkpoints < 1:
        raise InvalidInput(reason=f"checkpoints is {checkpoints!r}: at least one stays, or None, which is all of them.")
    if window < 0:
        raise InvalidInput(reason=f"window is {window!r}; give a whole number from 0 on.")
    now = datetime.now(UTC)
    return RetentionPolicy(
        now=_text(now),
        idle_before=_before(now, idle, "idle"),
        entries_before=_before(now, messages_older_than, "messages_older_than"),
        checkpoints=checkpoints,
        checkpoints_before=_before(now, checkpoints_older_than, "checkpoints_older_than"),
        window=window,
        with_memories=with_memories,
    )


def _before(now: datetime, age: timedelta | None, name: str) -> str | None:
    given: Any = age  # not every program is type-checked
    if age is None:
        return None
    if not isinstance(given, timedelta) or age < timedelta():
        raise InvalidInput(reason=f"{name} is {age!r}; give a timedelta, such as timedelta(days=90).")
    try:
        return _text(now - age)
    except OverflowError:
        return None  # before all times: nothing is so old


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _silently(done: int, total: int, what: str) -> None:
    """Ignore the progress."""
