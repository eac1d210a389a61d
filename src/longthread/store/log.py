"""The log: threads, and the entries that are only ever added to them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from longthread.errors import EntryNotFound, ThreadConflict, ThreadNotFound
from longthread.model.entry import Draft, Entry
from longthread.model.payload import SENT_ID
from longthread.model.thread import Thread
from longthread.store.decoding import damaged
from longthread.store.driver import Row, Transaction, one
from longthread.store.encoding import dump
from longthread.store.log_rows import entries_of, entry_of, entry_row, of_thread, parent_of, thread_of, threads_of

_LAST = "\U0010ffff"
"""Sorts behind every time and id: where a listing starts."""
LATEST = (_LAST, _LAST)
"""Before the first thread of a list."""
MESSAGE_ID = SENT_ID
"""Key of an entry's metadata for the id that its sender gave it, where that is not the entry's own."""
_MOMENT = timedelta(seconds=1)
_SIBLINGS = uuid.UUID("6c6f6e67-7468-5265-8164-656e74727921")
"""Namespace of the ids that siblings get."""


def now() -> str:
    """The time, as the store writes it."""
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
    """Make a thread, below `parent` if it is given, or find it when the user already has it; it is locked until the
    transaction ends.

    Raises:
        ThreadNotFound: the id is taken by somebody else's thread; nothing tells whose.
    """
    await tx.run("insert_thread", id=thread_id, user_id=user_id, title=title, source=source, now=now())
    await position(tx, thread_id)
    if parent is not None:
        await tx.run("set_parent", id=thread_id, parent=parent)
    return await find_thread(tx, thread_id, user_id=user_id)


async def find_thread(tx: Transaction, thread_id: str, *, user_id: str) -> Thread:
    """A user's thread.

    Raises:
        ThreadNotFound: there is none, or it is another user's.
    """
    return thread_of(await find_row(tx, thread_id, user_id=user_id))


async def find_row(tx: Transaction, thread_id: str, *, user_id: str) -> Row:
    """The row of a user's thread as it is: nothing is made of it that may be damaged.

    Raises:
        ThreadNotFound: there is none, or it is another user's.
    """
    row = await one(tx, "select_thread", id=thread_id, user_id=user_id)
    if row is None:
        raise ThreadNotFound(thread=thread_id)
    return row


async def list_threads(
    tx: Transaction,
    *,
    user_id: str,
    limit: int = 50,
    before: tuple[str, str] = LATEST,
    below: bool = False,
    unreadable: dict[str, str] | None = None,
) -> list[Thread]:
    """A user's threads, the latest active first; `before` is the (updated_at, id) of the last one already seen.

    Args:
        below: also those that are below another: what agents ask each other.
        unreadable: gets the ids of those of which nothing can be made, each with why; they are passed over, and
            others are in their places.

    Raises:
        RowDamaged: nothing can be made of one, and there is no `unreadable`.
    """
    found: list[Thread] = []
    while True:
        after, asked = {"before": before[0], "before_id": before[1]}, limit - len(found)
        rows = await tx.fetch("select_threads", user_id=user_id, **after, below=int(below), limit=asked)
        found += threads_of(rows, unreadable)
        if len(rows) < asked or len(found) == limit:
            return found
        before = rows[-1]["updated_at"], rows[-1]["id"]


async def last_thread(tx: Transaction, *, user_id: str) -> str | None:
    """The id of a user's thread that was active last, also when nothing else can be made of its row."""
    row = await one(tx, "select_threads", user_id=user_id, before=_LAST, before_id=_LAST, below=0, limit=1)
    return str(row["id"]) if row else None


async def children(
    tx: Transaction, thread_id: str, *, user_id: str, unreadable: dict[str, str] | None = None
) -> list[Thread]:
    """The threads right below a user's thread, the oldest first. `unreadable` is as for `list_threads`."""
    return threads_of(await tx.fetch("select_children", id=thread_id, user_id=user_id), unreadable)


async def threads_below(tx: Transaction, thread_id: str, *, user_id: str) -> dict[str, str]:
    """All threads below a user's thread, at whatever depth, those nearer first: their ids, and when each was last
    active."""
    rows = await tx.fetch("select_threads_below", id=thread_id, user_id=user_id)
    return {row["id"]: row["updated_at"] for row in rows}


async def depth(tx: Transaction, thread_id: str) -> int:
    """How many threads a thread is below."""
    row = await one(tx, "count_threads_above", id=thread_id)
    return int(row["depth"] or 0) if row else 0


