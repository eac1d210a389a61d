"""Branches of a thread: what follows an entry, and where a branch ended that was left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from longthread.model.entry import Role
from longthread.model.thread import Thread, active_ranges, is_active
from longthread.store import log
from longthread.store.driver import QueryCall, Row, Transaction, one


@dataclass(frozen=True, slots=True)
class Sibling:
    """An entry among the entries that follow the same one."""

    seq: int
    id: str
    role: Role
    run_id: str | None


async def following(tx: Transaction, thread_id: str, seqs: Iterable[int]) -> dict[int, list[Sibling]]:
    """Map entries (0: the root) to the entries that follow them, on any branch, oldest first. An entry that none
    follows is not in the map."""
    wanted = sorted(set(seqs))
    asked = {"seqs": json.dumps(wanted), "next": json.dumps([seq + 1 for seq in wanted])}
    found: dict[int, list[Sibling]] = {}
    for row in await tx.fetch("select_following", thread_id=thread_id, **asked):
        sibling = Sibling(int(row["seq"]), row["id"], row["role"], row["run_id"])
        found.setdefault(int(row["parent_seq"]), []).append(sibling)
    return found


async def leave(tx: Transaction, thread: Thread, seq: int) -> None:
    """Store where the thread's branch ends, because its conversation goes on after entry `seq` (0: the root) of any
    branch. The caller has locked the thread."""
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


async def branch_points(tx: Transaction, thread_id: str) -> dict[int, int]:
    """Map each entry that does not follow the one written before it to its parent."""
    return _parents(await tx.fetch("select_entries_apart", thread_id=thread_id))


async def read_branches(tx: Transaction, thread_id: str) -> tuple[dict[int, int], bool]:
    """Return the branch points, and whether any message is stored under another id than its own (see `versions`)."""
    apart, [first] = await tx.fetch_all(*branches_asked(thread_id))
    return _parents(apart), first["message_id"] is not None


def branches_asked(thread_id: str) -> list[QueryCall]:
    """Return the queries of `branches`."""
    return [(query, {"thread_id": thread_id}) for query in ("select_entries_apart", "select_first_version")]


def _parents(rows: Sequence[Row]) -> dict[int, int]:
    return {int(row["seq"]): int(row["parent_seq"]) for row in rows}


async def places_of_versions(tx: Transaction, thread_id: str) -> dict[int, int]:
    """Map each later version of a message to the entry whose place it takes."""
    rows = await tx.fetch("select_replacing", thread_id=thread_id)
    return {int(row["seq"]): int(row["replaces"]) for row in rows}


async def find_versions(tx: Transaction, thread_id: str, ids: Sequence[str]) -> dict[str, list[int]]:
    """Map message ids to entries stored under other ids: the message existed before with other content or elsewhere."""
    found: dict[str, list[int]] = {}
    for row in await tx.fetch("select_message_versions", thread_id=thread_id, ids=json.dumps(ids, ensure_ascii=False)):
        found.setdefault(row["message_id"], []).append(int(row["seq"]))
    return found
