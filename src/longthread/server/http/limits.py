"""Bounds on what a client of the HTTP server may take: headers, silence, and connections.

Uvicorn with httptools has none of its own. An answer is bound by nothing here: an event stream may be silent for hours.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from longthread.server.http.peers import PEER, Peer
from longthread.settings import Settings

_LINGER_SECONDS = 1.0
_LINE = 4
"""Bytes of a header's line beside its name and value."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a client may take.

    `head_bytes` and `head_lines` are of a request's headers, with its first line; `head_seconds` from a connection or a
    request's first byte to the end of its headers; `body_seconds` without a byte of a body; `idle_seconds` between two
    requests; `connections` at once from one address.
    """

    head_bytes: int = 65_536
    head_lines: int = 100
    head_seconds: float = 15.0
    body_seconds: float = 30.0
    idle_seconds: float = 60.0
    connections: int = 2_000

    @classmethod
    def of(cls, settings: Settings) -> HttpLimits:
        return cls(
            head_bytes=settings.http_header_kb * 1024,
            head_lines=settings.http_header_lines,
            head_seconds=settings.http_header_timeout,
            body_seconds=settings.http_body_timeout,
            idle_seconds=settings.http_idle_timeout,
            connections=min(settings.http_connections, _open_files() * 3 // 4),
        )


def _open_files() -> int:
    """Return how many files and connections this process may have open; some are for the store and for models."""
    if sys.platform == "win32":
        return 8_192
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if most != resource.RLIM_INFINITY else 1_000_000


HTTP_LIMITS = HttpLimits()
"""Of a server without settings."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection, within limits. What goes beyond is answered with an error that names the limit, and closed. Its
    timers are of the event loop's clock."""

    def __init__(self, *args: Any, limits: HttpLimits, **named: Any) -> None:
        super().__init__(*args, **named)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False
        self._unread = 0
        """Bytes since the last that meant something: a header without an end is one event for the parser."""
        self._head = 0
        self._peer: Peer | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = self.client[0] if self.client else None
        if self.client is not None and self.server is not None and self.server[1] is not None:
            self._peer = Peer(self.client, (self.server[0], self.server[1]))
        if peer is not None:
            same = sum(isinstance(each, BoundedProtocol) and each._is_of(peer) for each in self.connections)
            if same > self._limits.connections:
                self._refuse(
                    503, f"There are {self._limits.connections} connections from your address already. Close some."
                )
                return
        self._wait(self._limits.head_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unread += len(data)
        if self._timer is None and not self._answering:
            self._wait(self._limits.head_seconds, self._head_is_late)
        super().data_received(data)
        if self._unread > self._limits.head_bytes:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(dict[str, Any], self.scope)[PEER] = self._peer
        self._head = 0
        if not self._answering:
            self._wait(self._limits.head_seconds, self._head_is_late)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)  # those behind a body, too
        self._head += len(name) + len(value) + _LINE
        if len(self.headers) > self._limits.head_lines or self._head > self._limits.head_bytes:
            self._refuse_head()

    def on_headers_complete(self) -> None:
        self._unread = 0
        if self._head + len(self.url) > self._limits.head_bytes:
            self._refuse_head()
        if self._refused:
            return
        super().on_headers_complete()
        self._wait(self._limits.body_seconds, self._body_is_late)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if not self._refused:
            self._wait(self._limits.body_seconds, self._body_is_late)
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        self._wait_no_more()
        if self._refused:
            return
        super().on_message_complete()
        if not self._answering:  # it was answered before it was read
            self._wait(self._limits.idle_seconds, self.timeout_keep_alive_handler)

    def _is_of(self, peer: str) -> bool:
        return not self._refused and self.client is not None and self.client[0] == peer

    @property
    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self, seconds: float, late: Any) -> None:
        self._wait_no_more()
        self._timer = self.loop.call_later(seconds, late)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _head_is_late(self) -> None:
        if self._unread:
            self._refuse(408, f"The headers took more than {self._limits.head_seconds:g} seconds. Send them at once.")
        else:
            self.timeout_keep_alive_handler()

    def _body_is_late(self) -> None:
        if self.flow.read_paused:  # we do not read: the client cannot send
            self._wait(self._limits.body_seconds, self._body_is_late)
            return
        self._refuse(
            408, f"Nothing of the body came for {self._limits.body_seconds:g} seconds. Send it without a pause."
        )

    def _refuse_head(self) -> None:
        kilobytes = self._limits.head_bytes // 1024
        self._refuse(
            431, f"A request may have {self._limits.head_lines} headers, of {kilobytes} KB in all. Send fewer."
        )

    def _refuse(self, status: int, why: str) -> None:
        """Answer, unless an answer is under way, and close the connection."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        begun = self._answering and self.cycle.response_started
        if self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if begun or not self.transport.can_write_eof():
            self._wait_no_more()
            self.transport.close()
        else:
            text = f"{why}\n".encode()
            head = (
                f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(STATUS_LINE[status] + head.encode() + text)
            # Whoever is still sending would lose the answer if the connection were closed now.
            self.transport.write_eof()
            self.flow.resume_reading()
            self._wait(_LINGER_SECONDS, self.transport.close)
