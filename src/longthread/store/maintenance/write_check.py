"""Whether a store can be written: it may be read while its disk is full, its file or server read-only, or a standby."""

from __future__ import annotations

import asyncio
import time

from longthread.errors import StoreBusy, StoreError
from longthread.model.ids import new_id
from longthread.store import leases
from longthread.store.driver import Driver

FRESH_SECONDS = 2.0
"""So long one look serves all who ask."""
_MOST_SECONDS = 5.0


class WriteCheck:
    """Writes a row and deletes it, in one transaction that is committed; at most every two seconds."""

    def __init__(self, store: Driver) -> None:
        self._store = store
        self._looking = asyncio.Lock()
        self._found: tuple[float, StoreError | None] | None = None

    async def expect(self) -> None:
        """Raise StoreError, which says why, if nothing can be written now."""
        async with self._looking:
            if self._found is None or time.monotonic() - self._found[0] > FRESH_SECONDS:
                self._found = time.monotonic(), await self._problem()
            problem = self._found[1]
        if problem is not None:
            raise problem

    async def _problem(self) -> StoreError | None:
        mark = f"ready/{new_id()}"
        try:
            async with asyncio.timeout(_MOST_SECONDS), self._store.writing() as tx:
                await leases.register(tx, mark)
                await leases.remove(tx, mark)
        except TimeoutError:
            return StoreBusy(seconds=f"{_MOST_SECONDS:g}")
        except StoreError as error:
            return error
        return None
