"""What the runs of one process share, and a handle on a run that it executes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from longthread.context.window_cache import WindowCache
from longthread.errors import LeaseLost, RunInProgress, RunWaiting, ThreadNotFound
from longthread.llm.model_facts import ContextWindows
from longthread.memory.pruner import Pruner
from longthread.memory.recall import Recaller
from longthread.memory.user_memories import Memories
from longthread.model.run import HALTS, Event, Run
from longthread.runs.events import Teller
from longthread.runs.hub import Hub
from longthread.runs.worker import RunWorker
from longthread.settings import Settings
from longthread.store import run_events, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.jobs import JobClaims


@dataclass(frozen=True, slots=True)
class RunServices:
    """The store, and what works on it. `factors` correct the token estimates, by model."""

    store: Driver
    settings: Settings
    hub: Hub
    teller: Teller
    recaller: Recaller
    memories: Memories
    pruner: Pruner
    window_cache: WindowCache
    context_windows: ContextWindows
    worker: RunWorker
    jobs: JobClaims
    factors: dict[str, float] = field(default_factory=dict)


async def expect_idle(tx: Transaction, thread_id: str) -> None:
    """Raise RunInProgress if the thread's last run has not ended, RunWaiting if it waits for decisions: what it writes
    goes to the active branch. The caller has locked the thread."""
    last = await runs.last_run(tx, thread_id)
    if last is not None and last.status in {"running", "waiting"}:
        kind = RunWaiting if last.status == "waiting" else RunInProgress
        raise kind(thread=thread_id, run=last.id)


_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run, and the task that executes it. `after` is the number of the last event before this execution."""

    run: Run
    task: asyncio.Task[None]
    store: Driver
    hub: Hub
    after: int = 0

    @property
    def thread_id(self) -> str:
        return self.run.thread_id

    @property
    def model(self) -> str:
        return self.run.model

    async def events(self) -> AsyncIterator[Event]:
        """Yield the run's events from this execution's first on, up to the final one or the one that it waits.

        Raises:
            LeaseLost: another process took the run over.
            StoreError: the store failed, so that not even the end could be stored.
        """
        events = self.hub.events(self.thread_id, self.run.id, after=self.after, goes_on=self._lives)
        async for event in events:
            if event.type in HALTS:
                await asyncio.wait({self.task})  # the caller may close the store after the end
            yield event
            if event.type in HALTS:
                return
        await self.task
        raise LeaseLost(thread=self.thread_id, run=self.run.id)

    async def wait(self) -> Event:
        """Return the run's final event, or the one that it waits for decisions. Raises what `events` raises."""
        await asyncio.wait({self.task})
        async with self.store.reading() as tx:
            last = await run_events.last_event(tx, self.thread_id, self.run.id)
            events = await run_events.events_after(tx, self.thread_id, self.run.id, last - 1)
        if events and events[-1].type in HALTS:
            return events[-1]
        await self.task
        raise LeaseLost(thread=self.thread_id, run=self.run.id)

    async def stop(self) -> None:
        """Stop the run: it ends as paused, and its log stays."""
        await asyncio.sleep(0)  # a task cancelled before its first step could not end its run
        self.cancel()
        await asyncio.wait({self.task})

    def cancel(self) -> None:
        """Begin to stop the run."""
        if not self.task.cancelling():  # a second cancellation would interrupt its end
            self.task.cancel()

    def _lives(self) -> bool:
        return not self.task.done()


def report(task: asyncio.Task[None]) -> None:
    """Log the failure of a run that could not store its end. One that was deleted or taken over is no failure."""
    if task.cancelled() or (error := task.exception()) is None:
        return
    level = logging.INFO if isinstance(error, LeaseLost | ThreadNotFound) else logging.ERROR
    _logger.log(level, "Run %s ended without a final event: %s", task.get_name().removeprefix("run "), error)
