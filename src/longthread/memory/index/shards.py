"""What a question searches: threads by their own index, and volumes that index many threads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from longthread.errors import ThreadNotFound
from longthread.memory.index.postings import INDEX_FORM
from longthread.memory.index.signature_index import Ranges
from longthread.model.lru import LRU
from longthread.model.thread import Scope
from longthread.store.driver import Transaction
from longthread.store.index import recall
from longthread.store.index import shards as volumes
from longthread.store.index.recall import Searched
from longthread.store.index.shards import Members, Volume

MOST_KEPT = 1024
"""Volumes of which one process keeps in memory which threads they have."""

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
            threads = await recall.threads_in(tx, scope, form=INDEX_FORM)
            if not threads:
                raise ThreadNotFound(thread=scope.thread_id)
            return SearchArea(scope, threads)
        loose = await volumes.loose(tx, scope, form=INDEX_FORM, also=apart)
        found = await volumes.find_volumes(tx, scope.user_id)
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
            for name, own in (await volumes.members(tx, user_id, missing)).items():
                there[name] = ShardThreads(own)
                self._rolls.put(name, there[name])
        return there
