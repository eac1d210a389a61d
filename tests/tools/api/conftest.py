"""An HTTP server on a socket of this machine, which answers what a test tells it to."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass(frozen=True)
class Request:
    """What came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answering = Callable[[Request], bytes | Awaitable[bytes]]


def answer(body: bytes | str = b"{}", status: int = 200, **headers: str) -> bytes:
    """A response. Of header names, _ is -."""
    data = body.encode() if isinstance(body, str) else body
    lines = {"Content-Type": "application/json", "Content-Length": str(len(data)), "Connection": "close"}
    lines |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + data


@dataclass
class Server:
    """It keeps what came, and counts connections."""

    port: int = 0
    came: list[Request] = field(default_factory=list)
    connections: int = 0
    answering: Answering = lambda _: answer()
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def says(self, *answers: bytes) -> None:
        """Answers in turn; the last one is repeated."""
        left = list(answers)
        self.answering = lambda _: left.pop(0) if len(left) > 1 else left[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            request = await _read(reader)
            if request is not None:
                self.came.append(request)
                found = self.answering(request)
                writer.write(found if isinstance(found, bytes) else await found)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            return
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


@asynccontextmanager
async def _listening() -> AsyncIterator[Server]:
    one = Server()
    listening = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = listening.sockets[0].getsockname()[1]
    yield one
    listening.close()
    await listening.wait_closed()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with _listening() as one:
        yield one


@pytest.fixture
async def other() -> AsyncIterator[Server]:
    """A second one, at another port."""
    async with _listening() as one:
        yield one
