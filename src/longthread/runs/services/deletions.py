"""Conversations that are deleted after a while, unless that is undone."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from longthread.access import audit
from longthread.errors import NothingToStop, RowDamaged, StoreClosed, StoreError, ThreadNotFound
from longthread.runs.services.runs import Runs
from longthread.runs.services.threads import Threads
from longthread.runs.shared import RunServices
from longthread.store import runs
from longthread.store.maintenance import deletions
from longthread.store.maintenance.deletions import PendingDeletion
from longthread.store.maintenance.jobs import Job

_AGAIN_SECONDS = 1.0


class ThreadDeletions:
    """Deletes threads so that it can be undone for a while."""

    def __init__(self, services: RunServices, threads: Threads, all_runs: Runs) -> None:
        self._services = services
        self._threads = threads
        self._runs = all_runs
        self._timers: dict[str, asyncio.Task[None]] = {}

    async def begin(
        self, thread_id: str, *, user_id: str, seconds: float, with_memories: bool = False
    ) -> PendingDeletion:
        """Take a thread from its user, with those below it, and delete them in so many seconds. A run that is executed
        is stopped; one that waits for a person goes on waiting, and so do queued questions. What was remembered from
        them stays, unless `with_memories`.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        store, worker = self._services.store, self._services.worker
        owner = await worker.id() if worker.watches else None
        async with store.writing() as tx:
            pending = await deletions.begin(
                tx, thread_id, user_id=user_id, seconds=seconds, with_memories=with_memories, owner=owner
            )
            await audit.note(tx, "conversation.delete", thread_id)
        if owner is not None:
            self._set_timer(thread_id, owner, seconds)
        # Now that no user owns it, no other run begins. One that cannot be read has nothing to stop.
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
        self._cancel_timer(thread_id)
        self._services.hub.list_changed(user_id)
        self._runs.wake_queue()

    async def end(self, thread_id: str) -> None:
        """Delete a thread whose time to undo that is over; nothing if it was undone."""
        with suppress(ThreadNotFound):
            await self._threads.end_deletion(thread_id)

    async def close(self) -> None:
        """Leave what is still to be deleted to others, at the time that is stored."""
        timers = list(self._timers.values())
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)

    def _set_timer(self, thread_id: str, owner: str, seconds: float) -> None:
        """Measure the time to undo by the loop's clock: that of the wall may be set meanwhile."""
        self._cancel_timer(thread_id)
        waiting = self._give_back(Job("deletion", thread_id), owner, seconds)
        self._timers[thread_id] = asyncio.get_running_loop().create_task(waiting, name=f"the time to undo {thread_id}")

    def _cancel_timer(self, thread_id: str) -> None:
        if (timer := self._timers.pop(thread_id, None)) is not None:
            timer.cancel()

    async def _give_back(self, job: Job, owner: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        while True:
            try:
                async with self._services.store.writing() as tx:
                    await job.give_back(tx, owner)
                break
            except StoreClosed:
                break
            except StoreError:  # it comes back, or this process ends
                await asyncio.sleep(_AGAIN_SECONDS)
        self._timers.pop(job.subject, None)
        self._services.worker.wake_claims()
