"""Prunes the threads of a process in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from longthread.errors import StoreClosed
from longthread.memory.search.recall import Recaller
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.summary.summaries import Summarizer
from longthread.model.manifest import Segment
from longthread.store.driver import Driver
from longthread.store.index.recall import Scope
from longthread.store.summaries import ThreadSummary

CLOSE_SECONDS = 2.0
"""How long closing waits for what goes on in the background."""

_logger = logging.getLogger(__name__)


class Pruner:
    """Runs one pass at a time on each thread. Safe to share between tasks; close it when done.

    A pass cut short by closing or by a database failure is due again with the thread's next turn.
    """

    def __init__(self, store: Driver, policy: PruningPolicy, recaller: Recaller) -> None:
        self.policy = policy
        self._store = store
        self._recaller = recaller
        self._passes: dict[str, asyncio.Task[None]] = {}
        self._closed = False

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
        if self._closed or thread_id in self._passes or not (stale or owed or self.policy.is_due(count, view, kept)):
            return
        task = asyncio.get_running_loop().create_task(self._pass(scope, view, summarizer), name=f"prune {thread_id}")
        self._passes[thread_id] = task
        task.add_done_callback(lambda _: self._passes.pop(thread_id, None))

    async def _pass(self, scope: Scope, view: Sequence[Segment], summarizer: Summarizer | None) -> None:
        try:
            await prune_thread(
                self._store,
                scope.thread_id or "",
                self.policy,
                view=view,
                summarizer=summarizer,
                prepare=lambda: self._recaller.prepare(scope),
            )
        except StoreClosed:
            return  # the program has ended; the next one makes up for it
        except Exception as error:  # noqa: BLE001 - no caller waits for it, so it is logged; a later pass repeats it
            _logger.warning("Thread %s could not be pruned: %s", scope.thread_id, str(error) or type(error).__name__)

    @property
    def is_busy(self) -> bool:
        return bool(self._passes)

    async def settle(self, thread_id: str | None = None) -> None:
        """Wait for the background passes on one thread, or on all."""
        passes = [task for key, task in self._passes.items() if thread_id in (None, key)]
        await asyncio.gather(*passes, return_exceptions=True)

    async def close(self) -> None:
        """Wait up to CLOSE_SECONDS for the passes, then cancel them. A summary that a model owes is written
        later: the digest is stored."""
        self._closed = True
        tasks = list(self._passes.values())
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
