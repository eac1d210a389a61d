"""Deletions: of threads, which can be undone for a while, and of single messages.

Until its time comes, a placeholder user owns a thread that is to be deleted, along with the threads below it. So it is
in no list and no index of its user's, and no access by its id finds it. A background job deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from longthread.errors import InvalidInput, ThreadNotFound
from longthread.model.entry import Entry
from longthread.model.thread import title_of
from longthread.store import incarnation, log, memories, summaries
from longthread.store.driver import Transaction, one
from longthread.store.index import recall
from longthread.store.index.vectors import BLOCK
from longthread.store.maintenance.jobs import Job

_NOBODY = "\x7fnobody/"
"""The prefix of the placeholder users that own threads meanwhile. It has a character that no user's name has."""


@dataclass(frozen=True, slots=True)
class PendingDeletion:
    """A thread that is deleted at `at`. Until then a placeholder user owns it."""

    thread_id: str
    nobody: str
    """The placeholder user."""
    at: datetime


@dataclass(frozen=True, slots=True)
class RestoredThread:
    """A thread that was given back to its user. `with_memories`: what was remembered from it was to be deleted too."""

    user_id: str
    with_memories: bool


async def begin(
    tx: Transaction,
    thread_id: str,
    *,
    user_id: str,
    seconds: float,
    with_memories: bool = False,
    owner: str | None = None,
) -> PendingDeletion:
    """Take a thread, and those below it, from their user. `with_memories` is kept for `log.delete_thread`. The worker
    `owner` measures the time. Raises `ThreadNotFound`."""
    await log.lock(tx, thread_id)
    await log.find_row(tx, thread_id, user_id=user_id)
    nobody = f"{_NOBODY}{thread_id}"
    for each in [thread_id, *await log.threads_below(tx, thread_id, user_id=user_id)]:
        await log.lock(tx, each)
        row = {"thread_id": each, "root": thread_id, "user_id": user_id, "with_memories": with_memories}
        await tx.run("insert_pending_deletion", **row)
        await tx.run("own_thread", id=each, user_id=nobody)
    await Job("deletion", thread_id).note(tx, seconds, owner)
    return PendingDeletion(thread_id, nobody, datetime.now(UTC) + timedelta(seconds=seconds))


async def undo(tx: Transaction, thread_id: str, *, user_id: str | None = None) -> RestoredThread:
    """Give a thread back, with those below it. If the one above it is to be deleted itself, this one stands on its own
    from now on. Raises `ThreadNotFound` if it is not to be deleted, or another one's than `user_id`."""
    await log.lock(tx, thread_id)
    found = await tx.fetch("select_pending_deletion", root=thread_id)
    owners = {str(row["user_id"]) for row in found}
    if not found or (user_id is not None and owners != {user_id}):
        raise ThreadNotFound(thread=thread_id)
    for row in found:
        await log.lock(tx, row["thread_id"])
        await tx.run("own_thread", id=row["thread_id"], user_id=row["user_id"])
    await tx.run("detach_from_deleted", id=thread_id)
    await tx.run("delete_pending_deletion", root=thread_id)
    await Job("deletion", thread_id).call_off(tx)
    return RestoredThread(owners.pop(), bool(found[0]["with_memories"]))


async def of_user(tx: Transaction, user_id: str) -> list[str]:
    """Return the threads that a user has deleted, and may have back."""
    return [row["root"] for row in await tx.fetch("select_pending_deletions_of_user", user_id=user_id)]


async def note_all(tx: Transaction) -> None:
    """Note the jobs of deletions that have none: a copy takes no jobs along."""
    for row in await tx.fetch("select_deletions_without_job", kind="deletion"):
        await Job("deletion", row["root"]).note(tx)


_TITLED = 32
"""In so many messages at the beginning of what stays another title is looked for."""