async def search_threads(
    tx: Transaction, text: str, *, user_id: str, limit: int = 20, unreadable: dict[str, str] | None = None
) -> list[tuple[Thread, str]]:
    """A user's threads that hold `text` in a title, a question or an answer, each with the newest text that does.

    `unreadable` is as for `list_threads`; those that are passed over count to the limit.
    """
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = await tx.fetch("search_threads", user_id=user_id, pattern=f"%{escaped}%", limit=limit)
    hits = {row["id"]: row["hit"] or row["title"] or "" for row in rows}
    return [(thread, hits[thread.id]) for thread in threads_of(rows, unreadable)]


async def threads_that_begin(tx: Transaction, prefix: str, *, user_id: str, limit: int = 2) -> list[str]:
    """The ids of a user's threads that begin with `prefix`, in their order."""
    last = prefix + _LAST
    rows = await tx.fetch("select_threads_by_prefix", user_id=user_id, first=prefix, last=last, limit=limit)
    return [row["id"] for row in rows]


async def rename_thread(tx: Transaction, thread_id: str, title: str, *, user_id: str) -> None:
    """Give a thread another title; it does not count as activity."""
    if not await tx.run("update_title", id=thread_id, user_id=user_id, title=title):
        raise ThreadNotFound(thread=thread_id)


async def set_source(tx: Transaction, thread_id: str, source: str) -> None:
    """Remember the source that a thread's next question is asked of."""
    await tx.run("update_source", id=thread_id, source=source)


async def set_agent(tx: Transaction, thread_id: str, agent_id: str) -> None:
    """Note the agent of the catalog that a conversation is with."""
    await tx.run("set_agent", id=thread_id, agent_id=agent_id)


async def add_tool_category(tx: Transaction, thread_id: str, category: str) -> None:
    """Note that a tool of this kind has run. For who has locked the thread in this transaction."""
    row = await one(tx, "select_tool_categories", id=thread_id)
    with of_thread(thread_id):
        there: list[str] = json.loads(row["tool_categories"]) if row else []
        if category not in there:
            await tx.run("update_tool_categories", id=thread_id, categories=dump(sorted([*there, category])))


async def delete_thread(tx: Transaction, thread_id: str, *, user_id: str) -> None:
    """Delete a thread, and the threads below it, with everything that is kept of them, damaged or not. It cannot be
    undone."""
    await lock(tx, thread_id)
    await find_row(tx, thread_id, user_id=user_id)
    below = await threads_below(tx, thread_id, user_id=user_id)
    for each in below:
        await tx.fetch("select_position", id=each)  # locks it
    for each in [*reversed(below), thread_id]:
        # Memories that another thread has said too stay, as that one's.
        await tx.run("rehome_memories", thread_id=each, user_id=user_id)
        # Every table of a thread's refers to it, and its rows go with it.
        await tx.run("delete_thread", id=each, user_id=user_id)


async def extend(
    tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, parent: int | None = None, expect: int | None = None
) -> list[Entry]:
    """Add entries behind `parent` (default: the tip), one behind the other, and make the last one the tip.

    Idempotent: drafts that already are the end of the tip's branch, or stand behind `parent`, are those entries and
    nothing is written; drafts whose entries retention has deleted from the branch's beginning are passed over. See
    `add` for a draft whose id stands elsewhere or with other content.

    Args:
        parent: seq of the entry to go behind; 0 starts a new branch at the root.
        expect: the tip that the caller last saw.

    Raises:
        ThreadNotFound: there is no such thread.
        EntryNotFound: the thread has no entry `parent`.
        ThreadConflict: the tip is not `expect`: another writer was faster. Nothing is written.
    """
    tip, size = await position(tx, thread_id)
    if parent is None:
        there = await _end_of_branch(tx, thread_id, tip, drafts)
        # A caller that repeats what it did not see acknowledged still expects the tip from before.
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
        await tx.run("move_tip", id=thread_id, tip=end, entry_count=count, now=now())
    return entries


