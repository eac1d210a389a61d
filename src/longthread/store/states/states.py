"""Conversation states (document 003): a state is a thread, with `thread_clients` and `threads.expires_at`.

Nothing is overwritten: messages after the stored ones are appended, and a history that differs becomes a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.errors import InvalidInput, RunInProgress, ThreadNotFound, ThreadTaken
from longthread.store import log
from longthread.store.driver import Row, Transaction, one
from longthread.store.leases import executed
from longthread.store.rows import moment_of, of_thread
from longthread.store.states.history import drafts_after, history_of, same, title_of

CLIENT_TYPES = ("cursor", "augment", "claude_code", "unknown")
"""The kinds of clients that the document names."""


def expiry(ttl_seconds: float | None) -> str | None:
    """Return the time that a state expires, as stored; None: never. Raises `InvalidInput` if it is after year 9999."""
    if ttl_seconds is None:
        return None
    try:
        ends = datetime.fromisoformat(log.now()) + timedelta(seconds=ttl_seconds)
        return ends.astimezone(UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError) as error:
        raise InvalidInput(reason=f"ttl_seconds={ttl_seconds} leads to no date: {error}.") from error


async def store_state(
    tx: Transaction,
    scid: str,
    history: Sequence[Any],
    *,
    user_id: str,
    client_type: str,
    signature: str | None,
    expires_at: str | None,
) -> None:
    """Store a state, or replace what there is of it; an expired one is deleted before. The access count goes on.

    Raises:
        RunInProgress: a run is being executed on the thread.
        ThreadTaken: it is another user's.
    """
    there = await _locked(tx, scid, user_id)
    if there is None or _is_over(there):
        if there is not None:
            await log.delete_thread(tx, scid, user_id=user_id)
        try:
            await log.create_thread(tx, scid, user_id=user_id)
        except ThreadNotFound:
            raise ThreadTaken(thread=scid) from None
        there = await _row(tx, scid)
    await _write_history(tx, scid, there, history)
    await tx.run("write_state", id=scid, user_id=user_id, expires_at=expires_at, now=log.now())
    await tx.run("write_client", id=scid, client_type=client_type, signature=signature)


async def update_state(
    tx: Transaction, scid: str, history: Sequence[Any], *, user_id: str, signature: str | None
) -> bool:
    """Change a state's history, and its signature if there is one; return whether there is such a state. Raises
    `RunInProgress`."""
    there = await _locked(tx, scid, user_id)
    if there is None or _is_over(there):
        return False
    await _write_history(tx, scid, there, history)
    await tx.run("write_state", id=scid, user_id=user_id, expires_at=there["expires_at"], now=log.now())
    if signature is not None:
        await tx.run("write_state_signature", id=scid, signature=signature)
    return True


async def read_state(tx: Transaction, scid: str, *, user_id: str, counts: bool = True) -> dict[str, Any] | None:
    """Return a state with the keys of the document; None if there is none. `counts`: it is an access."""
    if not await tx.fetch("select_position", id=scid):
        return None
    row = await _row(tx, scid)
    if row["user_id"] != user_id or _is_over(row):
        return None
    if counts:
        await tx.run("count_access", id=scid)
    return {
        "scid": scid,
        "client_type": row["client_type"] or "unknown",
        "authoritative_history": [message for message, _ in history_of(await _branch(tx, scid, row))],
        "last_signature": row["last_signature"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "expires_at": row["expires_at"],
        "access_count": int(row["access_count"] or 0) + counts,
    }


async def delete_state(tx: Transaction, scid: str, *, user_id: str) -> bool:
    """Delete a state with its thread; return whether there was one. Raises `RunInProgress`."""
    there = await _locked(tx, scid, user_id)
    if there is None or _is_over(there):
        return False
    await log.delete_thread(tx, scid, user_id=user_id)
    return True


async def _locked(tx: Transaction, scid: str, user_id: str) -> Row | None:
    """Lock a state's thread for writing; None if the user has none."""
    if not await tx.fetch("select_position", id=scid):
        return None
    row = await _row(tx, scid)
    if row["user_id"] != user_id:
        return None
    run = await executed(tx, scid, alive=lambda owner: True)
    if run is not None:
        raise RunInProgress(thread=scid, run=run)
    return row


async def _row(tx: Transaction, scid: str) -> Row:
    row = await one(tx, "select_state", id=scid)
    if row is None:
        raise ThreadNotFound(thread=scid)
    return row


def _is_over(row: Row) -> bool:
    return row["expires_at"] is not None and moment_of(row["expires_at"]) <= moment_of(log.now())


async def _branch(tx: Transaction, scid: str, row: Row) -> list[Any]:
    with of_thread(scid):
        tip, size = int(row["tip"]), int(row["entry_count"])
    return await log.branch(tx, scid, tip, limit=size)


async def _write_history(tx: Transaction, scid: str, row: Row, history: Sequence[Any]) -> None:
    """Make the active branch hold these messages: append, branch off, or go back to an earlier entry."""
    there = history_of(await _branch(tx, scid, row))
    common = 0
    for (message, _), given in zip(there, history, strict=False):
        if not same(message, given):
            break
        common += 1
    parent = there[common - 1][1] if common else None
    drafts = drafts_after(history[common:], parent.id if parent else "")
    tip, size = int(row["tip"]), int(row["entry_count"])
    start = parent.seq if parent else 0
    if start == tip == size:  # the thread ends here, so that nothing comes after it
        await log.append(tx, scid, drafts, tip=tip, size=size)
    elif drafts:
        await log.extend(tx, scid, drafts, parent=start)
    else:
        await log.set_tip(tx, scid, start)
    if not row["title"] and (title := title_of(drafts)):
        await log.rename_thread(tx, scid, title, user_id=row["user_id"])
