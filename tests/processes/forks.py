"""Processes forked from one that has imported everything: a start takes milliseconds, not seconds."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from tests.forked_server import start_fork_server

Report = dict[str, Any]
Tell = Callable[[Report], None]


@dataclass(frozen=True)
class Ended:
    """How a child ended: the signal that killed it (0: none), and what it told before."""

    signal: int
    reports: list[Report]

    def told(self, kind: str) -> list[Any]:
        """What was told of one kind, in order."""
        return [report[kind] for report in self.reports if kind in report]


@dataclass(frozen=True)
class Child:
    """A process at work, and the pipe that it tells through."""

    pid: int
    pipe: int

    def ended(self) -> Ended:
        """How it ended, when it has. What it told has arrived, even if it died."""
        with os.fdopen(self.pipe, "rb") as pipe:
            lines = pipe.read().split(b"\n")[:-1]  # a line that was cut off was not told
        status = os.waitpid(self.pid, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise RuntimeError(f"A child failed: {lines[-1].decode() if lines else 'without a word'}")
        return Ended(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, [json.loads(line) for line in lines])


def in_child(work: Callable[[Tell], Awaitable[None]]) -> Ended:
    """Do the work in a process of its own, with an event loop of its own; how that ended."""
    return child(work).ended()


def child(work: Callable[[Tell], Awaitable[None]]) -> Child:
    """Begin the work in a process of its own, with an event loop of its own."""
    read, write = os.pipe()
    gc.freeze()  # a collection in the child would copy every page
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _work(work, write)
    gc.unfreeze()
    os.close(write)
    return Child(pid, read)


def _work(work: Callable[[Tell], Awaitable[None]], pipe: int) -> NoReturn:
    def tell(report: Report) -> None:
        line = json.dumps(report, default=_plain).encode() + b"\n"
        while line:
            line = line[os.write(pipe, line) :]

    start_fork_server()
    try:
        asyncio.run(_awaited(work(tell)))
    except BaseException:  # noqa: BLE001 - whatever it was, the parent is told
        tell({"error": traceback.format_exc()})
        os._exit(1)
    os._exit(0)


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else repr(value)
