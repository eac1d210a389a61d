"""Puts ended runs of a thread together: behind its turns a few, and all of them where the store is pruned.

What is read is made into bundles beside the event loop, and written under the thread's lock, if it is as it was read.
What goes wrong or is stopped leaves runs in rows of their own, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from longthread.errors import ThreadNotFound
from longthread.store import bundles, log
from longthread.store.bundled import Bundle, Bundled, bundle_of, bundled, runs_in
from longthread.store.driver import Driver, Row, Transaction, one

BEHIND_A_TURN = 64
"""So many loose runs of a thread are put together behind a turn: fewer wait for more."""
WHERE_PRUNED = 16
"""So many where the store is pruned. Fewer are hardly more than a page."""
MOST = 128
"""Runs of one bundle. Twice as many would take 2 % less, and twice as long to read one of them."""
MOST_BYTES = 65_536
"""What the runs of one bundle have done, in bytes as they are stored alone; about a fifth of what it is in full."""
LARGE = 8_192
"""A run that has done so much stays on its own: beside that, its row is little."""
_LOOKED_AT = 4 * BEHIND_A_TURN
_ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Loose:
    """A run that may be bundled, and the bytes of what it did."""

    id: str
    size: int


@dataclass(slots=True)
class Group:
    """Neighbours that are put together: loose runs, and the runs of the bundles that begin with `opened`."""

    loose: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    first: str = ""
    last: str = ""
    runs: int = 0
    size: int = 0

    def fits(self, runs: int, size: int) -> bool:
        """Whether so many runs of such a size may be added."""
        return self.runs == 0 or (self.runs + runs <= MOST and self.size + size <= MOST_BYTES)

    def add(self, first: str, last: str, runs: int, size: int) -> None:
        """Take in what stands behind what is in it."""
        self.first = self.first if self.runs else first
        self.last, self.runs, self.size = max(self.last, last), self.runs + runs, self.size + size

    @property
    def is_worth_it(self) -> bool:
        """Whether there is anything to put together."""
        return bool(self.loose) or len(self.opened) > 1


async def bundle_some(store: Driver, thread_id: str) -> int:
    """Put the next runs of a thread together, if there are enough; how many that were. However long the thread is, it
    looks at a bounded number of runs.

    Raises:
        StoreError: the database failed.
    """
    async with store.reading() as tx:
        last = await one(tx, "select_last_bundled", thread_id=thread_id)
        first = last["last_id"] if last else ""
        found = await _loose(tx, thread_id, first, None, few=_LOOKED_AT)
        if len(found) < BEHIND_A_TURN:
            # Many that may not be put together stand there: the newest runs do not wait behind them for ever.
            back = await one(tx, "select_run_few_back", thread_id=thread_id, few=_LOOKED_AT)
            if back is not None and back["id"] > first:
                found = await _loose(tx, thread_id, back["id"], None, few=_LOOKED_AT)
    if len(found) < BEHIND_A_TURN:
        return 0
    return await _put_together(store, thread_id, groups(found, [])[0])


async def bundle_all(store: Driver, thread_id: str) -> int:
    """Put all runs of a thread together that may be, and bundles that are small; how many runs that were which had
    rows. Each bundle is written in a transaction of its own.

    Raises:
        StoreError: the database failed.
    """
    async with store.reading() as tx:
        found = await _loose(tx, thread_id, "", None)
        if len(found) < WHERE_PRUNED:
            return 0
        there = await tx.fetch("select_bundle_places", thread_id=thread_id)
    return sum([await _put_together(store, thread_id, group) for group in groups(found, there)])


async def loose_count(tx: Transaction, thread_id: str, first_run: str | None) -> int:
    """How many runs `bundle_all` would put together when those before one are gone; None: none goes."""
    found = await _loose(tx, thread_id, first_run or "", None)
    return len(found) if len(found) >= WHERE_PRUNED else 0


def groups(loose: Sequence[Loose], there: Sequence[Row]) -> list[Group]:
    """What is to be put together of loose runs and the bundles that are there, each in the order of their ids.

    A bundle is opened when it is at most half full, or loose runs belong between its own.
    """
    made, group, at = [], Group(), 0
    for bundle in [*there, None]:
        while at < len(loose) and (bundle is None or loose[at].id < bundle["first_id"]):
            if not group.fits(1, loose[at].size):
                made.append(group)
                group = Group()
            group.add(loose[at].id, loose[at].id, 1, loose[at].size)
            group.loose.append(loose[at].id)
            at += 1
        inside: list[Loose] = []
        while bundle is not None and at < len(loose) and loose[at].id < bundle["last_id"]:
            inside.append(loose[at])
            at += 1
        small = bundle is not None and 2 * bundle["runs"] <= MOST and 2 * bundle["size"] <= MOST_BYTES
        runs, size = (bundle["runs"], bundle["size"]) if bundle is not None else (0, 0)
        runs, size = runs + len(inside), size + sum(each.size for each in inside)
        if bundle is None or not (small or inside) or not group.fits(runs, size):
            made.append(group)
            group = Group()
        if bundle is not None and (small or inside):
            group.add(bundle["first_id"], bundle["last_id"], runs, size)
            group.opened.append(bundle["first_id"])
            group.loose += [each.id for each in inside]
    return [each for each in made if each.is_worth_it]


async def _put_together(store: Driver, thread_id: str, group: Group) -> int:
    async with store.reading() as tx:
        found = await _found(tx, thread_id, group)
    if found is None:
        return 0
    made = await asyncio.to_thread(_made, *found)
    async with store.writing() as tx:
        try:
            await log.position(tx, thread_id)
        except ThreadNotFound:
            return 0
        if await _found(tx, thread_id, group) != found:
            return 0  # Somebody else was faster; the next pass takes what is there then.
        loose = [{"thread_id": thread_id, "id": each} for each in group.loose]
        opened = [{"thread_id": thread_id, "first_id": each} for each in group.opened]
        await tx.run_all("delete_bundled_run", loose)
        await tx.run_all("delete_bundle", opened)
        await bundles.insert(tx, thread_id, made)
    return len(loose)


async def _found(tx: Transaction, thread_id: str, group: Group) -> tuple[list[Row], list[Row]] | None:
    """The rows of a group's loose runs and of its bundles; None where these are not just those any more."""
    between = {"first": group.first, "last": group.last}
    opened = await tx.fetch("select_bundles_between", thread_id=thread_id, **between)
    if [bundle["first_id"] for bundle in opened] != group.opened:
        return None
    wanted = set(group.loose)
    if not wanted <= {each.id for each in await _loose(tx, thread_id, group.first, group.last)}:
        return None
    rows = await tx.fetch("select_runs_between", thread_id=thread_id, **between)
    return [row for row in rows if row["id"] in wanted], opened


def _made(loose: Sequence[Row], opened: Sequence[Row]) -> list[Bundle]:
    """The bundles of a group: one, or several of a size where runs belong between those of a bundle that was full."""
    runs: list[Bundled] = [bundled(row) for row in loose]
    runs += [run for bundle in opened for run in runs_in(bundle)]
    runs.sort(key=lambda run: run.id)
    parts = -(-len(runs) // MOST)
    ends = [len(runs) * part // parts for part in range(parts + 1)]
    return [bundle_of(runs[start:end]) for start, end in pairwise(ends)]


async def _loose(tx: Transaction, thread_id: str, first: str, last: str | None, *, few: int = _ENDLESS) -> list[Loose]:
    given = {"first": first, "last": last, "few": few, "most": LARGE}
    rows = await tx.fetch("select_loose_runs", thread_id=thread_id, **given)
    return [Loose(row["id"], int(row["size"])) for row in rows]
