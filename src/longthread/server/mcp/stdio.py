"""The protocol over standard input and output: one message a line, and nothing else.

Daemon threads read and write them: the process can end also while its client neither writes nor reads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

_PIECE = 65_536
_log = logging.getLogger(__name__)

Received = MemoryObjectReceiveStream[SessionMessage | Exception]
SentMessages = MemoryObjectSendStream[SessionMessage]


def take_standard_streams() -> tuple[int, int]:
    """The descriptors of the protocol. For all else, child processes too, standard output is now standard error, and
    standard input is empty."""
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


async def serve(server: Server[Any], reading: int, writing: int, *, most: int) -> None:
    """Serve one client until it closes its end, or SIGINT or SIGTERM; calls under way are then cancelled.

    `reading` and `writing` are descriptors, `most` the bytes of one message.
    """
    with anyio.CancelScope() as scope, _on_signals(scope.cancel):
        async with _streams(reading, writing, most, scope.cancel) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())


@asynccontextmanager
async def _streams(
    reading: int, writing: int, most: int, on_broken: Callable[[], None]
) -> AsyncIterator[tuple[Received, SentMessages]]:
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    _Reader(reading, most, incoming).start()
    writer = _Writer(writing)
    writer.start()

    async def write() -> None:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await writer.write(f"{text}\n".encode())
            except OSError:  # the client is gone
                on_broken()
                return

    task = asyncio.create_task(write())
    try:
        yield received, sent
        with anyio.move_on_after(1):
            sent.close()
            await asyncio.wait({task})
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})
        for stream in (incoming, received, sent, outgoing):
            stream.close()


class _Reader(threading.Thread):
    """Reads messages until the input ends."""

    def __init__(
        self, descriptor: int, most: int, incoming: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        super().__init__(name="standard input", daemon=True)
        self._descriptor = descriptor
        self._most = most
        self._incoming = incoming
        self._loop = asyncio.get_running_loop()

    def run(self) -> None:
        with suppress(
            OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError, asyncio.CancelledError
        ):
            for line in _lines(self._descriptor, self._most):
                if line.strip():
                    self._wait(self._deliver(line))
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._incoming.close)

    async def _deliver(self, line: bytes) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            await self._incoming.send(error)
        else:
            await self._incoming.send(SessionMessage(message))

    def _wait(self, work: Any) -> None:
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise
        future.result()


def _lines(descriptor: int, most: int) -> Iterator[bytes]:
    """The lines of an input without those longer than `most` bytes."""
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(descriptor, _PIECE):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            if size + len(end) <= most:
                yield b"".join([*pieces, end])
            else:
                _log.warning("A message of more than %d bytes was left out", most)
            pieces, size = [], 0
        size += len(rest)
        pieces = [*pieces, rest] if size <= most else []


class _Writer(threading.Thread):
    """Writes one message after another."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="standard output", daemon=True)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._messages: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises OSError: it cannot be written."""
        done = self._loop.create_future()
        self._messages.put((data, done))
        await done

    def run(self) -> None:
        while True:
            data, done = self._messages.get()
            problem: OSError | None = None
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                problem = error
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_settle, done, problem)


def _settle(done: asyncio.Future[None], problem: OSError | None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)


@contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on the first SIGINT or SIGTERM; a second one ends the process."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def first() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
        stop()

    with suppress(NotImplementedError):  # on Windows, a client closes the input
        for number in numbers:
            loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            for number in numbers:
                loop.remove_signal_handler(number)
