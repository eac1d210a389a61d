"""Deletions that can be undone for a while.

Until its time comes, a placeholder user owns a thread that is to be deleted, along with the threads below it. So it is
in no list and no index of its user's, and no access by its id finds it. A background job deletes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from longthread.errors import ThreadNotFound
from longthread.store import log
from longthread.store.driver import Transaction
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
