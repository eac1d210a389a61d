"""Deletion of expired threads, at once or in the background of a server."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from longthread.errors import RowDamaged, StoreError
from longthread.store import log
from longthread.store.driver import Driver, Transaction, one
from longthread.store.leases import executed
from longthread.store.maintenance.retention import KEEP, RetentionPlan, RetentionPolicy, plan_whole

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Expired:
    """How many threads were deleted, with those below them. `busy` ones stay because a run is under way, and `damaged`
    ones because they cannot be read, each with the reason."""

    threads: int = 0
    busy: int = 0
    damaged: dict[str, str] = field(default_factory=dict)


async def expire(store: Driver, *, user_id: str | None = None, with_memories: bool = False) -> Expired:
    """Delete the threads whose `expires_at` is past, of one user or of all, each in a transaction of its own.

    What was remembered from them stays, unless `with_memories`. It looks at no other threads. A thread below another
    one stays with that. Raises `StoreError`: earlier deletions are committed.
    """
    found = Expired()
    policy = RetentionPolicy(now=log.now(), with_memories=with_memories)
    async with store.reading() as tx:
        ids = [row["id"] for row in await tx.fetch("select_expired_threads", now=policy.now, user_id=user_id)]
    for thread_id in ids:
        try:
            async with store.writing() as tx:
                plan = await _plan(tx, thread_id, policy)
                if plan is not None and plan.whole:
                    [thread] = await tx.fetch("select_retention", id=thread_id)
                    await log.delete_thread(tx, thread_id, user_id=thread["user_id"], with_memories=with_memories)
        except RowDamaged as error:
            found.damaged[thread_id] = error.reason
            continue
        found.busy += plan is None
        found.threads += 1 + len(plan.below) if plan is not None and plan.whole else 0
    return found


async def _plan(tx: Transaction, thread_id: str, policy: RetentionPolicy) -> RetentionPlan | None:
    # Lock first, then look: a run that begins now waits, and one that has begun is seen.
    if not await tx.fetch("select_position", id=thread_id):
        return KEEP
    if await executed(tx, thread_id, alive=may_be_alive):
        return None
    thread = await one(tx, "select_retention", id=thread_id)
    return KEEP if thread is None else await plan_whole(tx, thread_id, thread, policy, may_be_alive)


def may_be_alive(owner: str) -> bool:
    """Believe a lease: one of a dead process ends within seconds, and the next pass deletes its thread."""
    return True


async def expire_states(driver: Driver, interval: float) -> None:
    """Delete expired threads every `interval` seconds, until it is cancelled. A pass that fails is logged."""
    while True:
        try:
            found = await expire(driver)
            if found.threads:
                _log.info("deleted %d expired conversations", found.threads)
        except StoreError as error:
            _log.warning("expired conversations stay until the next pass: %s", error)
        await asyncio.sleep(interval)
