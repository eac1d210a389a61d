"""Background work that the processes of a store share: a worker claims each job before it does it.

A job that is under way or left is a row. A worker that dies leaves its rows, and others claim them. What a job writes,
it writes only if what it has read is unchanged. If two workers do the same job after all, one has no effect.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from longthread.errors import JobLost, StoreClosed, StoreError
from longthread.loop_bridge import to_the_end
from longthread.metrics import JOBS
from longthread.store.driver import Driver, Transaction, one

JobKind = Literal["deletion", "summary", "vectors", "memories", "board", "retention", "index"]
"""A thread's deletion, its summary, its vectors, the vectors of a user's memories, and the schedule of a board; the
others are of the whole store."""
CLAIMED_BY_SERVERS: tuple[JobKind, ...] = ("deletion", "summary", "vectors", "memories", "board")
"""What servers do that others left, or that has come due. A job of the whole store is no more than a lock."""
_OF_THREADS = ("deletion", "summary", "vectors")
_NEVER = 2**62
_TRIES, _AGAIN_SECONDS = 30, 1.0
MOST_FAILURES = 12
"""A job that failed so often, or killed its workers, is given up, after about five hours."""

_logger = logging.getLogger(__name__)


class JobWorker(Protocol):
    """A process that has a row in `workers` and renews it."""

    async def id(self) -> str: ...

    def at_loss(self, lost: Callable[[], None]) -> None:
        """Call `lost` when others may take this worker for dead."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `subject` is a thread's id or a user's; empty: the whole store."""

    kind: JobKind
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.kind} of thread {self.subject}" if self._thread else self.kind

    @property
    def _key(self) -> dict[str, str]:
        return {"kind": self.kind, "subject": self.subject}

    @property
    def _thread(self) -> str | None:
        return self.subject if self.kind in _OF_THREADS else None

    async def claim(self, tx: Transaction, worker: str, *, at_once: bool = False) -> int | None:
        """Make it a worker's, if no living one has it, its thread exists, and it is due (with `at_once`, also before).
        Return how often it failed or its worker died; None if it is not this worker's."""
        about = {**self._key, "thread_id": self._thread, "now": _now()}
        due = _NEVER if at_once else about["now"]
        row = await one(tx, "claim_job", **about, owner=worker, due=due, never=_NEVER)
        return int(row["failures"]) if row is not None else None

    async def note(self, tx: Transaction, seconds: float = 0, owner: str | None = None) -> None:
        """Store that it is to be done, by anyone, in so many seconds; nothing if it is known. While the worker `owner`
        lives, it decides when: it measures the time, and gives the job back."""
        due_at = _now() + int(seconds * 1000) if seconds else 0
        await tx.run("note_job", **self._key, thread_id=self._thread, due_at=due_at, owner=owner)

    async def done(self, tx: Transaction, worker: str) -> None:
        """Delete a worker's job."""
        await tx.run("delete_job", **self._key, owner=worker)

    async def call_off(self, tx: Transaction) -> None:
        """Delete it, also while a worker does it."""
        await tx.run("call_off_job", **self._key)

    async def give_back(self, tx: Transaction, worker: str) -> None:
        """Leave a worker's job to others, at once."""
        await tx.run("give_back_job", **self._key, owner=worker)

    async def repeat(self, tx: Transaction, worker: str, seconds: float) -> None:
        """Release a worker's finished job: any worker may claim it again in so many seconds, at most an hour."""
        await tx.run("repeat_job", **self._key, owner=worker, due_at=_now() + int(seconds * 1000))

    async def give_up(self, tx: Transaction, worker: str) -> None:
        """Stop retrying a worker's job: it no longer waits for a worker. The next `claim` counts its failures from 0
        again."""
        await tx.run("give_up_job", **self._key, owner=worker, never=_NEVER)

    async def fail(self, tx: Transaction, worker: str) -> None:
        """Leave a worker's job to all, after a wait that grows with each failure: ten seconds to an hour."""
        await tx.run("fail_job", **self._key, owner=worker, now=_now())

    async def owner(self, tx: Transaction) -> str | None:
        """Return the living worker that does it."""
        row = await one(tx, "select_job_owner", **self._key)
        return str(row["owner"]) if row is not None else None


async def waiting(tx: Transaction, kinds: Collection[JobKind] = CLAIMED_BY_SERVERS, *, limit: int) -> list[Job]:
    """Return jobs that are due, and that no living worker does."""
    name, values = waits(kinds, limit=limit)
    return [Job(row["kind"], row["subject"]) for row in await tx.fetch(name, **values)]


def waits(kinds: Collection[JobKind] = CLAIMED_BY_SERVERS, *, limit: int = 1) -> tuple[str, dict[str, Any]]:
    """Return the query for due jobs, to be asked with others."""
    return "select_waiting_jobs", {"kinds": json.dumps(sorted(kinds)), "now": _now(), "never": _NEVER, "limit": limit}


