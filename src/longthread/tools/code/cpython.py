"""The runtime `cpython`: full Python in a confined Linux process. A setting must allow it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Any

from longthread.errors import CodeFailed, CodeStopped, CodeUnavailable
from longthread.tools.analysis.isolation.forkserver import ForkServer
from longthread.tools.analysis.isolation.wire import TooLarge, WireMessage, receive, send
from longthread.tools.code.confinement import lacking
from longthread.tools.code.program import FUNCTION, Bounds

_START = 5.0
"""Seconds for the start of the process, on top of the code's own limit."""
_MODULE = "longthread.tools.code.forkserver_main"
_MESSAGE_CHARS = 1_000


class Cpython:
    """Forks one process for each run, and runs at most `processes` at once. `close` ends them."""

    def __init__(self, processes: int = 2) -> None:
        self._places = asyncio.Semaphore(processes)
        self._server = ForkServer(_MODULE)

    async def run(self, code: str, arguments: Mapping[str, Any], bounds: Bounds) -> tuple[str, str]:
        """The result as JSON text, cut behind `bounds.characters`, and what was printed.

        Raises CodeFailed; CodeStopped: beyond its bounds, or its process died; CodeUnavailable: no confinement here.
        """
        reason = lacking()
        if reason is not None:
            raise CodeUnavailable(reason=f"the runtime cpython needs {reason}. Use `runtime: python`.")
        task = {
            "code": code,
            "arguments": dict(arguments),
            "seconds": bounds.seconds,
            "memory_mb": bounds.memory_mb,
            "characters": bounds.characters,
            "printed": bounds.printed,
        }
        async with self._places:
            started = time.monotonic()
            answer = await self._asked(task, bounds)
        if answer is None and time.monotonic() - started >= bounds.seconds:
            raise CodeStopped(reason=f"it takes longer than {bounds.seconds:g} s.")
        return _read(answer, bounds)

    async def close(self) -> None:
        """Ends the processes and their fork server."""
        await asyncio.to_thread(self._server.close)

    async def _asked(self, task: WireMessage, bounds: Bounds) -> WireMessage | None:
        # Six bytes write a character, in the worst case, and the frame has a few fields.
        run = _Run(self._server, task, 6 * (bounds.characters + bounds.printed) + 10_000)
        work = asyncio.ensure_future(asyncio.to_thread(run.run))
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # no warning where nobody awaits it
        try:
            async with asyncio.timeout(bounds.seconds + _START):
                return await asyncio.shield(work)
        except TimeoutError:
            raise CodeStopped(reason=f"it takes longer than {bounds.seconds:g} s.") from None
        finally:
            if not work.done():
                await asyncio.shield(asyncio.to_thread(run.stop))
                await asyncio.wait({work})


class _Run:
    """One process, run by a thread. Another thread may stop it."""

    def __init__(self, server: ForkServer, task: WireMessage, most: int) -> None:
        self._server = server
        self._task = task
        self._most = most
        self._lock = threading.Lock()
        self._pid = 0
        self._stopped = False

    def run(self) -> WireMessage | None:
        """The answer of the process; None if it has ended or its answer is invalid. Raises WorkerFailed."""
        to, pid = self._server.fork()
        with to:
            with self._lock:
                self._pid = pid
                stopped = self._stopped
            try:
                if stopped:
                    return None
                send(to, self._task)
                return receive(to, self._most)
            except (OSError, TooLarge, ValueError, RecursionError):
                return None
            finally:
                self._server.kill(pid)

    def stop(self) -> None:
        """Kills the process, or cancels it before it starts."""
        with self._lock:
            self._stopped = True
            pid = self._pid
        if pid:
            self._server.kill(pid)


def _read(answer: WireMessage | None, bounds: Bounds) -> tuple[str, str]:
    """Validates an answer. The tool's code may have written it."""
    if isinstance(answer, dict):
        result, printed = answer.get("result"), answer.get("printed")
        if isinstance(result, str) and isinstance(printed, str):
            return result[: bounds.characters + 1], printed[: bounds.printed]
        if isinstance(answer.get("failed"), str):
            raise CodeFailed(reason=f"{answer['failed'][:_MESSAGE_CHARS]}.")
        if isinstance(answer.get("stopped"), str):
            raise CodeStopped(reason=f"{answer['stopped'][:_MESSAGE_CHARS]}.")
        if isinstance(answer.get("unconfined"), str):
            raise CodeUnavailable(reason=f"it could not be confined ({answer['unconfined'][:_MESSAGE_CHARS]}).")
    most = f"{bounds.seconds:g} s or {bounds.memory_mb} MB"
    raise CodeStopped(reason=f"its process ended: it may need more than {most}, or have crashed in {FUNCTION}.")
