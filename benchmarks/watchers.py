"""Lean clients of a server's runs: they ask, read server-sent events from the socket, and parse them at the end."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from longthread_testing.emulator.lean_turns import words

_RETRY_SECONDS = 0.5
_ENDS = ("RUN_FINISHED", "RUN_ERROR")
_PIECE = b"word"
_ID = re.compile(rb"^id: (\S+)$", re.MULTILINE)


@dataclass
class Asked:
    """A run, and when its question was sent."""

    sent: float
    events: str
    run_id: str
    thread_id: str


class Refused(Exception):
    """The server took no question."""


async def ask(url: str, model: str) -> Asked:
    """Ask the model a question on a new thread. Raises Refused or OSError."""
    sent = time.monotonic()
    body = json.dumps({"question": "Which names have the largest shares?", "model": model}).encode()
    head = f"POST /api/chat HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    reader, writer = await asyncio.open_connection(*_address(url))
    try:
        writer.write(_request(url, head) + body)
        answer = await reader.read()
    finally:
        writer.close()
    status, _, rest = answer.partition(b"\r\n")
    if b" 202" not in status:
        raise Refused(answer.decode(errors="replace")[-300:])
    accepted = json.loads(rest.partition(b"\r\n\r\n")[2])
    return Asked(sent, accepted["events"], accepted["run_id"], accepted["thread_id"])


@dataclass
class Watcher:
    """Reads a run's events until its end, and connects again where it left off, as a browser does."""

    run: Asked
    url: str
    frames: list[bytes] = field(default_factory=list)
    first: float | None = None
    """When the first event came."""
    new_attempt: float | None = None
    """When the first event came that is no further piece of the answer, since it was last set to None."""
    pieces: int = 0
    """How many pieces of answers came, those said again included."""
    connections: int = 0
    last_id: bytes = b""

    async def watch(self) -> None:
        """Read until the run has ended."""
        while not self.ended:
            if self.connections:
                await asyncio.sleep(_RETRY_SECONDS)
            self.connections += 1
            await self._connect()

    @property
    def ended(self) -> bool:
        return bool(self.frames) and any(f'"{name}"'.encode() in self.frames[-1] for name in _ENDS)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, stream = await loop.create_connection(lambda: _Stream(self), *_address(self.url))
        except OSError:
            return
        after = f"?after={self.last_id.decode()}" if self.last_id else ""
        transport.write(_request(self.url, f"GET {self.run.events}{after} HTTP/1.1\r\nAccept: text/event-stream"))
        try:
            await stream.closed
        finally:
            transport.close()

    def came(self, data: bytes, now: float) -> None:
        """Take a whole number of frames."""
        found = _ID.findall(data)
        if not found:  # a heartbeat, or that nobody executes the run
            return
        self.frames.append(data)
        self.pieces += data.count(_PIECE)
        self.first = self.first or now
        self.last_id = found[-1]
        if self.new_attempt is None and data.count(b"TEXT_MESSAGE_CONTENT") < len(found):
            self.new_attempt = now

    def events(self) -> Iterator[dict[str, Any]]:
        """Parse the events that came."""
        for data in self.frames:
            for line in data.splitlines():
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def is_whole(self, pieces: int) -> bool:
        """Whether the run has finished, and every piece came exactly once and in order."""
        text: dict[str, str] = {}
        finished = False
        for event in self.events():
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                text[event["messageId"]] = text.get(event["messageId"], "") + event["delta"]
            elif event["type"] == "CUSTOM" and event["name"] == "longthread.text_withdrawn":
                text.pop(event["value"]["messageId"], None)
            finished = event["type"] == "RUN_FINISHED"
        return finished and list(text.values()) == ["".join(words(pieces))]


class _Stream(asyncio.Protocol):
    """One connection: hands on whole frames, without the chunks' sizes."""

    def __init__(self, watcher: Watcher) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watcher = watcher
        self._raw = b""
        self._head = True

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._raw += data
        if self._head:
            head, found, rest = self._raw.partition(b"\r\n\r\n")
            if not found:
                return
            self._head, self._raw = False, rest
            assert b"transfer-encoding: chunked" in head.lower() or b" 204" in head, head
        self._watcher.came(b"".join(self._chunks()), now)

    def _chunks(self) -> Iterator[bytes]:
        """Yield the whole chunks; the server sends no frame in two."""
        while True:
            size, found, rest = self._raw.partition(b"\r\n")
            length = int(size, 16) if found else 0
            if not found or len(rest) < length + 2:
                return
            self._raw = rest[length + 2 :]
            yield rest[:length]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


def _request(url: str, head: str) -> bytes:
    host, port = _address(url)
    return f"{head}\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port
