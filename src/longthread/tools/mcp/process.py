"""A server program: started with only the listed environment, and ended together with its own child processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from longthread.errors import McpFailed
from longthread.tools.mcp.endpoint import Program

_GRACE = 1.0
"""Seconds that a program has to end after its input is closed, and again after SIGTERM."""
_LOOK = 0.01
_ERROR_BYTES = 2_000
"""Last bytes of standard error that are stored."""
_LONGEST = 300
"""Characters of its last line in an error."""


class Process:
    """One run of a program. It calls `on_end` at the end of its output."""

    def __init__(self, program: Program, on_end: Callable[[], None]) -> None:
        self._program = program
        self._on_end = on_end
        self._process: asyncio.subprocess.Process | None = None
        self._errors: deque[int] = deque(maxlen=_ERROR_BYTES)
        self._too_large = False

    def last_words(self) -> str:
        """How it ended, with its last line on standard error."""
        if self._too_large:
            return f"it sent a message of more than {self._program.most} bytes."
        code = self._process.returncode if self._process else None
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        last = lines[-1].strip()[:_LONGEST] if lines else ""
        how = "it ended" if code is None else f"it ended with code {code}"
        return f"{how}. It said last: {last.rstrip('.')}." if last else f"{how}."

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The streams for the MCP library. Raises McpFailed: it cannot be started."""
        process = self._process = await self._started()
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

        async def read() -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async with incoming:
                    await self._read(process, incoming.send)
            self._on_end()

        async def write() -> None:
            assert process.stdin is not None
            with suppress(OSError, anyio.ClosedResourceError):
                async for message in outgoing:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(f"{text}\n".encode())
                    await process.stdin.drain()

        tasks = [asyncio.create_task(work) for work in (read(), write(), self._listen(process))]
        try:
            yield received, sent
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(process, tasks)
            for stream in (incoming, received, sent, outgoing):
                stream.close()

    async def _started(self) -> asyncio.subprocess.Process:
        program = self._program
        env = dict(program.env)
        command = shutil.which(program.command, path=env.get("PATH", os.environ.get("PATH")))
        if command is None:
            raise McpFailed(server=program.name, reason=f"there is no program {program.command[:100]}.")
        try:
            return await asyncio.create_subprocess_exec(
                command,
                *program.args,
                env=env,
                cwd=program.cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=program.most,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = f"{program.command[:100]} cannot be started ({type(error).__name__})."
            raise McpFailed(server=program.name, reason=reason) from error

    async def _read(self, process: asyncio.subprocess.Process, deliver: Callable[[SessionMessage], object]) -> None:
        """Reads one message per line, and skips other output."""
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than the limit
                self._too_large = True
                return
            if not line:
                return
            with suppress(ValueError):
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await deliver(SessionMessage(message))  # type: ignore[misc]

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(4_096):
            self._errors.extend(piece)

    async def _end(self, process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
        assert process.stdin is not None
        process.stdin.close()
        for sign in (None, signal.SIGTERM):
            if sign is not None:
                _signal(process, sign)
            if await _has_ended(process):
                break
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # with its children
        await _has_ended(process)
        # A detached child may hold its streams open.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
        _, left = await asyncio.wait(tasks, timeout=_GRACE)
        for task in left:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends in time. `wait` would also wait for children that hold its streams."""
    deadline = time.monotonic() + _GRACE
    while process.returncode is None and time.monotonic() < deadline:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_LOOK)
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, sign: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, sign)
