"""Feeds the watchers of runs. A process has one hub, and reads a run for all of its watchers at once.

A run that this process executes tells the hub its events after each commit: its watchers cost no query. A run that
another process executes is read once when that signals a change. Where no signals arrive, all such runs are looked at
in one query, again and again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from longthread.errors import StoreError
from longthread.model.run import FINAL, HALTS, Event
from longthread.runs.worker import may_be_alive
from longthread.store import run_events
from longthread.store.driver import Driver
from longthread.store.listing import RunState, run_states

LOOK_SECONDS = 0.5
"""How often runs that other processes execute are looked at, where they send no signals."""
LOOK_ANYWAY_SECONDS = 5.0
"""The same where they do: one that dies sends none."""
SIGNAL_SECONDS = 0.05
"""How long changes wait, so that one signal tells of many."""
KEPT_EVENTS = 256
"""Events that a feed keeps for a slow watcher. A watcher that lags further reads from the store."""
FIRST_EVENTS = 4
"""So many first events of a run stay in memory for who watches it as soon as it has begun."""
WAKE = "wake"
"""The signal that workers look for what is to be done: stops of their runs, and runs to claim."""
_LAST_SECONDS = 2.0
"""How long the last signals may take."""
_PAGE = 1000
"""Events of one read."""

_logger = logging.getLogger(__name__)

RunPlace = tuple[str, str]
"""The ids of a thread and its run."""


@dataclass(slots=True)
class _Feed:
    """The newest events of a watched run, in order and without a gap.

    `events` are all events after number `since`, up to number `last`. If `stale`, the store may hold more. `since` is
    None before the first read. `halts`: event `last` ended an execution. `left`: no process executed the run at the
    last look. `ended`: it is gone, or left for good, so that nothing follows.
    """

    since: int | None = None
    last: int = 0
    events: deque[Event] = field(default_factory=deque)
    stale: bool = True
    halts: bool = False
    left: bool = False
    ended: bool = False
    watches: list[RunWatch] = field(default_factory=list)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[asyncio.Future[bool]] = field(default_factory=list)

    def ring(self) -> None:
        """Wake all that wait."""
        woken, self.waiting = self.waiting, []
        for each in woken:
            _settle(each, True)

    async def rung(self, patience: float | None) -> bool:
        """Wait for the next `ring`; False if none came within `patience` seconds."""
        loop = asyncio.get_running_loop()
        ring: asyncio.Future[bool] = loop.create_future()
        self.waiting.append(ring)
        late = loop.call_later(patience, _settle, ring, False) if patience is not None else None
        try:
            return await ring
        finally:
            if late is not None:
                late.cancel()
            if ring in self.waiting:
                self.waiting.remove(ring)

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.seq > self.last:
                self.events.append(event)
                self.last = event.seq
                self.halts = event.type in HALTS

    def trim(self) -> None:
        """Drop events that every watcher has read, and the oldest of too many."""
        read = min((watch.read_to for watch in self.watches), default=0)
        while self.events and (self.events[0].seq <= read or len(self.events) > KEPT_EVENTS):
            self.since = self.events.popleft().seq

    def after(self, seq: int) -> list[Event]:
        return [event for event in self.events if event.seq > seq]


@dataclass(slots=True, weakref_slot=True)
class ListChanges:
    """Counts the changes of a user's list of threads, or of a queued question. `bell` rings at the next one."""

    count: int = 0
    bell: asyncio.Event = field(default_factory=asyncio.Event)

    def ring(self) -> None:
        self.count += 1
        self.bell.set()
        self.bell = asyncio.Event()


