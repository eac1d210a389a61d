"""Background tasks, one for each name, which end in time when their owner is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from longthread.errors import StoreClosed
from longthread.memory.embedder import reason_of

CLOSE_SECONDS = 2.0
"""How long closing waits for what goes on."""

_logger = logging.getLogger(__name__)


class Background:
    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def has(self, name: str) -> bool:
        """Whether a task of this name runs."""
        return name in self._tasks

    def start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]], *, failing: str) -> None:
        """Start `work` unless a task of this name runs, or this is closed. An error is logged with `failing`."""
        if self._closed or name in self._tasks:
            return

        task = asyncio.get_running_loop().create_task(work(), name=name)
        self._tasks[name] = task
        task.add_done_callback(partial(self._log_failure, failing))

    def _log_failure(self, failing: str, task: asyncio.Task[None]) -> None:
        """Log why a task failed: no caller waits for it, and a later pass repeats it."""
        self._tasks.pop(task.get_name(), None)
        if task.cancelled() or (error := task.exception()) is None or isinstance(error, StoreClosed):
            return  # a store is closed when the program ends; what is left is made up for
        _logger.warning("%s: %s", failing, reason_of(error))

    async def settle(self, name: str | None = None) -> None:
        """Wait for the task of this name, or for all."""
        tasks = [task for key, task in self._tasks.items() if name in (None, key)]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Wait up to CLOSE_SECONDS for the tasks, then cancel them; their work is due again later."""
        self._closed = True
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
