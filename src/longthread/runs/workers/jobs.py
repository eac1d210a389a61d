"""A server does the background jobs that come due, and those that other processes left: dead ones, stopped ones, and
those that failed."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from longthread.errors import LongthreadError, StoreClosed, StoreError
from longthread.memory.embedders.embedder import EmbedderFailed
from longthread.runs.services.boards import Boards
from longthread.runs.services.deletions import ThreadDeletions
from longthread.runs.services.runs import Runs
from longthread.runs.services.shared import RunServices
from longthread.store.boards import boards as board_store
from longthread.store.maintenance import deletions, jobs
from longthread.store.maintenance.jobs import Job, JobKind

_AT_ONCE = 4
"""So many jobs of others are done at once: each may ask a model."""

_logger = logging.getLogger(__name__)


class WaitingJobs:
    """Does waiting jobs until it is closed. It looks when it is woken."""

    def __init__(self, services: RunServices, runs: Runs, deletions: ThreadDeletions, boards: Boards) -> None:
        self._services = services
        self._runs = runs
        self._deletions = deletions
        self._boards = boards
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._loop: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()

    def start(self) -> None:
        """Begin, with what is found to be left."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop().create_task(self._do_all(), name="the jobs that others left")

    def wake(self) -> None:
        """Look for waiting jobs."""
        self._woken.set()

    async def close(self) -> None:
        """Begin no more jobs, and give back those under way."""
        loop, self._loop = self._loop, None
        tasks = [*([loop] if loop is not None else []), *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _do_all(self) -> None:
        noted = False
        while True:
            self._woken.clear()
            try:
                if not noted:
                    await jobs.note_unwritten(self._services.store)
                    async with self._services.store.writing() as tx:
                        await deletions.note_all(tx)
                        await board_store.note_schedules(tx)
                    noted = True
                await self._begin_some()
            except StoreError as error:
                _logger.warning("Background jobs could not be looked for; trying again: %s", error)
            await self._woken.wait()

    async def _begin_some(self) -> None:
        free = _AT_ONCE - len(self._tasks)
        if free <= 0:
            return
        async with self._services.store.reading() as tx:
            found = await jobs.waiting(tx, self._kinds(), limit=_AT_ONCE)
        for job in [each for each in found if each not in self._tasks][:free]:
            self._tasks[job] = task = asyncio.get_running_loop().create_task(self._take(job), name=f"job {job.kind}")
            task.add_done_callback(partial(self._ended, job))

    def _ended(self, job: Job, task: asyncio.Task[None]) -> None:
        del self._tasks[job]
        if task.cancelled() or (error := task.exception()) is None or isinstance(error, StoreClosed):
            return  # a store is closed when the server ends; another one does it
        is_known = isinstance(error, LongthreadError | EmbedderFailed)
        level = logging.WARNING if is_known else logging.ERROR
        _logger.log(
            level, "A job (%s) failed, and is tried again later: %s", job, error, exc_info=None if is_known else error
        )

    def _kinds(self) -> list[JobKind]:
        """What this process can do now: vectors only with an embedder that works."""
        embeds = self._services.recaller.asker.may_make()
        return [kind for kind in jobs.CLAIMED_BY_SERVERS if kind in {"deletion", "summary", "board"} or embeds]

    async def _take(self, job: Job) -> None:
        async with self._services.jobs.claimed(job) as ours:
            if ours:
                await self._do(job)

    async def _do(self, job: Job) -> None:
        services = self._services
        if job.kind == "deletion":
            await self._deletions.end(job.subject)
        elif job.kind == "summary":
            await services.pruner.make_up(job.subject, await self._runs.summarizer(job.subject))
        elif job.kind == "vectors":
            await services.recaller.make_up(job.subject)
        elif job.kind == "memories":
            await services.memories.make_up(job.subject)
        elif job.kind == "board":
            await self._boards.refresh_if_due(job.subject)
