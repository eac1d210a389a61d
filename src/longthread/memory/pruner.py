"""Prunes the threads of a process in the background."""

from __future__ import annotations

from collections.abc import Sequence

from longthread.memory.background import Background
from longthread.memory.recall import Recaller
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.summary.summaries import Summarizer
from longthread.model.run import Segment
from longthread.model.thread import Scope
from longthread.store import summaries
from longthread.store.driver import Driver
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.summaries import ThreadSummary


class Pruner:
    """Runs one pass at a time on each thread, also along with other processes. Safe to share between tasks; close it
    when done.

    A pass cut short is left to others, if it was claimed. Otherwise it is due again with the thread's next turn.
    """

    def __init__(self, store: Driver, policy: PruningPolicy, recaller: Recaller, jobs: JobClaims | None = None) -> None:
        self.policy = policy
        self._store = store
        self._recaller = recaller
        self._jobs = jobs or JobClaims(store)
        self._background = Background()

    def keep_up(
        self,
        scope: Scope,
        *,
        count: int,
        view: Sequence[Segment],
        kept: ThreadSummary | None,
        stale: bool = False,
        summarizer: Summarizer | None = None,
    ) -> None:
        """Prune a thread in the background if that is due.

        Args:
            scope: one thread of a user's.
            count: the messages of its window.
            view: the manifest of its last view.
            kept: the summary that it has.
            stale: its summary is of another branch.
        """
        thread_id = scope.thread_id or ""
        owed = summarizer is not None and kept is not None and kept.unwritten
        if self._background.has(thread_id) or not (stale or owed or self.policy.is_due(count, view, kept)):
            return
        self._background.start(
            thread_id,
            lambda: self._pass(scope, view, summarizer),
            failing=f"Thread {thread_id} could not be pruned",
        )

    async def make_up(self, thread_id: str, summarizer: Summarizer | None) -> None:
        """Do the pass that another process left. Raises StoreError."""
        async with self._store.reading() as tx:
            thread = await summaries.find_thread(tx, thread_id)
        if thread is not None:
            await self._pass(Scope(thread.user_id, thread_id), None, summarizer)

    async def _pass(self, scope: Scope, view: Sequence[Segment] | None, summarizer: Summarizer | None) -> None:
        thread_id = scope.thread_id or ""
        async with self._jobs.claim(Job("summary", thread_id)) as ours:
            if ours:
                await prune_thread(
                    self._store,
                    thread_id,
                    self.policy,
                    view=view,
                    summarizer=summarizer,
                    prepare=lambda: self._recaller.prepare(scope),
                )

    @property
    def is_busy(self) -> bool:
        return self._background.is_busy

    async def settle(self, thread_id: str | None = None) -> None:
        """Wait for the background passes on one thread, or on all."""
        await self._background.settle(thread_id)

    async def close(self) -> None:
        """Wait briefly for the passes, then cancel them. A summary that a model owes is written later, by another
        process or with the next turn: the digest is stored."""
        await self._background.close()
