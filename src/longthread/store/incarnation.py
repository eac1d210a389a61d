"""What tells a thread from a later one of the same id, and from itself before checkpoints were replaced or taken back.

Of such checkpoints, numbers and ids alone do not tell the one from the other.
"""

from __future__ import annotations

from secrets import token_hex

from longthread.store.driver import Transaction, one

_RENEWED = "."
"""Stands before what tells the last renewal."""


def born(incarnation: str) -> str:
    """What of it stays the same as long as the thread is there."""
    return incarnation.partition(_RENEWED)[0]


def renewed(incarnation: str) -> str:
    """Another one of the same thread."""
    return f"{born(incarnation)}{_RENEWED}{token_hex(6)}"


async def find(tx: Transaction, thread_id: str) -> str | None:
    """That of a thread; None where there is none."""
    row = await one(tx, "select_incarnation", thread_id=thread_id)
    return str(row["incarnation"]) if row else None


async def renew(tx: Transaction, thread_id: str) -> str:
    """Have whoever remembers checkpoints of a thread, which is locked, look at them anew; its incarnation then."""
    found = await find(tx, thread_id)
    assert found is not None  # it is locked
    now = renewed(found)
    await tx.later("renew_thread", thread_id=thread_id, incarnation=now)
    return now
