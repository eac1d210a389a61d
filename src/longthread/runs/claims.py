"""A server claims runs that no process executes, and continues them. It also claims background jobs that others left.

Jobs are left by processes that are dead, stopped, or that wait for a later time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from longthread.errors import LeaseLost, LongthreadError, RunCrashed, StoreClosed, StoreError, ThreadNotFound
from longthread.loop_bridge import to_the_end
from longthread.memory.embedder import EmbedderFailed
from longthread.metrics import CLAIMS
from longthread.runs.end_run import fail_run, stop_run
from longthread.runs.services.boards import Boards
from longthread.runs.services.deletions import ThreadDeletions
from longthread.runs.services.queue import begin_queued
from longthread.runs.services.runs import Runs
from longthread.runs.shared import RunServices
from longthread.runs.worker import Hold
from longthread.store import boards as board_store
from longthread.store import leases, log, wait_list
from longthread.store.leases import ClaimedRun
from longthread.store.maintenance import deletions, jobs
from longthread.store.maintenance.jobs import Job, JobKind
from longthread.store.wait_list import StartableQuestion

LOOK_SECONDS = 1.0
"""How often an idle server looks for runs to claim."""
MOST_CRASHES = 3
"""So many executions in a row that died without a finished step end a run."""
_AT_ONCE = 16
_logger = logging.getLogger(__name__)
_JOBS_AT_ONCE = 4
"""So many jobs of others are done at once: each may ask a model."""


class Claims:
    """Claims runs until it is closed: the runs of dead workers, and the runs that a worker gave back. It also begins
    the questions of the queue."""

    def __init__(self, services: RunServices, runs: Runs, deletions: ThreadDeletions, boards: Boards) -> None:
        self._services = services
        self._worker = services.worker
        self._runs = runs
        self._jobs = WaitingJobs(services, runs, deletions, boards)
        self._slots = runs.slots
        self._woken = services.worker.waking()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to claim."""
        if self._loop is None:
            self._services.hub.expect_claims()
            self._worker.watches = True
            self._jobs.start()
            self._loop = asyncio.get_running_loop().create_task(self._claim_all(), name="the claims of runs")

    async def close(self) -> None:
        """Claim nothing more. Claimed runs whose execution has not begun are given back."""
        loop, self._loop = self._loop, None
        tasks = [*([loop] if loop is not None else []), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._jobs.close()

    async def _claim_all(self) -> None:
        while True:
            self._woken.clear()
            try:
                if await self._claim() == _AT_ONCE:
                    self._woken.set()  # there may be more
            except StoreError as error:
                _logger.warning("Runs could not be claimed; trying again: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._woken.wait()

    async def _claim(self) -> int:
        """Claim some runs and begin to work on them; return how many."""
        own, store = await self._worker.id(), self._services.store
        async with store.reading() as tx:
            found = await leases.look_for_work(tx)
        dead = self._worker.dead(found.workers)
        claimed = await self._claim_runs(own, dead) if found.runs or dead else []
        if found.jobs or dead:
            self._jobs.wake()
        for run in claimed:
            self._slots.take()
            self._begin_to_take(run, self._worker.hold(run.lease))
        CLAIMS.add(by=len(claimed))
        self._slots.queued = found.questions > 0
        return max(len(claimed), await self._begin_queued())

    def _begin_to_take(self, run: ClaimedRun, hold: Hold) -> None:
        """Work on a run in a task. Its slot is taken already: until its source is open, other questions begin."""
        task = asyncio.get_running_loop().create_task(self._take(run, hold))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin_queued(self) -> int:
        """Begin with queued questions whose turn it is, as far as there is room; return with how many."""
        if not self._slots.queued:
            self._slots.wanted = False
            return 0
        async with self._services.store.reading() as tx:
            due = await wait_list.startable(tx, most=self._runs.limits.runs, limit=_AT_ONCE)
        self._slots.wanted = len(due) > self._slots.free
        due = due[: self._slots.free]
        fingerprints = await asyncio.gather(*map(self._runs.fingerprint_now, due))
        count = 0
        for turn, fingerprint in zip(due, fingerprints, strict=True):
            if not self._slots.free:
                break  # also if there is room again at the next one: that one is not to be before this one
            count += await self._begin(turn, fingerprint)
        return count

    async def _begin(self, turn: StartableQuestion, fingerprint: str | None) -> bool:
        """Make a queued question a run, and begin to work on it; False if that is not to be."""
        services = self._services
        self._slots.take()
        started = None
        try:
            store, cache, limits = services.store, services.window_cache, self._runs.limits
            started = await begin_queued(store, turn, cache, self._worker, limits, fingerprint=fingerprint)
        except LongthreadError as error:
            if not isinstance(error, ThreadNotFound):  # it was deleted
                _logger.warning("Question %s could not be begun; trying again: %s", turn.id, error)
        finally:
            if started is None:
                self._slots.give()
        if started is not None:
            services.hub.question_changed(turn.id)
            self._begin_to_take(ClaimedRun(started.hold.lease, turn.user_id, 0, None), started.hold)
        return started is not None

    async def _claim_runs(self, own: str, dead: Mapping[str, int]) -> Sequence[ClaimedRun]:
        """Claim runs. Others may have taken this process for dead: so it renews first, and its own runs are none that
        it could claim."""
        async with self._services.store.writing() as tx:
            if await leases.renew(tx, own):
                await leases.bury(tx, dead)
                return await leases.claim(tx, own, limit=_AT_ONCE)
        self._worker.wake_renewal()
        return []

    async def _take(self, claimed: ClaimedRun, hold: Hold) -> None:
        """Work on a claimed run, in its slot. A run that cannot go on fails, and a failing store leaves it to the next
        claim."""
        executed = False
        try:
            executed = await self._go_on(claimed, hold)
        except (LeaseLost, ThreadNotFound):
            self._worker.drop(hold)
        except StoreError as error:
            _logger.warning("Run %s could not be claimed: %s", hold.lease.run_id, error)
            await self._worker.release(hold)
        except LongthreadError as error:
            await self._fail(hold, error)
        except asyncio.CancelledError:
            await to_the_end(self._worker.release(hold))
            raise
        except Exception:  # no caller waits for the task; the run stays until somebody resumes it
            _logger.exception("Run %s was claimed, and could not go on", hold.lease.run_id)
            await self._worker.release(hold, claimable=False)
        finally:
            if not executed:
                self._slots.give()
                self._runs.wake_queue()

    async def _go_on(self, claimed: ClaimedRun, hold: Hold) -> bool:
        """Execute a claimed run, or end it; return whether it is executed."""
        thread_id, user_id = claimed.lease.thread_id, claimed.user_id
        if claimed.stop_by is not None:
            store, cache = self._services.store, self._services.window_cache
            async with store.reading() as tx:
                thread = await log.find_thread(tx, thread_id, user_id=user_id)
            await stop_run(store, thread, claimed.lease.run_id, cache, by=claimed.stop_by, claimed=claimed.lease)
            self._end(hold)
        elif claimed.crashes >= MOST_CRASHES:
            await self._fail(hold, RunCrashed(thread=thread_id, run=claimed.lease.run_id, count=claimed.crashes))
        else:
            await self._runs.resume(thread_id, user_id=user_id, claim=hold, has_slot=True)
            return True
        return False

    async def _fail(self, hold: Hold, error: LongthreadError) -> None:
        with suppress(LeaseLost):
            await fail_run(self._services.store, hold.lease, {"reason": error.code, "error": error.described()})
        self._end(hold)

    def _end(self, hold: Hold) -> None:
        self._worker.drop(hold)
        self._services.hub.note_change(hold.lease.thread_id, hold.lease.run_id)
        self._woken.set()  # a question may wait for its end


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
        free = _JOBS_AT_ONCE - len(self._tasks)
        if free <= 0:
            return
        async with self._services.store.reading() as tx:
            found = await jobs.waiting(tx, self._kinds(), limit=_JOBS_AT_ONCE)
        for job in [each for each in found if each not in self._tasks][:free]:
            self._tasks[job] = task = asyncio.get_running_loop().create_task(self._take(job), name=f"job {job.kind}")
            task.add_done_callback(partial(self._log_failure, job))

    def _log_failure(self, job: Job, task: asyncio.Task[None]) -> None:
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
        async with self._services.jobs.claim(job) as ours:
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
