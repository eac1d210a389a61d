"""Conversations that are deleted after a while, unless that is undone."""

from __future__ import annotations

from contextlib import suppress

from longthread.errors import NothingToStop, RowDamaged, ThreadNotFound
from longthread.runs.services.runs import Runs
from longthread.runs.services.shared import RunServices
from longthread.runs.services.threads import Threads
from longthread.store import runs
from longthread.store.maintenance import deletions
from longthread.store.maintenance.deletions import PendingDeletion


class ThreadDeletions:
    """Deletes threads so that it can be undone for a while."""

    def __init__(self, services: RunServices, threads: Threads, all_runs: Runs) -> None:
        self._services = services
        self._threads = threads
        self._runs = all_runs

    async def begin(self, thread_id: str, *, user_id: str, seconds: float) -> PendingDeletion:
        """Take a thread from its user, with those below it, and delete them in so many seconds. A run that is executed
        is stopped; one that waits for a person goes on waiting, and so do queued questions.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        store = self._services.store
        async with store.writing() as tx:
            pending = await deletions.begin(tx, thread_id, user_id=user_id, seconds=seconds)
        # Now that it is nobody's, no other run begins. One that cannot be read has nothing to stop.
        with suppress(NothingToStop, RowDamaged, ThreadNotFound):
            async with store.reading() as tx:
                run = await runs.last_run(tx, thread_id)
            if run is not None and run.status == "running":
                await self._runs.stop(thread_id, user_id=pending.nobody, run_id=run.id, by=user_id)
        self._services.hub.list_changed(user_id)
        return pending

    async def undo(self, thread_id: str, *, user_id: str) -> None:
        """Give a thread back, as it was.

        Raises:
            ThreadNotFound: it is deleted already, or was never to be, or is another user's.
        """
        async with self._services.store.writing() as tx:
            await deletions.undo(tx, thread_id, user_id=user_id)
        self._services.hub.list_changed(user_id)
        self._runs.wake_queue()

    async def end(self, thread_id: str) -> None:
        """Delete a thread whose time to undo that is over; nothing if it was undone."""
        with suppress(ThreadNotFound):
            await self._threads.end_deletion(thread_id)
