"""Which checkpoints a listing finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

from longthread.langgraph.saver.parent_ids import named
from longthread.store import checkpoints
from longthread.store.checkpoints import LAST, CheckpointFilter, CheckpointRow
from longthread.store.driver import Transaction


def where_of(config: RunnableConfig | None, before: RunnableConfig | None, *, user_id: str) -> CheckpointFilter:
    at = config["configurable"] if config else {}
    thread_id = at.get("thread_id")
    last = named(before) if before else None
    thread_id = str(thread_id) if thread_id is not None else None
    return CheckpointFilter(user_id, thread_id, at.get("checkpoint_ns"), last or LAST)


async def page(
    tx: Transaction, where: CheckpointFilter, wanted: str | None, after: CheckpointRow | None, limit: int
) -> list[CheckpointRow]:
    """Return the next rows of a listing; with `wanted`, only that checkpoint."""
    if not wanted or where.thread_id is None or where.ns is None:
        return await checkpoints.page(tx, where, after, limit=limit)
    known = await checkpoints.lock(tx, where.thread_id, user_id=where.user_id) is not None and after is None
    row = await checkpoints.find(tx, where.thread_id, where.ns, wanted) if known else None
    return [row] if row is not None and row.id < where.before else []


def is_wanted(
    row: CheckpointRow, where: CheckpointFilter, wanted: str | None, filter_: Mapping[str, Any] | None
) -> bool:
    if (where.ns is not None and row.ns != where.ns) or (wanted and row.id != wanted):
        return False
    if not filter_:
        return True
    metadata = row.about
    return all(metadata.get(key) == value for key, value in filter_.items())