async def forget_user(tx: Transaction, user_id: str) -> None:
    """Delete the jobs of a user, before the user's boards. Those of threads are deleted with them."""
    await tx.run("delete_jobs_of_user", kind="memories", user_id=user_id)
    await tx.run("delete_board_jobs_of_user", kind="board", user_id=user_id)


async def note_unwritten(store: Driver, *, at_once: int = 500) -> int:
    """Note the summaries that a model is to write, and that are no job: of an earlier version, or imported. Return how
    many. Raises StoreError."""
    count, after = 0, ""
    while True:
        async with store.reading() as tx:
            found = await tx.fetch("select_unwritten_summaries", kind="summary", after=after, limit=at_once)
        if not found:
            return count
        async with store.writing() as tx:
            for row in found:
                await Job("summary", row["thread_id"]).note(tx)
        count, after = count + len(found), found[-1]["thread_id"]


class JobClaims:
    """The jobs that this process does. Without a worker nothing is claimed: every job is its own."""

    def __init__(self, store: Driver, worker: JobWorker | None = None) -> None:
        self._store = store
        self._worker = worker
        self._held: dict[Job, asyncio.Task[object] | None] = {}
        self._lost: set[Job] = set()
        if worker is not None:
            worker.at_loss(self._lose)

    @asynccontextmanager
    async def claim(self, job: Job, *, at_once: bool = False) -> AsyncIterator[bool]:
        """Yield whether the job is this process's now; another has it otherwise, or it is not due yet.

        With `at_once` it is done before it is due, and however often it failed. So is a job of the whole store.

        When the block ends, the job is deleted. A block that raises leaves it to all, after a wait; one that is
        cancelled gives it back. The task that has a job may claim it again inside the block: that does nothing.

        Raises:
            StoreError: it could not be claimed.
            JobLost: others took this process for dead; the block was broken off.
        """
        if self._worker is None:
            yield True
        elif job in self._held:
            yield self._held[job] is asyncio.current_task()
        else:
            self._held[job] = asyncio.current_task()
            try:
                owner = await self._claim(job, self._worker, at_once=at_once or not job.subject)
                if owner is not None:
                    async with self._ending(job, owner):
                        yield True
            finally:
                del self._held[job]
                self._lost.discard(job)
            if owner is None:
                yield False

    async def later(self, job: Job, seconds: float) -> None:
        """Leave a job to all, in so many seconds. Raises StoreError."""
        if self._worker is not None:
            async with self._store.writing() as tx:
                await job.note(tx, seconds)

    async def _claim(self, job: Job, worker: JobWorker, *, at_once: bool) -> str | None:
        owner = await worker.id()
        async with self._store.writing() as tx:
            failures = await job.claim(tx, owner, at_once=at_once)
            given_up = failures is not None and failures >= MOST_FAILURES and not at_once
            if given_up:
                await job.give_up(tx, owner)
        if failures is None:
            return None
        if given_up:
            _logger.error("A job (%s) failed %d times, and is given up.", job, failures)
            JOBS.add(job.kind, "given_up")
            return None
        return owner

    @asynccontextmanager
    async def _ending(self, job: Job, owner: str) -> AsyncIterator[None]:
        """End a claimed job as its block ends."""
        try:
            yield
        except asyncio.CancelledError:
            JOBS.add(job.kind, "given_back")
            await to_the_end(self._end(job.give_back, owner, tries=1))
            self._raise_if_lost(job)
            raise
        except Exception:  # whatever a job raises, it is noted as failed, and its caller hears of it
            JOBS.add(job.kind, "failed")
            await self._end(job.fail, owner, tries=_TRIES if job.subject else 1)
            raise
        JOBS.add(job.kind, "done")
        await self._end(job.done, owner, tries=_TRIES if job.subject else 1)

    async def _end(self, end: Callable[[Transaction, str], Awaitable[None]], owner: str, *, tries: int) -> None:
        """Store a job's end. A store that is away is tried again, since others leave the job to this living worker."""
        for left in reversed(range(tries)):
            try:
                async with self._store.writing() as tx:
                    await end(tx, owner)
                break
            except StoreClosed:
                break
            except StoreError as error:
                _logger.warning("The end of a job could not be stored: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS if left else 0)

    def _lose(self) -> None:
        for job, task in self._held.items():
            if task is not None:
                self._lost.add(job)
                task.cancel()

    def _raise_if_lost(self, job: Job) -> None:
        if job in self._lost:
            self._lost.discard(job)
            task = asyncio.current_task()
            if task is not None and task.uncancel() == 0:
                raise JobLost(kind=job.kind) from None


def _now() -> int:
    return int(time.time() * 1000)
