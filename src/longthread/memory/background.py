"""Background tasks, one for each name, which end in time when their owner is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from longthread.errors import StoreClosed
from longthread.memory.embedders.embedder import reason_of

CLOSE_SECONDS = 2.0
"""How long closing waits for what goes on."""

_logger = logging.getLogger(__name__)


class Background:
    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Callable[[], Awaitable[None]], *, failing: str) -> None:
        """Start `work` unless a task of this name runs. An error is logged with `failing`."""
        if name in self._tasks:
            return

        async def run() -> None:
            try:
                await work()
            except StoreClosed:
                return  # the program has ended; what is left is made up for
            except Exception as error:  # noqa: BLE001 - no caller waits for it, so it is logged; a later pass repeats it
                _logger.warning("%s: %s", failing, reason_of(error))

        task = asyncio.get_running_loop().create_task(run(), name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def settle(self) -> None:
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        """Wait up to CLOSE_SECONDS for the tasks, then cancel them; their work is due again later."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
