"""Threads to find things in."""

from __future__ import annotations

from collections.abc import Sequence

from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.driver import Driver


async def say(
    store: Driver, texts: Sequence[str], *, thread_id: str = "t", user_id: str = "u", parent: int | None = None
) -> None:
    """Add entries to a thread, which is made when it is not there."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        _, size = await log.position(tx, thread_id)
        drafts = [
            Draft(f"{thread_id}-{number}", "assistant" if number % 2 else "user", text)
            for number, text in enumerate(texts, size)
        ]
        await log.extend(tx, thread_id, drafts, parent=parent)
