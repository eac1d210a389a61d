"""Branches of a thread: what follows an entry, and where a branch ended that was left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from longthread.model.entry import Role
from longthread.model.thread import Thread
from longthread.store import log
from longthread.store.driver import Transaction, one
from longthread.store.index.recall import active_ranges, branch_points, is_active


@dataclass(frozen=True, slots=True)
class Sibling:
    """An entry among those that follow the same one."""

    seq: int
    id: str
    role: Role
    run_id: str | None


async def following(tx: Transaction, thread_id: str, seqs: Iterable[int]) -> dict[int, list[Sibling]]:
    """Map entries (0: the root) to those that follow them, on any branch, oldest first. One that none follows is not in
    the map."""
    wanted = sorted(set(seqs))
    asked = {"seqs": json.dumps(wanted), "next": json.dumps([seq + 1 for seq in wanted])}
    found: dict[int, list[Sibling]] = {}
    for row in await tx.fetch("select_following", thread_id=thread_id, **asked):
        sibling = Sibling(int(row["seq"]), row["id"], row["role"], row["run_id"])
        found.setdefault(int(row["parent_seq"]), []).append(sibling)
    return found


async def leave(tx: Transaction, thread: Thread, seq: int) -> None:
    """Keep where the thread's branch ends, as its conversation goes on behind entry `seq` (0: the root) of any branch.
    The caller has locked the thread."""
    apart = await branch_points(tx, thread.id)
    there = active_ranges(seq, apart)
    first = _first_after(active_ranges(thread.tip, apart), there)
    if first:
        await tx.run("save_branch_tip", thread_id=thread.id, seq=first, tip=thread.tip)


async def choose(tx: Transaction, thread: Thread, seq: int) -> int:
    """Make the branch with entry `seq` the thread's active one, and return its end: where it ended when it was left,
    else its last written entry. The caller has locked the thread.

    Raises:
        EntryNotFound: the thread has no such entry.
    """
    tip = await end_of(tx, thread, seq)
    if tip != thread.tip:
        await leave(tx, thread, seq)
        await log.set_tip(tx, thread.id, tip)
    return tip


async def end_of(tx: Transaction, thread: Thread, seq: int) -> int:
    """Return the end of the branch with entry `seq`, as `choose` would choose it."""
    apart = await branch_points(tx, thread.id)
    if is_active(seq, active_ranges(thread.tip, apart)):
        return thread.tip
    return await _kept_end(tx, thread, seq, apart) or await _last_below(tx, thread, seq, apart) or seq


def _first_after(active: Sequence[tuple[int, int]], there: Sequence[tuple[int, int]]) -> int:
    """Return the first entry of a branch that another one has not; 0 if there is none."""
    for first, last in reversed(active):
        shared = [seen for seen in there if seen[0] == first]
        if not shared:
            return first
        if last > shared[0][1]:
            return shared[0][1] + 1
    return 0


async def _kept_end(tx: Transaction, thread: Thread, seq: int, apart: Mapping[int, int]) -> int:
    """Return where the branch that begins with an entry ended when it was left; 0 if it never was, or the end was
    deleted since."""
    row = await one(tx, "select_branch_tip", thread_id=thread.id, seq=seq)
    tip = int(row["tip"]) if row else 0
    if not tip or not is_active(seq, active_ranges(tip, apart)):
        return 0
    return await _last_between(tx, thread.id, tip, tip)


async def _last_below(tx: Transaction, thread: Thread, seq: int, apart: Mapping[int, int]) -> int:
    """Return the last written entry among `seq` and all that follow it; 0 if there is none."""
    below: list[tuple[int, int]] = []
    starts = sorted(apart)
    for first in [seq, *(start for start in starts if start > seq)]:
        if first == seq or is_active(apart[first], below):
            following_start = next((start for start in starts if start > first), thread.entry_count + 1)
            below.append((first, following_start - 1))
    for first, last in reversed(below):
        if found := await _last_between(tx, thread.id, first, last):
            return found
    return 0


async def _last_between(tx: Transaction, thread_id: str, first: int, last: int) -> int:
    row = await one(tx, "select_last_entry_between", thread_id=thread_id, first=first, last=last)
    return int(row["seq"] or 0) if row else 0