async def expect_free(tx: Transaction, thread_id: str) -> None:
    """Raise InvalidInput if runs or the gateway refer to a thread's entries."""
    row = await one(tx, "select_whose", thread_id=thread_id)
    if row is not None and row["referred"]:
        raise InvalidInput(
            reason=f"Thread {thread_id} has runs of Longthread's own agents or calls of the gateway, which hold what "
            "its messages say. Forget the whole thread: `longthread forget --thread`."
        )


async def delete_entries(tx: Transaction, thread_id: str, user_id: str, entries: Sequence[Entry]) -> None:
    """Delete entries with all of their versions: from the log, index, vectors, summary, topics, title and memories.

    What followed them follows what stood before them. The caller has locked the thread in this transaction. All that
    others have read of the thread is invalid afterwards.
    """
    seqs = sorted(entry.seq for entry in entries)
    parents = {entry.seq: entry.parent_seq for entry in entries}
    asked = {"thread_id": thread_id, "seqs": json.dumps(seqs)}
    await memories.forget_said(tx, thread_id, seqs)
    await _from_summary(tx, thread_id, seqs, parents)
    children = await tx.fetch("select_children_of_entries", **asked)
    moved = [
        {"thread_id": thread_id, "seq": row["seq"], "parent": _left(int(row["parent_seq"]), parents)}
        for row in children
        if row["seq"] not in parents
    ]
    await tx.run_all("move_entry", moved)
    for query in ("forget_entries", "forget_message_metadata", "forget_vectors"):
        await tx.run(query, **asked)
    await tx.run("forget_fold", thread_id=thread_id)
    await _from_index(tx, thread_id, user_id, seqs)
    await _end(tx, thread_id, user_id, entries, parents)
    await incarnation.begin_again(tx, thread_id)


def _left(seq: int, parents: Mapping[int, int]) -> int:
    """Return an entry, or the nearest one before it that stays."""
    while seq in parents:
        seq = parents[seq]
    return seq


async def _from_summary(tx: Transaction, thread_id: str, seqs: Sequence[int], parents: Mapping[int, int]) -> None:
    await summaries.outdate(tx, thread_id, seqs[0], prompt=True)
    for seq in seqs:
        if mark := _left(seq, parents):
            await tx.run("move_mark", thread_id=thread_id, seq=seq, to=mark)
    found = await summaries.find_thread(tx, thread_id)
    if found is not None and found.kept is not None and found.kept.last_seq in parents:
        await summaries.drop(tx, thread_id)  # nothing is left that it could tell of


async def _from_index(tx: Transaction, thread_id: str, user_id: str, seqs: Sequence[int]) -> None:
    for extent in await recall.extents(tx, thread_id):
        if any(extent.first <= seq <= extent.last for seq in seqs):
            await recall.delete_segments(tx, thread_id, extent.first, extent.first)
    blocks = json.dumps(sorted({seq // BLOCK for seq in seqs}))
    await tx.run("forget_signatures", thread_id=thread_id, blocks=blocks)
    await tx.run("unsign_embedded", thread_id=thread_id)
    volumes = [each.volume for each in await recall.bindable(tx, user_id, [thread_id]) if each.volume is not None]
    await recall.delete_volumes(tx, user_id, volumes)


async def _end(
    tx: Transaction, thread_id: str, user_id: str, entries: Sequence[Entry], parents: Mapping[int, int]
) -> None:
    """Move the tip where it was deleted, and take the title from what is left where it was taken from an entry."""
    thread = await log.find_thread(tx, thread_id, user_id=user_id)
    tip, title = _left(thread.tip, parents), thread.title
    if title in {title_of(entry.text) for entry in entries if entry.role == "user"}:
        left = await log.entries_between(tx, thread_id, thread.first_seq, entries[0].seq + _TITLED)
        asked = (title_of(entry.text) for entry in left if entry.role == "user" and entry.text.strip())
        title = next(asked, None)
    await tx.run("forget_tip", thread_id=thread_id, tip=tip, title=title)
