"""Queries that are sent before anybody waits for their rows."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from longthread.store.driver import Row


class Ahead:
    """Prefetched rows, in flight or unread. While any are in flight, their connection is in use."""

    def __init__(self) -> None:
        self._statements: Sequence[bytes] = ()
        self._coming: asyncio.Task[list[list[Row]]] | None = None
        self._found: dict[bytes, list[Row]] = {}

    def __bool__(self) -> bool:
        return self._coming is not None or bool(self._found)

    async def send(self, statements: Sequence[bytes], finding: Coroutine[Any, Any, list[list[Row]]]) -> None:
        """Start to fetch: `finding` returns one list of rows per statement."""
        self._statements, self._coming = statements, asyncio.ensure_future(finding)
        await asyncio.sleep(0)  # by then it is sent

    async def arrive(self) -> None:
        """Wait for rows in flight. Raises whatever fetching raised."""
        if self._coming is not None:
            coming, self._coming = self._coming, None
            self._found |= zip(self._statements, await coming, strict=True)

    async def rows_of(self, statement: bytes) -> list[Row] | None:
        """Take a statement's rows, once; None if it was not prefetched. Waits for rows in flight."""
        if statement not in self._found:
            await self.arrive()
        return self._found.pop(statement, None)

    async def forget(self) -> None:
        """Drop all rows, and cancel what is in flight."""
        self._found = {}
        if self._coming is not None:
            coming, self._coming = self._coming, None
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