async def add(tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, parent: int) -> list[Entry]:
    """Add entries behind `parent` (0: the root), one behind the other. The tip stays where it is.

    Idempotent. A draft whose id stands elsewhere or with other content becomes a sibling, and nothing is overwritten:
    an entry whose id follows from the draft and its place, and whose metadata tells the draft's own (`sent_id`).

    Raises:
        ThreadNotFound: there is no such thread.
        EntryNotFound: the thread has no entry `parent`.
    """
    tip, size = await position(tx, thread_id)
    await _expect_entry(tx, thread_id, parent)
    entries, count = await _write(tx, thread_id, drafts, parent=parent, size=size)
    if count != size:
        await tx.run("move_tip", id=thread_id, tip=tip, entry_count=count, now=now())
    return entries


async def append(
    tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, tip: int, size: int, goes_on: bool = False
) -> list[Entry]:
    """Add entries that are new behind the tip. For who has locked the thread in this transaction: `tip` and `size` are
    what was found then, and the ids of the drafts were just made.

    Args:
        goes_on: this is not the beginning of a turn: that the thread is active is noted to the second only.
    """
    entries: list[Entry] = []
    for draft in drafts:
        parent = entries[-1].seq if entries else tip
        entries.append(await _insert(tx, thread_id, draft, parent_seq=parent, seq=size + len(entries) + 1))
    if entries:
        moved = {"id": thread_id, "tip": entries[-1].seq, "entry_count": entries[-1].seq, "now": now()}
        if goes_on:
            await tx.run("advance_tip", **moved, recent=_text_of(datetime.now(UTC) - _MOMENT))
        else:
            await tx.run("move_tip", **moved)
    return entries


async def set_tip(tx: Transaction, thread_id: str, seq: int) -> None:
    """Make an entry the thread's tip: the branch that ends in it is the conversation. 0: it starts anew.

    Raises:
        ThreadNotFound: there is no such thread.
        EntryNotFound: the thread has no such entry.
    """
    tip, size = await position(tx, thread_id)
    await _expect_entry(tx, thread_id, seq)
    if seq != tip:
        await tx.run("move_tip", id=thread_id, tip=seq, entry_count=size, now=now())


def sent_id(entry: Draft) -> str:
    """The id that the entry's sender gave it."""
    return str(entry.metadata.get(MESSAGE_ID, entry.id))


async def descends(tx: Transaction, thread_id: str, seq: int, ancestor: int, *, limit: int = 200) -> bool:
    """Whether entry `seq` stands on a branch behind entry `ancestor`.

    No more than `limit` entries are looked at: where they all lie behind `ancestor`, the answer is yes.
    """
    row = await one(tx, "select_ancestor", thread_id=thread_id, seq=seq, down_to=ancestor, limit=limit)
    return row is not None and row["seq"] is not None and row["seq"] >= ancestor


async def position(tx: Transaction, thread_id: str) -> tuple[int, int]:
    """The thread's tip and its number of entries; in a write transaction, the thread is locked until its end.

    Every write transaction that touches a thread does this first: what it reads afterwards stays as it is, and two
    transactions on one thread come one after the other.

    Raises:
        ThreadNotFound: there is no such thread.
    """
    row = await lock(tx, thread_id)
    with of_thread(thread_id):
        return int(row["tip"]), int(row["entry_count"])


async def lock(tx: Transaction, thread_id: str) -> Row:
    """What `position` does, for who makes nothing of what is found.

    Raises:
        ThreadNotFound: there is no such thread.
    """
    row = await one(tx, "select_position", id=thread_id)
    if row is None:
        raise ThreadNotFound(thread=thread_id)
    return row


async def _expect_entry(tx: Transaction, thread_id: str, seq: int) -> None:
    if seq and await one(tx, "select_parent", thread_id=thread_id, seq=seq) is None:
        raise EntryNotFound(thread=thread_id, entry=seq)


async def _end_of_branch(tx: Transaction, thread_id: str, tip: int, drafts: Sequence[Draft]) -> list[Entry]:
    """The last entries of the tip's branch, if they are what `drafts` say."""
    last = await branch(tx, thread_id, tip, limit=len(drafts))
    if 0 < len(last) < len(drafts) and await _is_cut_off(tx, last[0]):
        drafts = drafts[-len(last) :]
    pairs = zip(last, drafts, strict=False)
    same = all(sent_id(entry) == draft.id and entry.says_the_same_as(draft) for entry, draft in pairs)
    return last if same and len(last) == len(drafts) else []


async def _is_cut_off(tx: Transaction, entry: Entry) -> bool:
    """Whether retention has deleted what stood before the entry, which is now its branch's first."""
    row = await one(tx, "select_parent", thread_id=entry.thread_id, seq=entry.seq)
    return entry.parent_seq == 0 and row is not None and row["parent_seq"] > 0


