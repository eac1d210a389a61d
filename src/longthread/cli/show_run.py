"""A run as it is shown: to its end, which a signal brings about early."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from longthread.cli.language import say
from longthread.cli.terminal import Terminal
from longthread.model.run import HALTS, Event

if TYPE_CHECKING:
    from longthread.runs.analyst import Analyst
    from longthread.runs.handle import RunHandle

PAUSED = 10
STOPPED = 130
_QUIET_SECONDS = 0.5
"""How long the end of a command may take before it is said why."""


async def show_run(handle: RunHandle, terminal: Terminal) -> int:
    """Show a run until it ends or waits; Ctrl-C brings its end about early. The exit code that says how it ended."""
    async with _stopped_by_signal(handle):
        async for event in handle.events():
            terminal.show(event)
            if event.type in HALTS:
                return _exit_code(event)
    return 1


def _exit_code(event: Event) -> int:
    if event.type in {"paused", "waiting"}:
        return STOPPED if event.data.get("reason") == "stopped" else PAUSED
    return 0 if event.type == "finished" else _FAILURES.get(event.data["error"]["type"], 1)


_FAILURES = {"model_failed": 6, "model_unavailable": 6, "source_locked": 3, "source_error": 3, "store_error": 5}


async def finish_summary(analyst: Analyst, terminal: Terminal) -> None:
    """Let a summary that is being written be finished. Ctrl-C leaves that to the next process: its digest is stored."""
    if not analyst.pruner.is_busy:
        return
    work = asyncio.ensure_future(analyst.pruner.settle())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    try:
        done, _ = await asyncio.wait({work}, timeout=_QUIET_SECONDS)
        if not done and not terminal.as_json:
            said = say("Writing the summary of the conversation. Ctrl-C leaves it to the next command.")
            terminal.err.print(f"[dim]{said}[/dim]")
        await asyncio.wait({work})
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _stopped_by_signal(handle: RunHandle) -> AsyncIterator[None]:
    """Ctrl-C and a polite kill stop the run and keep it, in place of ending the process in the middle of it."""
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[Any]] = []

    def stop() -> None:
        stopping.append(loop.create_task(handle.stop()))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        yield
        await asyncio.gather(*stopping)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
