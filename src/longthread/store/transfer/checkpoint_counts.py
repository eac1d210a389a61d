"""What an export to LangGraph's savers asks of the store: whose threads it has, and how much is in each."""

from __future__ import annotations

import json
from dataclasses import dataclass

from longthread.model.entry import SENT_ID
from longthread.store.driver import Transaction


@dataclass(frozen=True, slots=True)
class ThreadCount:
    """How many entries and checkpoints a thread has."""

    thread_id: str
    entries: int
    checkpoints: int


async def counts(tx: Transaction, user_id: str) -> list[ThreadCount]:
    """Count the entries and checkpoints of each of a user's threads."""
    rows = await tx.fetch("count_checkpoints_of_threads", user_id=user_id)
    return [ThreadCount(row["id"], int(row["entries"]), int(row["checkpoints"])) for row in rows]


async def users(tx: Transaction) -> list[str]:
    """Return the users who have threads with checkpoints, or items."""
    return [row["user_id"] for row in await tx.fetch("select_users_of_langgraph")]


async def sent_ids(tx: Transaction, thread_id: str) -> list[str]:
    """Return the id of each message in a thread's log, as its sender gave it."""
    rows = await tx.fetch("select_sent_ids", thread_id=thread_id)
    return [str(json.loads(row["metadata"] or "{}").get(SENT_ID, row["id"])) for row in rows]
