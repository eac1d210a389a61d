"""The entry to Longthread: an analyst opens a store and hands out the services on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from longthread.context.window_cache import WindowCache
from longthread.errors import LongthreadError, SourceMissing
from longthread.llm.connections import ModelFactory, ProviderKeys
from longthread.llm.embedders import embedder_of
from longthread.llm.model_facts import ContextWindows
from longthread.llm.models import resolve_model
from longthread.memory.pruner import Pruner
from longthread.memory.recall import Recaller
from longthread.memory.summary.pruning import PruningPolicy
from longthread.memory.user_memories import Memories
from longthread.otel.export import exporting
from longthread.runs.claims import Claims
from longthread.runs.events import Teller
from longthread.runs.hub import Hub
from longthread.runs.services.approvals import Approvals
from longthread.runs.services.boards import Boards
from longthread.runs.services.branches import QueryEdits, ThreadBranches
from longthread.runs.services.deletions import ThreadDeletions
from longthread.runs.services.queue import Queue
from longthread.runs.services.results import Results
from longthread.runs.services.runs import Runs
from longthread.runs.services.sources import Sources
from longthread.runs.services.threads import Threads, Titles
from longthread.runs.shared import RunServices
from longthread.runs.worker import RunWorker
from longthread.settings import Settings
from longthread.store import listing
from longthread.store.driver import Driver
from longthread.store.maintenance.jobs import JobClaims
from longthread.store.open import open_store
from longthread.tools.analysis.isolation.forkserver import FORK_SERVER

_log = logging.getLogger(__name__)


class Analyst:
    """The services on one store. Safe to share between tasks; close it when done.

    Attributes:
        threads: begins, finds, reads, changes and deletes threads, and adds messages to them without a run.
        deletions: deletes threads so that it can be undone for a while.
        runs: asks, resumes and stops.
        queue: questions that wait for their turn.
        query_edits: runs queries that a person has edited.
        branches: edits questions, asks again, and chooses branches.
        approvals: calls that wait for a person's decision.
        sources: opens the sources of threads.
        results: the results of queries, by pages and as files.
        boards: saved results, refreshed by hand or by a schedule.
        recaller, memories: old messages and facts.
        keys: the providers and servers that users have connected, with their keys.
        windows: the context windows of models.
        claims: a server's claims of runs that no process executes, and of jobs; `claims.start()` begins.
        titles: gives conversations short titles; `titles.start()` begins, which a server does.
        pruner: writes summaries in the background.
        ask: the same as `runs.ask`.
    """

    def __init__(self, store: Driver, settings: Settings, *, models: ModelFactory = resolve_model) -> None:
        self.store = store
        self.settings = settings
        self.worker = RunWorker(store)
        self.hub, self.teller = Hub(store, wake=self.worker.wake), Teller(store)
        jobs = JobClaims(store, self.worker)
        self.recaller = Recaller(store, embedder_of(settings), jobs)
        self.pruner = Pruner(store, PruningPolicy.of(settings), self.recaller, jobs)
        self.memories = Memories(store, self.recaller.asker, jobs)
        cache, windows = WindowCache(settings.memory_max_messages_per_thread), ContextWindows(store, settings)
        services = RunServices(
            store,
            settings,
            self.hub,
            self.teller,
            self.recaller,
            self.memories,
            self.pruner,
            cache,
            windows,
            self.worker,
            jobs,
        )
        self.sources = Sources(store, settings)
        self.threads = Threads(services, self.sources)
        self.keys, self.windows = ProviderKeys(store, settings), windows
        self.titles = Titles(store, self.hub)
        self.runs = Runs(services, self.threads, self.sources, models, self.keys, self.titles)
        self.deletions = ThreadDeletions(services, self.threads, self.runs)
        self.queue = Queue(services)
        self.results = Results(store, self.sources)
        self.query_edits = QueryEdits(services, self.results)
        self.branches = ThreadBranches(services, self.sources, self.runs)
        self.approvals = Approvals(services, self.threads, self.runs)
        self.boards = Boards(services, self.results, self.sources, self.runs.rights)
        self.claims = Claims(services, self.runs, self.deletions, self.boards)
        self.ask = self.runs.ask

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, *, models: ModelFactory = resolve_model, creates: bool = True
    ) -> AsyncIterator[Analyst]:
        """Yield an analyst on the settings' store, which is created if there is none.

        Raises:
            StoreUnavailable: it cannot be opened, or there is none and `creates` is False.
        """
        async with (
            exporting(settings),
            open_store(settings.database, creates=creates, read_only=settings.read_only) as store,
        ):
            if settings.sql_isolated:
                FORK_SERVER.start()  # it is ready by the time the first source is asked
            analyst = cls(store, settings, models=models)
            try:
                yield analyst
            finally:
                await analyst.close()

    async def warm(self) -> None:
        """Load what the first question would wait for: a connection, the model, and a worker for the source.

        A model or source that does not work is no failure here, and logged: the question that needs it tells what to
        do.
        """
        async with self.store.reading() as tx:
            await listing.last_thread(tx, user_id=self.settings.user)
        for load in (partial(asyncio.to_thread, self.runs.make_model), self._read_schema):
            try:
                await load()
            except SourceMissing:
                pass  # each question names its own
            except LongthreadError as error:
                _log.warning("The first question would fail: %s", error)

    async def _read_schema(self) -> None:
        async with await self.sources.open(None, None, user_id=self.settings.user) as source:
            await source.schema()

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Give the runs of this process back, so that another one goes on with them: each after the step under way, at
        the latest after `seconds`, or at once on `hurry`."""
        await self.claims.close()
        self.worker.drain()
        await self.runs.leave(seconds, hurry)

    async def close(self) -> None:
        """Stop the runs of this process; they can be resumed."""
        await self.claims.close()
        await self.deletions.close()
        await self.runs.stop_all()
        await self.titles.close()
        await self.pruner.close()
        await self.recaller.close()
        await self.memories.close()
        await self.threads.close()
        await self.runs.close()
        await self.sources.close()
        await self.worker.close()
        await self.teller.close()
        await self.hub.close()

    async def settle(self) -> None:
        """Wait for the background work, but not for summaries (`pruner.settle`)."""
        await self.titles.settle()
        await self.recaller.settle()
        await self.memories.settle()
        await self.threads.settle()
