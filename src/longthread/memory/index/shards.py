"""What a question searches: threads by their own index, and volumes that index many short threads.

Volumes are made in the background, without reading entries. A volume holds whole threads, up to as many entries as a
large segment, and never changes. A thread that grows is read by its own index, until there are enough of them to
rebuild their volumes. Errors and interruptions leave threads outside of volumes, and nothing else.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from longthread.errors import ThreadNotFound
from longthread.memory.index.postings import FULL, INDEX_FORM, join
from longthread.memory.index.ranking import REACH
from longthread.memory.index.signature_index import Ranges
from longthread.model.lru import LRU
from longthread.model.thread import Scope
from longthread.store import recall_index
from longthread.store.driver import Driver, Transaction
from longthread.store.recall_index import Bindable, Members, Searched, Volume

MOST_KEPT = 1024
"""Volumes whose threads one process keeps in memory."""

Counting = NDArray[np.bool_]
"""Of each place, whether it counts."""


@dataclass(frozen=True)
class ShardThreads:
    members: Members

    @cached_property
    def everyone(self) -> Counting:
        """A mask of the places that entries may have."""
        return self.counting(range(len(self.members.threads)), None)

    @cached_property
    def index(self) -> dict[str, int]:
        return {thread_id: at for at, thread_id in enumerate(self.members.threads)}

    def of_others(self, agent_id: str) -> set[int]:
        """Return the members that are not an agent's."""
        return {at for at, its in enumerate(self.members.agents) if its != agent_id}

    def counting(self, some: Sequence[int], ranges: Ranges | None) -> Counting:
        """Return a mask of some members' entries, limited to `ranges`."""
        own = self.members
        counts = np.zeros(own.starts[-1] + own.lasts[-1] - own.firsts[-1] + 1, dtype=bool)
        for at in some:
            first, last, shift = own.firsts[at], own.lasts[at], own.starts[at] - own.firsts[at]
            for begin, end in ((first, last),) if ranges is None else ranges.get(own.threads[at], ()):
                counts[max(begin, first) + shift : max(0, min(end, last) + shift + 1)] = True
        return counts

    def entry_at(self, place: int) -> tuple[str, int]:
        own = self.members
        at = bisect_right(own.starts, place) - 1
        return own.threads[at], own.firsts[at] + place - own.starts[at]


@dataclass(frozen=True)
class SearchedShard:
    """A volume for one question, without the members in `left_out`:
    they have changed since and are read by their own index, or are another agent's."""

    volume: Volume
    roll: ShardThreads
    left_out: frozenset[int]

    @property
    def entries(self) -> int:
        return self.volume.entries - sum(self.roll.members.entries[at] for at in self.left_out)

    @property
    def words(self) -> int:
        return self.volume.words - sum(self.roll.members.words[at] for at in self.left_out)

    @cached_property
    def counts(self) -> Counting:
        return self.within(None) if self.left_out else self.roll.everyone

    def within(self, ranges: Ranges | None) -> Counting:
        """Return a mask of the searched places in ranges."""
        members = self.roll.members.threads
        some = [at for at in range(len(members)) if ranges is None or members[at] in ranges]
        return self.roll.counting([at for at in some if at not in self.left_out], ranges)


@dataclass(frozen=True, slots=True)
class SearchArea:
    """What a question searches. `outdated` volumes are of another version and must be dropped first."""

    scope: Scope
    threads: Sequence[Searched]
    volumes: Sequence[SearchedShard] = ()
    outdated: Sequence[str] = ()

    @property
    def behind(self) -> list[Searched]:
        return [thread for thread in self.threads if thread.behind]

    @property
    def entries(self) -> int:
        return sum(thread.entries for thread in self.threads) + sum(bound.entries for bound in self.volumes)

    @property
    def words(self) -> int:
        return sum(thread.words for thread in self.threads) + sum(bound.words for bound in self.volumes)


class ShardIndex:
    """Finds what to search. Safe to share between tasks."""

    def __init__(self) -> None:
        self._rolls = LRU[str, ShardThreads](MOST_KEPT)

    async def area(self, tx: Transaction, scope: Scope, apart: str | None = None) -> SearchArea:
        """Return what is in a scope, `apart` by its own index; ThreadNotFound if the thread is not the user's."""
        if scope.thread_id is not None:
            threads = await recall_index.threads_in(tx, scope, form=INDEX_FORM)
            if not threads:
                raise ThreadNotFound(thread=scope.thread_id)
            return SearchArea(scope, threads)
        loose = await recall_index.loose(tx, scope, form=INDEX_FORM, also=apart)
        found = await recall_index.find_volumes(tx, scope.user_id)
        rolls = await self._rolls_of(tx, scope.user_id, found)
        changed: dict[str, set[str]] = {}
        for each in loose:
            if each.volume is not None:
                changed.setdefault(each.volume, set()).add(each.thread.thread_id)
        bound = []
        for volume in found:
            roll = rolls[volume.id]
            left_out = {roll.index[thread_id] for thread_id in changed.get(volume.id, ())}
            if scope.agent_id is not None:
                left_out |= roll.of_others(scope.agent_id)
            bound.append(SearchedShard(volume, roll, frozenset(left_out)))
        outdated = [volume.id for volume in found if volume.form != INDEX_FORM]
        return SearchArea(scope, [each.thread for each in loose], bound, outdated)

    async def _rolls_of(self, tx: Transaction, user_id: str, found: Sequence[Volume]) -> dict[str, ShardThreads]:
        there = {volume.id: roll for volume in found if (roll := self._rolls.get(volume.id)) is not None}
        missing = [volume.id for volume in found if volume.id not in there]
        if missing:
            for name, own in (await recall_index.members(tx, user_id, missing)).items():
                there[name] = ShardThreads(own)
                self._rolls.put(name, there[name])
        return there


