"""The threads of a store: find one, read its state, delete it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from longthread.context.window_cache import WindowCache
from longthread.errors import ThreadNotFound
from longthread.memory.background import Background
from longthread.memory.forget import Forgotten, delete_thread, end_deletion
from longthread.model.fold import state_of
from longthread.model.ids import new_id
from longthread.model.thread import Thread
from longthread.runs.workers.worker import RunWorker
from longthread.store import log, summaries
from longthread.store.driver import Driver
from longthread.store.maintenance.scrub import scrub

_logger = logging.getLogger(__name__)


class Threads:
    """Finds, reads and deletes threads."""

    def __init__(self, store: Driver, window_cache: WindowCache, worker: RunWorker) -> None:
        self._store = store
        self._worker = worker
        self._window_cache = window_cache
        self._background = Background()

    async def find(self, thread_id: str, *, user_id: str) -> Thread:
        """Return a thread's metadata.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            return await log.find_thread(tx, thread_id, user_id=user_id)

    async def find_existing(self, thread_id: str | None, *, user_id: str) -> Thread | None:
        """Return a thread's metadata; None if the user has no such thread."""
        if thread_id is not None:
            with suppress(ThreadNotFound):
                return await self.find(thread_id, user_id=user_id)
        return None

    async def state(self, thread_id: str, *, user_id: str) -> dict[str, Any]:
        """Return the thread's state with document 000's fields, computed from all entries of its active branch.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))
            compressed = await summaries.compressed(tx, thread_id)
        return state_of(entries, compressed)

    async def delete(self, thread_id: str, *, user_id: str, with_memories: bool = False) -> Forgotten:
        """Delete a thread, those below it, and all data about them. Whoever executes a run of theirs breaks it off. A
        background task clears the store's files. What was remembered from them stays, unless `with_memories`.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        return self._cleared(await delete_thread(self._store, thread_id, user_id=user_id, with_memories=with_memories))

    async def end_deletion(self, thread_id: str) -> Forgotten:
        """Delete a thread whose time to undo that is over, as `delete` does.

        Raises:
            ThreadNotFound: it was undone.
        """
        return self._cleared(await end_deletion(self._store, thread_id))

    def _cleared(self, gone: Forgotten) -> Forgotten:
        for each in gone.ids:
            self._worker.lose_thread(each)
            self._window_cache.forget(each)

        async def clear() -> None:
            for problem in await scrub(self._store, gone.tables):
                _logger.info("After the deletion of a thread: %s", problem)

        self._background.start(f"clear {new_id()}", clear, failing="A deleted thread could not be cleared")
        return gone

    async def settle(self) -> None:
        """Wait until the files are cleared of deleted threads."""
        await self._background.settle()

    async def close(self) -> None:
        await self._background.close()
