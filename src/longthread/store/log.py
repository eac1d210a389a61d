"""The log: threads and their append-only entries."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from longthread.errors import EntryNotFound, ThreadConflict, ThreadNotFound, ThreadTaken
from longthread.model.entry import SENT_ID, Draft, Entry
from longthread.model.thread import Thread, leads_to
from longthread.store.driver import Row, Transaction, one
from longthread.store.rows import (
    dump,
    entries_of,
    entry_of,
    entry_row,
    in_their_places,
    make_damage_error,
    of_thread,
    parent_of,
    sibling_id,
    thread_of,
)

MESSAGE_ID = SENT_ID
"""Metadata key of the id that the sender gave, if the entry's own differs."""
_MOMENT = timedelta(seconds=1)
_VERSIONS = 16
"""So many versions of a message are looked at, to find one again."""


def now() -> str:
    """Return the time as stored."""
    return _text_of(datetime.now(UTC))


def _text_of(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


async def create_thread(
    tx: Transaction,
    thread_id: str,
    *,
    user_id: str,
    title: str | None = None,
    source: str | None = None,
    parent: str | None = None,
) -> Thread:
    """Create a thread, below `parent` if given, or find the user's own; lock it until the transaction ends. Raises
    `ThreadNotFound` if the id is another user's, without naming them."""
    await tx.later("insert_thread", id=thread_id, user_id=user_id, title=title, source=source, now=now())
    await position(tx, thread_id)
    if parent is not None:
        await tx.later("set_parent", id=thread_id, parent=parent)
    return await find_thread(tx, thread_id, user_id=user_id)


async def begin_thread(tx: Transaction, thread_id: str, *, user_id: str, title: str | None, source: str | None) -> None:
    """Create a thread and lock it until the transaction ends. Raises `ThreadTaken` if there is one with this id, also
    of another user."""
    if not await tx.run("insert_thread", id=thread_id, user_id=user_id, title=title, source=source, now=now()):
        raise ThreadTaken(thread=thread_id)
    await position(tx, thread_id)


async def find_thread(tx: Transaction, thread_id: str, *, user_id: str) -> Thread:
    """Return a user's thread. Raises `ThreadNotFound`, also for another user's."""
    return thread_of(await find_row(tx, thread_id, user_id=user_id))


async def find_row(tx: Transaction, thread_id: str, *, user_id: str) -> Row:
    """Return a user's thread as an undecoded row, which may be damaged. Raises `ThreadNotFound`."""
    row = await one(tx, "select_thread", id=thread_id, user_id=user_id)
    if row is None:
        raise ThreadNotFound(thread=thread_id)
    return row


async def owner(tx: Transaction, thread_id: str) -> str:
    """Return the user of a thread. Raises `ThreadNotFound`."""
    row = await one(tx, "select_owner", id=thread_id)
    if row is None:
        raise ThreadNotFound(thread=thread_id)
    return str(row["user_id"])


async def threads_below(tx: Transaction, thread_id: str, *, user_id: str) -> dict[str, str]:
    """Return all descendants of a user's thread, nearest first, as ids with their last activity."""
    rows = await tx.fetch("select_threads_below", id=thread_id, user_id=user_id)
    return {row["id"]: row["updated_at"] for row in rows}


async def rename_thread(tx: Transaction, thread_id: str, title: str, *, user_id: str) -> None:
    """Set a thread's title, which is no activity."""
    if not await tx.run("update_title", id=thread_id, user_id=user_id, title=title):
        raise ThreadNotFound(thread=thread_id)


async def replace_title(tx: Transaction, thread_id: str, taken: str, title: str) -> None:
    """Set a thread's title where it is `taken`."""
    await tx.later("replace_title", id=thread_id, taken=taken, title=title)


async def set_source(tx: Transaction, thread_id: str, source: str) -> None:
    """Store the source of the thread's next question."""
    await tx.run("update_source", id=thread_id, source=source)


async def set_agent(tx: Transaction, thread_id: str, agent_id: str) -> None:
    """Store the catalog agent of a conversation."""
    await tx.later("set_agent", id=thread_id, agent_id=agent_id)


async def add_tool_category(tx: Transaction, thread_id: str, category: str) -> None:
    """Store that a tool of this category has run. The caller has locked the thread in this transaction."""
    row = await one(tx, "select_tool_categories", id=thread_id)
    with of_thread(thread_id):
        there: list[str] = json.loads(row["tool_categories"]) if row else []
        if category not in there:
            await tx.later("update_tool_categories", id=thread_id, categories=dump(sorted([*there, category])))


async def delete_thread(tx: Transaction, thread_id: str, *, user_id: str, with_memories: bool = False) -> None:
    """Delete a thread and its descendants with all their data, damaged or not, for ever.

    What was remembered from them stays (document 002: `ON DELETE SET NULL`); the database notes that the thread is
    gone. Results that were saved to boards stay, too. `with_memories`: both go, but for what a person entered or
    another thread has said.
    """
    await lock(tx, thread_id)
    await find_row(tx, thread_id, user_id=user_id)
    below = await threads_below(tx, thread_id, user_id=user_id)
    for each in below:
        await tx.fetch("select_position", id=each)  # locks it
    for each in [*reversed(below), thread_id]:
        if with_memories:
            # What another thread also said stays, as that thread's.
            for query in ("delete_joint_memories", "rehome_memories"):
                await tx.run(query, thread_id=each, user_id=user_id, memory_id=None)
            for query in ("delete_memories_of_thread", "delete_memory_sources_of_thread"):
                await tx.run(query, thread_id=each, user_id=user_id)
            for query in ("delete_board_links_of_thread", "delete_cards_of_thread"):
                await tx.run(query, thread_id=each)
        # Every table of a thread refers to it, and its rows are deleted by cascade.
        await tx.run("delete_thread", id=each, user_id=user_id)


async def extend(
    tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, parent: int | None = None, expect: int | None = None
) -> list[Entry]:
    """Append entries after `parent` (default: the tip), and make the last one the tip.

    Idempotent: drafts that already end the tip's branch, or follow `parent`, are returned and not written. Drafts whose
    entries retention deleted from the branch's start are skipped. See `add` for drafts whose ids exist elsewhere.

    Args:
        parent: seq of the preceding entry; 0 starts a new branch at the root.
        expect: the tip that the caller last saw.

    Raises:
        ThreadNotFound: there is no such thread.
        EntryNotFound: the thread has no entry `parent`.
        ThreadConflict: the tip is not `expect`: another writer was faster. Nothing is written.
    """
    tip, size = await position(tx, thread_id)
    if parent is None:
        there = await _end_of_branch(tx, thread_id, tip, drafts)
        # A caller that repeats an unacknowledged call still expects the earlier tip.
        if there and expect in (None, tip, there[0].parent_seq):
            return there
    if expect is not None and tip != expect:
        raise ThreadConflict(thread=thread_id)
    start = tip if parent is None else parent
    if start != tip:
        await _expect_entry(tx, thread_id, start)
    entries, count = await _write(tx, thread_id, drafts, parent=start, size=size)
    end = entries[-1].seq if entries else start
    if (end, count) != (tip, size):
        await tx.later("move_tip", id=thread_id, tip=end, entry_count=count, now=now())
    return entries


async def add(tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, parent: int) -> list[Entry]:
    """Append entries after `parent` (0: the root) without moving the tip. Idempotent.

    A draft whose id exists elsewhere or with other content becomes a sibling: its id is derived from the draft and its
    place, and its metadata holds the draft's own (`sent_id`). Raises `ThreadNotFound`, or `EntryNotFound` for `parent`.
    """
    tip, size = await position(tx, thread_id)
    await _expect_entry(tx, thread_id, parent)
    entries, count = await _write(tx, thread_id, drafts, parent=parent, size=size)
    if count != size:
        await tx.later("move_tip", id=thread_id, tip=tip, entry_count=count, now=now())
    return entries


async def append(
    tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, tip: int, size: int, goes_on: bool = False
) -> list[Entry]:
    """Append new entries after the tip. The caller has locked the thread in this transaction, which found `tip` and
    `size`, and has just made the drafts' ids. `goes_on`: within a turn, the activity time is rounded to seconds."""
    at, rows = now(), list[Row]()
    for seq, draft in enumerate(drafts, size + 1):
        rows.append(entry_row(thread_id, draft, parent_seq=seq - 1 if rows else tip, seq=seq, at=at))
    await tx.run_all("insert_entry", rows)
    entries = [entry_of(row) for row in rows]
    if entries:
        moved = {"id": thread_id, "tip": entries[-1].seq, "entry_count": entries[-1].seq, "now": now()}
        if goes_on:
            await tx.later("advance_tip", **moved, recent=_text_of(datetime.now(UTC) - _MOMENT))
        else:
            await tx.later("move_tip", **moved)
    return entries


async def set_tip(tx: Transaction, thread_id: str, seq: int) -> None:
    """Set the thread's tip, the end of the conversation; 0 empties it. Raises `ThreadNotFound` or `EntryNotFound`."""
    tip, size = await position(tx, thread_id)
    await _expect_entry(tx, thread_id, seq)
    if seq != tip:
        await tx.run("move_tip", id=thread_id, tip=seq, entry_count=size, now=now())


def sent_id(entry: Draft) -> str:
    """Return the id that the sender gave the entry."""
    return str(entry.metadata.get(MESSAGE_ID, entry.id))


async def descends(tx: Transaction, thread_id: str, seq: int, ancestor: int, *, limit: int = 200) -> bool:
    """Return whether entry `seq` descends from `ancestor`. After `limit` entries that are all later than `ancestor`, it
    is assumed to."""
    row = await one(tx, "select_ancestor", thread_id=thread_id, seq=seq, down_to=ancestor, limit=limit)
    return row is not None and row["seq"] is not None and row["seq"] >= ancestor


async def position(tx: Transaction, thread_id: str) -> tuple[int, int]:
    """Return the thread's tip and size; a write transaction locks the thread until its end. Raises `ThreadNotFound`.

    Every write transaction on a thread does this first (lock first, then look): later reads are stable, and
    transactions on one thread run one after the other.
    """
    row = await lock(tx, thread_id)
    with of_thread(thread_id):
        return int(row["tip"]), int(row["entry_count"])


async def lock(tx: Transaction, thread_id: str) -> Row:
    """Lock a thread as `position` does, and return the undecoded row. Raises `ThreadNotFound`."""
    row = await one(tx, "select_position", id=thread_id)
    if row is None:
        raise ThreadNotFound(thread=thread_id)
    return row


async def _expect_entry(tx: Transaction, thread_id: str, seq: int) -> None:
    if seq and await one(tx, "select_parent", thread_id=thread_id, seq=seq) is None:
        raise EntryNotFound(thread=thread_id, entry=seq)


async def _end_of_branch(tx: Transaction, thread_id: str, tip: int, drafts: Sequence[Draft]) -> list[Entry]:
    """Return the last entries of the tip's branch if they equal `drafts`."""
    last = await branch(tx, thread_id, tip, limit=len(drafts))
    if 0 < len(last) < len(drafts) and await _is_cut_off(tx, last[0]):
        drafts = drafts[-len(last) :]
    pairs = zip(last, drafts, strict=False)
    same = all(sent_id(entry) == draft.id and entry.says_the_same_as(draft) for entry, draft in pairs)
    return last if same and len(last) == len(drafts) else []


async def _is_cut_off(tx: Transaction, entry: Entry) -> bool:
    """Return whether retention deleted the entry's parent."""
    row = await one(tx, "select_parent", thread_id=entry.thread_id, seq=entry.seq)
    return entry.parent_seq == 0 and row is not None and row["parent_seq"] > 0


async def _write(
    tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, parent: int, size: int
) -> tuple[list[Entry], int]:
    """Write drafts after `parent`; return the entries and the thread's new size."""
    entries: list[Entry] = []
    for draft in drafts:
        entry = await _place(tx, thread_id, draft, parent_seq=parent, seq=size + 1)
        size, parent = max(size, entry.seq), entry.seq
        entries.append(entry)
    return entries, size


async def _place(tx: Transaction, thread_id: str, draft: Draft, *, parent_seq: int, seq: int) -> Entry:
    row = await one(tx, "select_entry", thread_id=thread_id, id=draft.id)
    if row is None and parent_seq:
        return await _insert(tx, thread_id, draft, parent_seq=parent_seq, seq=seq)
    there = entry_of(row) if row else None
    if there and there.parent_seq == parent_seq and there.says_the_same_as(draft):
        return there
    own_id = sibling_id(draft, parent_seq)
    sibling = await one(tx, "select_entry", thread_id=thread_id, id=own_id)
    if sibling is not None:
        return entry_of(sibling)
    if there is None:  # at the root, it may have been the sibling of an entry that retention has deleted
        return await _insert(tx, thread_id, draft, parent_seq=parent_seq, seq=seq)
    own = replace(draft, id=own_id, metadata={**draft.metadata, MESSAGE_ID: draft.id})
    return await _insert(tx, thread_id, own, parent_seq=parent_seq, seq=seq)


def version_of(draft: Draft, *, parent_seq: int, replaces: int) -> Draft:
    """Return a draft of a message's later version, under an id that follows from the content and the place."""
    own_id = sibling_id(draft, parent_seq, replaces)
    return replace(draft, id=own_id, metadata={**draft.metadata, MESSAGE_ID: draft.id})


async def _insert(tx: Transaction, thread_id: str, draft: Draft, *, parent_seq: int, seq: int) -> Entry:
    values = entry_row(thread_id, draft, parent_seq=parent_seq, seq=seq, at=now())
    await tx.run("insert_entry", **values)
    return entry_of(values)


async def find_entry(tx: Transaction, thread_id: str, entry_id: str) -> Entry:
    """Return an entry by id. Raises `EntryNotFound`."""
    row = await one(tx, "select_entry", thread_id=thread_id, id=entry_id)
    if row is None:
        raise EntryNotFound(thread=thread_id, entry=entry_id)
    return entry_of(row)


async def branch(
    tx: Transaction, thread_id: str, tip: int, *, limit: int = 200, seen_from: int | None = None
) -> list[Entry]:
    """Return the last `limit` entries of the branch that ends in `tip`, oldest first, in time independent of its
    length. Raises `EntryNotFound` if there is no `tip`, or `RowDamaged` if it or an earlier entry was lost.

    A message that was changed is shown in its place, in the newest version of the branch that ends in `seen_from`
    (default: `tip`): give the end of the whole branch to read an earlier part of it.
    """
    found: list[Row] = []
    versions: dict[int, Row] = {}
    has_versions = False
    wanted = tip
    while wanted and len(found) < limit:
        # A branch is nearly always written in one go: one range read from its end down serves it, and only where
        # another branch was written in between is there a gap to jump over.
        left = limit - len(found)
        among = {"first": wanted - left + 1, "seq": wanted, "limit": left}
        rows = await tx.fetch("select_entries_down", thread_id=thread_id, **among)
        if not rows or rows[0]["seq"] != wanted:
            # What a branch goes on from is there, or was deleted by retention: `parent_of`.
            if found or await one(tx, "select_naming", thread_id=thread_id, seq=wanted):
                raise make_damage_error(
                    f"entry {wanted} of thread {thread_id}", "it is gone, and was not deleted by retention"
                )
            raise EntryNotFound(thread=thread_id, entry=wanted)
        for row in rows:
            if row["seq"] == wanted:
                wanted = parent_of(row)
                if row["replaces"] is None:
                    found.append(row)
                else:
                    versions.setdefault(row["replaces"], row)
        has_versions = bool(rows[0]["versions"])
    if found and has_versions:
        if seen_from is not None and seen_from > tip:
            versions |= await _later_versions(tx, thread_id, tip, seen_from, found[-1]["seq"], found[0]["seq"])
        found = in_their_places(found, versions, await place_at(tx, thread_id, wanted))
    return entries_of(found[::-1])


async def place_at(tx: Transaction, thread_id: str, seq: int) -> int:
    """Return the nearest entry up to `seq` on its branch that takes a place of its own; 0 if there is none."""
    row = await one(tx, "select_place_before", thread_id=thread_id, seq=seq) if seq else None
    return int(row["seq"]) if row else 0


async def changed_between(tx: Transaction, thread_id: str, after: int, last: int) -> set[int]:
    """Return the entries that got a version after `after`, up to `last`, on any branch."""
    among = {"thread_id": thread_id, "first": 1, "last": last, "after": after}
    return {int(row["replaces"]) for row in await tx.fetch("select_later_versions", **among, before=last + 1)}


async def _later_versions(tx: Transaction, thread_id: str, end: int, tip: int, first: int, last: int) -> dict[int, Row]:
    """Return the versions of the entries `first` to `last` that the branch up to `tip` has after `end`, by places."""
    among = {"thread_id": thread_id, "first": first, "last": last, "after": end}
    apart = await tx.fetch("select_entries_apart_between", thread_id=thread_id, after=end, last=tip)
    parents = {int(each["seq"]): int(each["parent_seq"]) for each in apart}
    if not leads_to(end, tip, parents):
        return {}
    found: dict[int, int] = {}
    pages = await tx.fetch("select_later_versions", **among, before=tip + 1)
    while pages:
        for each in pages:
            later = {seq: parent for seq, parent in parents.items() if seq > each["seq"]}
            if leads_to(int(each["seq"]), tip, later):
                found[int(each["replaces"])] = int(each["seq"])
        lost = [each for each in pages if each["replaces"] not in found]
        pages = []
        for each in lost:  # another branch has a newer one
            place = {**among, "first": each["replaces"], "last": each["replaces"]}
            pages += await tx.fetch("select_later_versions", **place, before=each["seq"])
    rows = await tx.fetch("select_entries_at", thread_id=thread_id, seqs=json.dumps(sorted(found.values())))
    there = {int(each["seq"]): each for each in rows}
    return {place: there[seq] for place, seq in found.items()}


async def is_first(tx: Transaction, thread_id: str, seq: int) -> bool:
    """Whether an entry begins a conversation: nothing went before it, also nothing that retention has deleted."""
    row = await one(tx, "select_parent", thread_id=thread_id, seq=seq)
    return row is not None and not row["parent_seq"]


async def entries_between(tx: Transaction, thread_id: str, first: int, last: int) -> list[Entry]:
    """Return the entries with `first` <= seq <= `last`, on any branch."""
    rows = await tx.fetch("select_entries_range", thread_id=thread_id, first=first, last=last)
    return entries_of(rows)


async def entries_at(tx: Transaction, thread_id: str, seqs: Collection[int]) -> dict[int, Entry]:
    """Return the existing entries with these seqs, on any branch, by seq."""
    rows = await tx.fetch("select_entries_at", thread_id=thread_id, seqs=json.dumps(sorted(seqs)))
    return {int(row["seq"]): entry_of(row) for row in rows}


async def find_entries(tx: Transaction, thread_id: str, ids: Sequence[str]) -> dict[str, Entry]:
    """Return the existing entries with these ids, by id."""
    found: dict[str, Entry] = {}
    for entry_id in ids:
        row = await one(tx, "select_entry", thread_id=thread_id, id=entry_id)
        if row is not None:
            found[entry_id] = entry_of(row)
    return found


async def versions_before(tx: Transaction, thread_id: str, place: int, seq: int) -> list[Entry]:
    """Return the last versions of a message that were written before `seq`, newest first; the first is the last."""
    rows = await tx.fetch("select_versions_before", thread_id=thread_id, place=place, seq=seq, limit=_VERSIONS)
    return entries_of([*rows, *await tx.fetch("select_entries_at", thread_id=thread_id, seqs=json.dumps([place]))])


async def results_of(tx: Transaction, thread_id: str, calls: Sequence[str]) -> list[int]:
    """Return the results of calls with these ids, on any branch."""
    asked = json.dumps(calls, ensure_ascii=False)
    return [int(row["seq"]) for row in await tx.fetch("select_results_of_calls", thread_id=thread_id, calls=asked)]


async def count_entries(tx: Transaction, thread_id: str) -> int:
    """Count a thread's entries on all branches."""
    [row] = await tx.fetch("count_entries", thread_id=thread_id)
    return int(row["entries"])


async def expect_no_entries(tx: Transaction, thread_id: str, ids: Sequence[str]) -> None:
    """Go on only if the thread has none of these entries (see `Transaction.expect`)."""
    for entry_id in ids:
        await tx.expect("select_entry_seq", 0, thread_id=thread_id, id=entry_id)
