"""The default interpreter: Monty, which has no files, environment, sockets or processes.

It runs in processes of its own, which are replaced when they crash or hang. Arguments and result are JSON text, which
the code's side encodes: a list that has one list a million times would become huge here.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from typing import Any

from longthread.errors import CodeFailed, CodeStopped, ExtraMissing
from longthread.tools.code.program import FUNCTION, Bounds

_WAIT = 30.0
"""Seconds to wait for one of the processes."""
_MOST_SECONDS = 90.0
_DEPTH = 400
_MESSAGE_CHARS = 1_000
"""Characters of an error message."""


class Monty:
    """A lazily started pool of processes. `close` ends it."""

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes
        self._lock = asyncio.Lock()
        self._pool: Any = None

    async def run(self, code: str, arguments: Mapping[str, Any], bounds: Bounds) -> tuple[str, str]:
        """The result as JSON text, cut behind `bounds.characters`, and what was printed.

        Raises CodeFailed; CodeStopped: beyond its bounds, or its process died; ExtraMissing.
        """
        monty = _monty()
        pool = await self._started(monty)
        printed = monty.CollectString(max_bytes=bounds.printed)
        mark = f"_{secrets.token_hex(8)}"
        given = {f"{mark}a": json.dumps(dict(arguments))}
        try:
            async with pool.checkout(**_limits(bounds)) as session:
                out = await session.feed_run(_program(code, mark, bounds), inputs=given, print_callback=printed)
        except monty.MontyCrashedError as error:
            raise CodeStopped(reason=f"its process ended, after at most {bounds.seconds:g} s.") from error
        except monty.MontyError as error:
            raise _failure(error, bounds) from error
        except TimeoutError as error:
            raise CodeStopped(reason=f"no process for it was free within {_WAIT:g} s.") from error
        if not isinstance(out, str):
            raise CodeFailed(reason=f"{FUNCTION} returned nothing that can be read.")
        return out, printed.output

    async def close(self) -> None:
        """Ends the processes. A later run starts new ones."""
        async with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _started(self, monty: Any) -> Any:
        async with self._lock:
            if self._pool is None:
                pool = monty.AsyncMonty(
                    min_processes=1,
                    max_processes=self._processes,
                    checkout_timeout=_WAIT,
                    request_timeout=_MOST_SECONDS,
                )
                self._pool = await pool.__aenter__()
            return self._pool


def _monty() -> Any:
    try:
        import pydantic_monty
    except ImportError as error:
        raise ExtraMissing(what="A tool of type code", package="pydantic-monty", extra="code") from error
    return pydantic_monty


def _limits(bounds: Bounds) -> dict[str, Any]:
    limits = {
        "max_feed_duration_secs": bounds.seconds,
        "max_memory": bounds.memory_mb * 1_000_000,
        "max_recursion_depth": _DEPTH,
        "max_suspensions": 20,
        "max_total_sleep_secs": 0.001,
    }
    # No sleep: it would call back into this process.
    return {"limits": limits, "os_policy": {"sleep": "zero"}, "assert_message_annotations": False}


def _program(code: str, mark: str, bounds: Bounds) -> str:
    """The tool's code and its call, with names that the code cannot know."""
    return (
        f"{code}\nimport json as {mark}j\n"
        f"{mark}j.dumps({FUNCTION}(**{mark}j.loads({mark}a)), ensure_ascii=False)[:{bounds.characters + 1}]\n"
    )


def _failure(error: Any, bounds: Bounds) -> CodeFailed | CodeStopped:
    inner = error.exception()
    text = str(error)[:_MESSAGE_CHARS]
    if isinstance(inner, TimeoutError) and "limit exceeded" in text:
        return CodeStopped(reason=f"it takes longer than {bounds.seconds:g} s.")
    if isinstance(inner, MemoryError):
        kilobytes = bounds.printed // 1000
        return CodeStopped(reason=f"it needs more than {bounds.memory_mb} MB of memory, or prints over {kilobytes} kB.")
    frames = error.traceback() if hasattr(error, "traceback") else []
    where = f" (line {frames[-1].line})" if frames else ""
    return CodeFailed(reason=f"{text}{where}.")
