"""Task writes that wait for the transaction of the next checkpoint."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from longthread.langgraph.saver.put_request import WritesRequest
from longthread.store.completion import to_the_end

Key = tuple[str, str, str | None]
"""A thread, a namespace, and the checkpoint whose tasks have written."""


class Pending:
    """One task's writes, while a put may take them along."""

    def __init__(self, given: WritesRequest) -> None:
        self.given = given
        self._stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def settle(self, *, stored: bool) -> None:
        with suppress(asyncio.InvalidStateError):
            self._stored.set_result(stored)

    def refuse(self, error: Exception) -> None:
        self._stored.set_exception(error)

    async def ended(self) -> bool:
        """Wait for the result: whether it was stored."""
        return await self._stored


class PendingWrites:
    """Writes that were handed in in this turn of the event loop.

    LangGraph hands in a task's writes and the next checkpoint in the same turn, each in a task of the loop's own. So
    writes wait for the end of the turn, and one transaction stores both. Without a checkpoint (another task still runs,
    or one was interrupted) they are stored alone.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Pending]] = {}

    async def are_taken(self, key: Key, given: WritesRequest) -> bool:
        """Wait for the turn's end and a put that takes the writes; whether they are stored. Raises the put's error."""
        pending = Pending(given)
        self._waiting.setdefault(key, []).append(pending)
        stored = False
        try:
            await asyncio.sleep(0)
        finally:
            if not self._is_withdrawn(key, pending):
                stored = await to_the_end(pending.ended())
        return stored

    def take(self, key: Key) -> list[Pending]:
        """Remove and return the writes that wait for a checkpoint's child. The caller settles them."""
        return self._waiting.pop(key, [])

    def _is_withdrawn(self, key: Key, pending: Pending) -> bool:
        waiting = self._waiting.get(key, [])
        if pending not in waiting:
            return False
        waiting.remove(pending)
        if not waiting:
            del self._waiting[key]
        return True