LEAST = 64
"""So many loose threads are put into volumes: fewer are read fast enough."""
LONG = FULL // 2
"""Threads of more entries stay on their own: of such, a user's entries are in few."""
_MOST_PLACES = 2**16 - 1


async def bind_user(store: Driver, user_id: str, *, least: int | None = None) -> int:
    """Merge a user's unmerged threads, if there are at least `least`; return their number. Raises StoreError."""
    async with store.reading() as tx:
        if await recall_index.loose_count(tx, user_id, LONG, last=True) < (LEAST if least is None else least):
            return 0
    async with store.reading() as tx:
        there = await recall_index.find_volumes(tx, user_id)
        changed = {each.volume for each in await recall_index.loose(tx, Scope(user_id), form=INDEX_FORM)}
    for volume in there:
        if volume.id in changed or volume.form != INDEX_FORM or 2 * volume.entries < FULL:
            await drop_volumes(store, user_id, [volume.id])
    async with store.reading() as tx:
        loose = await recall_index.loose(tx, Scope(user_id), form=INDEX_FORM)
    done = 0
    for group in _groups([each.thread for each in loose if each.volume is None]):
        done += await _bind(store, user_id, group)
    return done


async def drop_volumes(store: Driver, user_id: str, names: Sequence[str]) -> None:
    """Drop volumes; their threads are read by their own index again. Raises StoreError."""
    async with store.writing() as tx:
        await recall_index.delete_volumes(tx, user_id, names)


def _groups(threads: Sequence[Searched]) -> Iterator[list[Searched]]:
    """Yield groups of fully indexed threads that fit into one volume."""
    group: list[Searched] = []
    entries = places = 0
    for thread in threads:
        own = thread.entry_count - thread.first_seq + 1
        if thread.behind or not 0 < own <= LONG:
            continue
        if group and (entries + thread.entries > FULL or places + own + REACH > _MOST_PLACES):
            yield group
            group, entries, places = [], 0, 0
        group.append(thread)
        entries, places = entries + thread.entries, places + own + REACH
    if group:
        yield group


async def _bind(store: Driver, user_id: str, group: Sequence[Searched]) -> int:
    names = [thread.thread_id for thread in group]
    async with store.reading() as tx:
        there = await _find_unchanged(tx, user_id, group)
        rows = await recall_index.all_postings(tx, user_id, names)
    if there is None:
        return 0
    members = _members(there, group)
    shifts = dict(zip(names, (s - f for s, f in zip(members.starts, members.firsts, strict=True)), strict=True))
    entries, words = sum(members.entries), sum(members.words)
    parts = [(data, shifts[thread_id] + segment) for thread_id, segment, data in rows]
    # In a thread, because it is slow.
    buckets = await asyncio.to_thread(join, parts, entries)
    volume = Volume(uuid4().hex, INDEX_FORM, entries, words)
    async with store.writing() as tx:
        await recall_index.lock_volumes(tx, names)
        if await _find_unchanged(tx, user_id, group) != there:
            return 0  # The next pass takes them as they are then.
        await recall_index.write_volume(tx, user_id, volume, members, buckets)
    return len(names)


async def _find_unchanged(tx: Transaction, user_id: str, group: Sequence[Searched]) -> list[Bindable] | None:
    """Return the threads; None if one has changed, or another process was faster."""
    there = await recall_index.bindable(tx, user_id, [thread.thread_id for thread in group])
    now = [(each.thread_id, each.first_seq, each.entry_count, each.volume) for each in there]
    if now != [(thread.thread_id, thread.first_seq, thread.entry_count, None) for thread in group]:
        return None
    return there


def _members(there: Sequence[Bindable], group: Sequence[Searched]) -> Members:
    """Lay threads side by side, with gaps so that no term's score spreads into the next."""
    starts, place = [], 0
    for each in there:
        starts.append(place)
        place += each.entry_count - each.first_seq + 1 + REACH
    return Members(
        threads=[each.thread_id for each in there],
        agents=[each.agent_id for each in there],
        starts=starts,
        firsts=[each.first_seq for each in there],
        lasts=[each.entry_count for each in there],
        entries=[thread.entries for thread in group],
        words=[thread.words for thread in group],
    )
