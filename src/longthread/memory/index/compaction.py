"""Merges the indexes of a user's many short threads into volumes, in the background, without reading entries.

A volume holds whole threads, up to as many entries as a large segment, and never changes. A thread that grows is read
by its own index, until there are enough of them to rebuild their volumes. Errors and interruptions leave threads
outside of volumes, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from uuid import uuid4

from longthread.memory.index.postings import FULL, INDEX_FORM, join
from longthread.memory.index.ranking import REACH
from longthread.model.thread import Scope
from longthread.store.driver import Driver, Transaction
from longthread.store.index import recall, shards
from longthread.store.index.recall import Searched
from longthread.store.index.shards import Bindable, Members, Volume

LEAST = 64
"""So many loose threads are put into volumes: fewer are read fast enough."""
LONG = FULL // 2
"""Threads of more entries stay on their own: of such, a user's entries are in few."""
_MOST_PLACES = 2**16 - 1


async def bind_user(store: Driver, user_id: str, *, least: int | None = None) -> int:
    """Merge a user's unmerged threads, if there are at least `least`; return their number. Raises StoreError."""
    async with store.reading() as tx:
        if await shards.loose_count(tx, user_id, LONG, last=True) < (LEAST if least is None else least):
            return 0
    async with store.reading() as tx:
        there = await shards.find_volumes(tx, user_id)
        changed = {each.volume for each in await shards.loose(tx, Scope(user_id), form=INDEX_FORM)}
    for volume in there:
        if volume.id in changed or volume.form != INDEX_FORM or 2 * volume.entries < FULL:
            await drop_volumes(store, user_id, [volume.id])
    async with store.reading() as tx:
        loose = await shards.loose(tx, Scope(user_id), form=INDEX_FORM)
    done = 0
    for group in _groups([each.thread for each in loose if each.volume is None]):
        done += await _bind(store, user_id, group)
    return done


async def drop_volumes(store: Driver, user_id: str, names: Sequence[str]) -> None:
    """Drop volumes; their threads are read by their own index again. Raises StoreError."""
    async with store.writing() as tx:
        await shards.delete_volumes(tx, user_id, names)


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
        there = await _unchanged(tx, user_id, group)
        rows = await recall.all_postings(tx, user_id, names)
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
        await shards.lock(tx, names)
        if await _unchanged(tx, user_id, group) != there:
            return 0  # The next pass takes them as they are then.
        await shards.write_volume(tx, user_id, volume, members, buckets)
    return len(names)


async def _unchanged(tx: Transaction, user_id: str, group: Sequence[Searched]) -> list[Bindable] | None:
    """Return the threads; None if one has changed, or another process was faster."""
    there = await shards.bindable(tx, user_id, [thread.thread_id for thread in group])
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