async def _write(
    tx: Transaction, thread_id: str, drafts: Sequence[Draft], *, parent: int, size: int
) -> tuple[list[Entry], int]:
    """The drafts as entries behind `parent`, and the number of entries that the thread has then."""
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
    own_id = _sibling_id(draft, parent_seq)
    sibling = await one(tx, "select_entry", thread_id=thread_id, id=own_id)
    if sibling is not None:
        return entry_of(sibling)
    if there is None:  # at the root, it may have been the sibling of an entry that retention has deleted
        return await _insert(tx, thread_id, draft, parent_seq=parent_seq, seq=seq)
    own = replace(draft, id=own_id, metadata={**draft.metadata, MESSAGE_ID: draft.id})
    return await _insert(tx, thread_id, own, parent_seq=parent_seq, seq=seq)


def _sibling_id(draft: Draft, parent_seq: int) -> str:
    """The id of an entry that says what `draft` says behind `parent_seq`: the same each time it is asked for."""
    calls = json.loads(dump([call.to_json() for call in draft.tool_calls]))
    payload = None if draft.full_payload is None else draft.full_payload.hex()
    content = [draft.id, parent_seq, draft.role, draft.text, draft.tool_call_id, draft.name, payload, calls]
    return str(uuid.uuid5(_SIBLINGS, json.dumps(content, ensure_ascii=False, sort_keys=True)))


async def _insert(tx: Transaction, thread_id: str, draft: Draft, *, parent_seq: int, seq: int) -> Entry:
    values = entry_row(thread_id, draft, parent_seq=parent_seq, seq=seq, at=now())
    await tx.run("insert_entry", **values)
    return entry_of(values)


async def find_entry(tx: Transaction, thread_id: str, entry_id: str) -> Entry:
    """One entry.

    Raises:
        EntryNotFound: the thread has no such entry.
    """
    row = await one(tx, "select_entry", thread_id=thread_id, id=entry_id)
    if row is None:
        raise EntryNotFound(thread=thread_id, entry=entry_id)
    return entry_of(row)


async def branch(tx: Transaction, thread_id: str, tip: int, *, limit: int = 200) -> list[Entry]:
    """The last `limit` entries of the branch that ends in `tip`, oldest first. Costs the same however long it is.

    Raises:
        EntryNotFound: the thread has no entry `tip`.
        RowDamaged: it must have had it, or an entry before it, and it is gone.
    """
    found: list[Row] = []
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
                raise damaged(f"entry {wanted} of thread {thread_id}", "it is gone, and was not deleted by retention")
            raise EntryNotFound(thread=thread_id, entry=wanted)
        for row in rows:
            if row["seq"] == wanted:
                found.append(row)
                wanted = parent_of(row)
    return entries_of(found[::-1])


async def entries_between(tx: Transaction, thread_id: str, first: int, last: int) -> list[Entry]:
    """The entries with `first` <= seq <= `last`, whatever their branch."""
    rows = await tx.fetch("select_entries_range", thread_id=thread_id, first=first, last=last)
    return entries_of(rows)


async def entries_at(tx: Transaction, thread_id: str, seqs: Collection[int]) -> dict[int, Entry]:
    """Those of the entries with these numbers that the thread has, whatever their branch, by number."""
    rows = await tx.fetch("select_entries_at", thread_id=thread_id, seqs=json.dumps(sorted(seqs)))
    return {int(row["seq"]): entry_of(row) for row in rows}


async def find_entries(tx: Transaction, thread_id: str, ids: Sequence[str]) -> dict[str, Entry]:
    """Those of the entries `ids` that the thread has, by id."""
    found: dict[str, Entry] = {}
    for entry_id in ids:
        row = await one(tx, "select_entry", thread_id=thread_id, id=entry_id)
        if row is not None:
            found[entry_id] = entry_of(row)
    return found


async def count_entries(tx: Transaction, thread_id: str) -> int:
    """How many entries a thread has, on all its branches."""
    [row] = await tx.fetch("count_entries", thread_id=thread_id)
    return int(row["entries"])


async def expect_no_entries(tx: Transaction, thread_id: str, ids: Sequence[str]) -> None:
    """Go on only if the thread has none of the entries `ids`. See `Transaction.expect`."""
    for entry_id in ids:
        await tx.expect("select_entry_seq", 0, thread_id=thread_id, id=entry_id)
