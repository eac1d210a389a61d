"""Leases: whether a process executes a run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.run_rows import text_of, time_of

IsAlive = Callable[[str], bool]
"""Whether an owner may be at work. False only if that is certain."""
FURTHEST = timedelta(hours=1)
"""A lease that ends later is invalid: leases last seconds, and clocks differ by less."""


def is_held(row: Row, alive: IsAlive) -> bool:
    """Return whether a process executes a row's run. Values that other programs wrote are no leases."""
    owner, until, at = row["owner"], str(row["lease_until"]), now()
    return bool(owner) and at < until <= text_of(time_of(at) + FURTHEST) and alive(str(owner))


async def executed(tx: Transaction, thread_id: str, *, alive: IsAlive) -> str | None:
    """Return the id of the thread's running run, without reading the rest of it."""
    row = await one(tx, "select_live_run", thread_id=thread_id)
    return str(row["id"]) if row is not None and is_held(row, alive) else None


def left(row: Row) -> dict[str, Any]:
    """Return a run's row without its lease, for another store."""
    return {**row, "owner": None, "lease_until": None} if row["status"] == "running" else {**row}
