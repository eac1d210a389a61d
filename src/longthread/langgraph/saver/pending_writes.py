"""What tasks have written, on its way into the transaction of the checkpoint behind it."""

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
        """Tell whoever waits for it how it ended, unless that is told already."""
        with suppress(asyncio.InvalidStateError):
            self._stored.set_result(stored)

    def refuse(self, error: Exception) -> None:
        """Tell whoever waits for it why it is not stored."""
        self._stored.set_exception(error)

    async def ended(self) -> bool:
        """Whether it was stored, once that is known."""
        return await self._stored


class PendingWrites:
    """Writes that were handed in in this turn of the event loop.

    LangGraph hands in what a task has written and the checkpoint behind it in the same turn, each in a task of the
    loop's own. So the writes wait for the end of the turn, and one transaction stores both. Where no checkpoint comes
    (another task still runs, or one was interrupted) they are stored alone.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Pending]] = {}

    async def are_taken(self, key: Key, given: WritesRequest) -> bool:
        """Wait for the end of the turn, and for the put that has taken the writes, if one has; whether they are stored.

        Raises:
            LongthreadError: the put was told why they cannot be.
        """
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
        """What waits for a checkpoint that goes on from this one. Whoever takes it settles it."""
        return self._waiting.pop(key, [])

    def _is_withdrawn(self, key: Key, pending: Pending) -> bool:
        waiting = self._waiting.get(key, [])
        if pending not in waiting:
            return False
        waiting.remove(pending)
        if not waiting:
            del self._waiting[key]
        return True
