"""What a server was asked for before anybody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from longthread.store.driver import Row


class Ahead:
    """Rows of statements that are on their way, or have come and were not fetched yet. As long as some are on their
    way, their connection is in use."""

    def __init__(self) -> None:
        self._statements: Sequence[bytes] = ()
        self._coming: asyncio.Task[list[list[Row]]] | None = None
        self._found: dict[bytes, list[Row]] = {}

    def __bool__(self) -> bool:
        """Whether there are some."""
        return self._coming is not None or bool(self._found)

    async def send(self, statements: Sequence[bytes], finding: Coroutine[Any, Any, list[list[Row]]]) -> None:
        """Have the rows of statements found, a list for each."""
        self._statements, self._coming = statements, asyncio.ensure_future(finding)
        await asyncio.sleep(0)  # by then it is sent

    async def arrive(self) -> None:
        """Wait for what is on its way.

        Raises:
            Exception: what finding it raised.
        """
        if self._coming is not None:
            coming, self._coming = self._coming, None
            self._found |= zip(self._statements, await coming, strict=True)

    async def rows_of(self, statement: bytes) -> list[Row] | None:
        """The rows of a statement, once; None where they were not asked for. The connection is free then, unless they
        had come before."""
        if statement not in self._found:
            await self.arrive()
        return self._found.pop(statement, None)

    async def forget(self) -> None:
        """Wait for nothing more, and end what is on its way."""
        self._found = {}
        if self._coming is not None:
            coming, self._coming = self._coming, None
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
