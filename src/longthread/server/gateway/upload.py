"""Bodies that the gateway passes on as they come: files, and batches of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.types import Message, Receive

from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming
from longthread.gateway.service import ANTHROPIC

_MB = 1024 * 1024
_BATCHES = "/v1/messages/batches"
_FORM = _MB
"""Bytes of a form around a file."""
_HELD = ("application/json", "application/x-www-form-urlencoded", "text/")
"""Kinds of bodies that may say which model they are for."""


def upload_limit(dialect: Dialect, incoming: Incoming) -> int | None:
    """Return how many bytes a body may have that is passed on unread, as the vendor has it; None: it is read first."""
    if incoming.path.rstrip("/") == _BATCHES:
        return 256 * _MB
    kind = (incoming.header("content-type") or _HELD[0]).strip().lower()
    if kind.startswith(_HELD):
        return None
    return (500 if dialect is ANTHROPIC else 512) * _MB + _FORM


class StreamedBody:
    """A request's body, piece by piece. Read it once.

    Attributes:
        is_too_large: it had more bytes than `limit`, so it was broken off.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self.limit = limit
        self._ended = asyncio.Event()
        self.is_too_large = False

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body. Raises ConnectionError: the client is gone, or sends too much."""
        size = 0
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError("The client is gone.")
                piece = message.get("body", b"")
                size += len(piece)
                if size > self.limit:
                    self.is_too_large = True
                    raise ConnectionAbortedError("The body is too large.")
                if piece:
                    yield piece
                if not message.get("more_body"):
                    return
        finally:
            self._ended.set()

    async def receive(self) -> Message:
        """Return what the client sends behind the body."""
        await self._ended.wait()
        return await self._receive()


def declared_size(incoming: Incoming) -> int:
    """Return how many bytes a body says that it has, or 0."""
    size = incoming.header("content-length") or ""
    return int(size) if size.isdecimal() and len(size) < 20 else 0
