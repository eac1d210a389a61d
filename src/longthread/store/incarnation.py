"""An id for each thread. It changes when checkpoints are replaced or removed, since their numbers may be reused."""

from __future__ import annotations

from secrets import token_hex

from longthread.store.driver import Transaction, one

_RENEWED = "."
"""Separates the constant part from the last renewal."""
_CHANGED = "~"
"""Separates a thread's first part from the last time that a message of it was forgotten."""


def birth_id(incarnation: str) -> str:
    """Return the part that is constant for the thread's lifetime, or until a message of it is forgotten."""
    return incarnation.partition(_RENEWED)[0]


def renew_incarnation(incarnation: str) -> str:
    """Return a new incarnation of the same thread."""
    return f"{birth_id(incarnation)}{_RENEWED}{token_hex(6)}"


def is_cut(before: str, now: str) -> bool:
    """Whether two constant parts are one thread's, and a message was forgotten between them."""
    return before != now and before.partition(_CHANGED)[0] == now.partition(_CHANGED)[0]


async def find(tx: Transaction, thread_id: str) -> str | None:
    """Return a thread's incarnation; None if there is no such thread."""
    row = await one(tx, "select_incarnation", thread_id=thread_id)
    return str(row["incarnation"]) if row else None


async def renew(tx: Transaction, thread_id: str) -> str:
    """Invalidate caches of a locked thread's checkpoints; return the new incarnation."""
    found = await find(tx, thread_id)
    assert found is not None  # it is locked
    now = renew_incarnation(found)
    await tx.later("renew_thread", thread_id=thread_id, incarnation=now)
    return now


async def begin_again(tx: Transaction, thread_id: str) -> None:
    """Invalidate all that anybody has read of a locked thread: a message of it is forgotten."""
    found = await find(tx, thread_id)
    assert found is not None  # it is locked
    now = f"{found.partition(_RENEWED)[0].partition(_CHANGED)[0]}{_CHANGED}{token_hex(6)}"
    await tx.later("renew_thread", thread_id=thread_id, incarnation=now)