class Hub:
    """Feeds the watchers of this process. Safe to share between its tasks."""

    def __init__(self, store: Driver, wake: Callable[[], None] | None = None) -> None:
        """`wake` is called when another process wakes the workers."""
        self._store = store
        self._wake = wake
        self._claims = False
        self._feeds: dict[RunPlace, _Feed] = {}
        self._lists: WeakValueDictionary[str, ListChanges] = WeakValueDictionary()
        # How often: an execution may begin before the one before it has closed what it used.
        self._here: Counter[RunPlace] = Counter()
        self._looking: asyncio.Task[None] | None = None
        self._look_now = asyncio.Event()
        self._changes: dict[str, None] = {}
        self._signalling: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._connected = False

    def enter(self, thread_id: str, run_id: str, begun: Sequence[Event] = ()) -> None:
        """This process executes the run from now on, and tells its events. `begun` are all events of one that has just
        begun: they and the next ones stay in memory, for who watches it at once."""
        place = thread_id, run_id
        self._here[place] += 1
        if begun and place not in self._feeds:
            self._feeds[place] = _Feed(since=0, stale=False)
            self._feeds[place].add(begun)
        else:
            self._stale(place)

    def leave(self, thread_id: str, run_id: str) -> None:
        """This process no longer executes the run."""
        self._here[thread_id, run_id] -= 1
        self._here += Counter()
        feed = self._feeds.get((thread_id, run_id))
        # It may have failed to store its end; or a watcher waits for what comes after it.
        if feed is not None and (not feed.halts or any(each.read_to > feed.last for each in feed.watches)):
            self.note_change(thread_id, run_id)
        self.drop_unwatched(thread_id, run_id)

    def tell(self, thread_id: str, run_id: str, events: Sequence[Event], *, after: int | None) -> None:
        """Tell events of a run that are committed, in order.

        Args:
            after: the number of the last event before them; None if that is not known.
        """
        self._signal(run_id)
        feed = self._feeds.get((thread_id, run_id))
        if feed is None:
            return
        feed.left = feed.ended = False
        if after is None or feed.since is None or after > feed.last:
            feed.stale = True
        else:
            feed.add(events)
            feed.trim()
        feed.ring()
        if feed.stale or len(feed.events) > FIRST_EVENTS:
            self.drop_unwatched(thread_id, run_id)

    def drop_unwatched(self, thread_id: str, run_id: str) -> None:
        """Drop the events of a run without watchers from memory. A watcher that comes later reads the store."""
        feed = self._feeds.get((thread_id, run_id))
        if feed is not None and not feed.watches:
            del self._feeds[thread_id, run_id]

    def note_change(self, thread_id: str, run_id: str) -> None:
        """Note a committed change of a run that watchers did not get."""
        self._signal(run_id)
        if (thread_id, run_id) in self._feeds:
            self._stale((thread_id, run_id))
            self._look_soon((thread_id, run_id))

    def expect_claims(self) -> None:
        """Note that this process claims runs that no process executes. Their watchers stay, and the hub listens to
        workers from now on."""
        self._claims = True
        self._listen()

    def wake_workers(self) -> None:
        """Wake the workers of the other processes, where signals arrive. Elsewhere they look by themselves."""
        self._signal(WAKE)

    def list_changed(self, user_id: str) -> None:
        """A thread of the user's is new, deleted, or has another state or title."""
        self._notify_word(_list_word(user_id))

    def question_changed(self, question_id: str) -> None:
        """A queued question has become a run, or was removed."""
        self._notify_word(question_id)

    def list_changes(self, user_id: str) -> ListChanges:
        """Return the count of the changes of a user's list, here and, where signals arrive, elsewhere."""
        return self._changes_of(_list_word(user_id))

    def question_changes(self, question_id: str) -> ListChanges:
        """The same of a queued question."""
        return self._changes_of(question_id)

    def _notify_word(self, word: str) -> None:
        self._signal(word)
        if word in self._lists:
            self._lists[word].ring()

    def _changes_of(self, word: str) -> ListChanges:
        found = self._lists.get(word)
        if found is None:
            found = self._lists[word] = ListChanges()
            self._listen()
        return found

    @property
    def hears(self) -> bool:
        """Whether changes in other processes are heard of."""
        return self._connected

    def ring(self) -> None:
        """Let all watchers check whether they go on."""
        for feed in self._feeds.values():
            feed.ring()
        for changes in list(self._lists.values()):
            changes.ring()

    def watch(
        self, thread_id: str, run_id: str, *, after: int = 0, goes_on: Callable[[], bool] | None = None
    ) -> RunWatch:
        """Watch a run from the events after a number on; `goes_on` may end it when there is nothing more to read.
        Use as a context manager."""
        return RunWatch(self, self._store, (thread_id, run_id), after, goes_on or _always)

    async def events(
        self, thread_id: str, run_id: str, *, after: int = 0, goes_on: Callable[[], bool] | None = None
    ) -> AsyncIterator[Event]:
        """Yield what a watch reads, event by event."""
        with self.watch(thread_id, run_id, after=after, goes_on=goes_on) as watch:
            while events := await watch.read():
                for event in events:
                    yield event

    async def wait_for_halt(self, thread_id: str, run_id: str) -> None:
        """Wait until a run has ended or waits for a person, or no process executes it, even if one may claim it."""
        with self.watch(thread_id, run_id, goes_on=lambda: not self._feeds[thread_id, run_id].left) as watch:
            while await watch.read():
                pass

    async def close(self) -> None:
        """Send the last signals, and end the background work. No watcher hears of other processes any more."""
        if self._signalling is not None:
            await asyncio.wait({self._signalling}, timeout=_LAST_SECONDS)
        for task in (self._signalling, self._looking, self._listening):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @contextmanager
    def _join_feed(self, place: RunPlace, watch: RunWatch) -> Iterator[_Feed]:
        feed = self._feeds.setdefault(place, _Feed())
        feed.watches.append(watch)
        feed.left = feed.ended = False
        self._look_soon(place)
        try:
            yield feed
        finally:
            feed.watches.remove(watch)
            self.drop_unwatched(*place)

    def _stale(self, place: RunPlace) -> None:
        feed = self._feeds.get(place)
        if feed is not None:
            feed.stale, feed.left, feed.ended = True, False, False
            feed.ring()

    def _signal(self, word: str) -> None:
        """Let the other processes know that a run, or a list of threads, has changed."""
        if self._store.signals is not None:
            self._changes[word] = None
            if self._signalling is None or self._signalling.done():
                self._signalling = asyncio.get_running_loop().create_task(self._send(), name="signals")

    async def _send(self) -> None:
        """Send what has changed, all of a moment at once. A signal that cannot be sent is left to the others' looks."""
        assert self._store.signals is not None
        while self._changes:
            await asyncio.sleep(SIGNAL_SECONDS)
            words, self._changes = list(self._changes), {}
            try:
                await self._store.signals.send(words)
            except StoreError as error:
                _logger.warning("Other processes could not be told of changes: %s", error)

    def _heard(self, words: Sequence[str]) -> None:
        """Some runs and lists have changed, or workers are woken."""
        changed = set(words)
        if WAKE in changed and self._wake is not None:
            self._wake()
        for word in changed.intersection(self._lists.keys()):
            self._lists[word].ring()
        for place in [place for place in self._feeds if place[1] in changed and place not in self._here]:
            self._stale(place)

    def _is_connected(self, connected: bool) -> None:
        self._connected = connected
        self._look_now.set()  # at what was not heard
        for each in list(self._lists.values()):
            each.ring()

    def _look_soon(self, place: RunPlace) -> None:
        """Look at the runs elsewhere, if this is one."""
        if place not in self._here:
            self._listen()
            self._look_now.set()
            if self._looking is None or self._looking.done():
                self._looking = asyncio.get_running_loop().create_task(self._look(), name="runs elsewhere")

    def _listen(self) -> None:
        signals = self._store.signals
        if signals is not None and self._listening is None:
            listening = signals.listen(self._heard, self._is_connected)
            self._listening = asyncio.get_running_loop().create_task(listening, name="listening")

    def _elsewhere(self) -> list[RunPlace]:
        return [place for place, feed in self._feeds.items() if place not in self._here and not feed.ended]

    async def _look(self) -> None:
        """Look at the runs elsewhere while any is watched."""
        while places := self._elsewhere():
            self._look_now.clear()
            try:
                await self._look_at(places)
            except StoreError as error:
                _logger.warning("The runs of other processes could not be looked at; trying again: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_ANYWAY_SECONDS if self._connected else LOOK_SECONDS):
                    await self._look_now.wait()

    async def _look_at(self, places: Sequence[RunPlace]) -> None:
        async with self._store.reading() as tx:
            states = await run_states(tx, places, alive=may_be_alive)
        for place in places:
            feed, state = self._feeds.get(place), states.get(place[1])
            if feed is None or place in self._here:  # meanwhile
                continue
            known, feed.left = feed.left, state is not None and state.status == "interrupted"
            if state is not None and state.last_event > feed.last:
                feed.stale = True
                feed.ring()
            elif state is None or not self._goes_on(state):
                feed.ended = True
                feed.ring()
            elif feed.left and not known:  # once: who waits with patience would restart the wait at each look
                feed.ring()

    def _goes_on(self, state: RunState) -> bool:
        """Whether somebody executes a run, or will: this process too claims what is left."""
        return state.status == "running" or (state.status == "interrupted" and state.claimable and self._claims)


class RunWatch:
    """One watcher's place in a run. `read_to` is the number of the last event that it has read."""

    def __init__(self, hub: Hub, store: Driver, place: RunPlace, after: int, goes_on: Callable[[], bool]) -> None:
        self.read_to = after
        self._store = store
        self._place = place
        self._goes_on = goes_on
        self._waits = self._final = False
        self._joining = hub._join_feed(place, self)
        self._feed: _Feed

    def __enter__(self) -> Self:
        self._feed = self._joining.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._joining.__exit__(kind, error, trace)

    @property
    def halts(self) -> bool:
        """Whether the run has ended or waits for a person, after what was read."""
        return self._final or self._waits

    async def read(self, *, patience: float | None = None) -> list[Event] | None:
        """Wait for the next events, and return them. The list is empty when there will be none: the run has ended,
        waits for a person, or no process executes it. Return None if nothing came within `patience` seconds.

        Raises:
            StoreError: the events cannot be read.
        """
        feed = self._feed
        while not self._final:
            since = feed.since
            behind = since is not None and self.read_to < since
            if events := await self._read_stored(self.read_to) if behind else feed.after(self.read_to):
                return self._read(events)
            if since is not None and behind:
                self.read_to = since  # the events sent in between have been withdrawn
            elif feed.stale:
                await self._look()
            elif feed.ended or self._waits or not self._goes_on():
                break
            elif not await feed.rung(patience):
                return None
        return []

    def _read(self, events: list[Event]) -> list[Event]:
        """Note what was read. A run that waits is over until all decisions are made."""
        for event in events:
            if event.type != "decided" or not event.data["pending"]:
                self._waits = event.type == "waiting"
            self._final = event.type in FINAL
        self.read_to = events[-1].seq
        if len(self._feed.watches) == 1:
            self._feed.trim()
        return events

    async def _look(self) -> None:
        """Read, for all watchers of the run, the stored events that they did not get."""
        feed = self._feed
        async with feed.reading:
            if not feed.stale:
                return  # another watcher has read it
            if feed.since is None:
                feed.since = feed.last = self.read_to
            feed.stale = False  # an event sent while we read makes it so again, unless it comes next
            events: list[Event] | None = None
            try:
                events = await self._read_stored(feed.last)
            finally:
                feed.stale = feed.stale or events is None or len(events) == _PAGE
            feed.add(events)
            feed.ring()

    async def _read_stored(self, after: int) -> list[Event]:
        async with self._store.reading() as tx:
            return await run_events.events_after(tx, *self._place, after, limit=_PAGE)


def _settle(waiting: asyncio.Future[bool], rung: bool) -> None:
    if not waiting.done():
        waiting.set_result(rung)


def _list_word(user_id: str) -> str:
    """The signal of a user's list. It does not tell who that is."""
    return "list-" + sha256(user_id.encode()).hexdigest()[:32]


def _always() -> bool:
    return True
