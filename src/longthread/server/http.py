"""Uvicorn on a socket of ours, until Ctrl-C; the bounds on its clients, and who they are within this machine.

Uvicorn with httptools has no bounds of its own on headers, silence and connections. An answer is bound by nothing
here: an event stream may be silent for hours.

A proxy on this machine connects from loopback, as the owner does, and may add nothing to what it hands on. It mostly
runs as a user of its own, such as www-data. Linux tells whose program is at the other end of a connection: see
sock_diag(7), and proc(5) on /proc/net/tcp.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from longthread.errors import AddressUnavailable, PortInUse
from longthread.settings import Settings

PEER = "longthread.peer"
"""The key of a request's scope that holds its `Peer`."""
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"
_NO_SOCKET = "0"
_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_NO_COOKIE = 0xFFFFFFFF
_ANY_STATE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
"""Of a netlink message: length, type, flags, number, sender."""
_PORTS = struct.Struct("!HH")
"""Of the socket's two ends, its own first: 0 of a listener, which the kernel tells where no connection is."""
_PORTS_AT = _HEADER.size + 4
_OWNER = struct.Struct("=II")
"""User and inode: what ends an `inet_diag_msg`."""
_OWNER_AT = _HEADER.size + 64
_WAIT_SECONDS = 1.0


class Peer:
    """The peer of one connection, by the addresses of its two ends. It is looked up once, when somebody needs it."""

    def __init__(self, peer: tuple[str, int], own: tuple[str, int]) -> None:
        self._peer = peer
        self._own = own

    @cached_property
    def is_other_users(self) -> bool:
        """Whether another user's program is there, or a program of an unknown user: it has closed its end. False where
        the system has no such table, or not of this server's ports."""
        user = _find_user(self._peer, self._own)
        return self._is_in_tables() if user is None else user != os.geteuid()

    def _is_in_tables(self) -> bool:
        peer_port, own_port = f"{self._peer[1]:04X}", f"{self._own[1]:04X}"
        is_known, users = False, []
        for local, remote, state, user, inode in _sockets():
            if local == own_port and state == _LISTENS:
                is_known = True
            if local == peer_port and remote == own_port:
                users.append(user if inode != _NO_SOCKET else "")
        if users:
            return any(user != str(os.geteuid()) for user in users)
        return is_known


def _find_user(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Return the user of the peer's socket, which the kernel looks up by its address; None where it tells none."""
    if sys.platform != "linux":
        return None
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    try:
        ends = [socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (peer, own)]
        connection = struct.pack("!HH16s16s", peer[1], own[1], *ends) + struct.pack("=3I", 0, _NO_COOKIE, _NO_COOKIE)
        body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY_STATE) + connection
        header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(_WAIT_SECONDS)
            kernel.sendto(header + body, (0, 0))
            reply = kernel.recv(4096)
        if _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:
            return None
        if _PORTS.unpack_from(reply, _PORTS_AT) != (peer[1], own[1]):
            return None
        user, inode = _OWNER.unpack_from(reply, _OWNER_AT)
    except (OSError, struct.error):
        return None
    return user if inode else None


def _sockets() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the local port, the remote port, the state, the user and the inode of each TCP socket."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                each = line.split()
                yield each[1].rpartition(":")[2], each[2].rpartition(":")[2], each[3], each[7], each[9]


_LINGER_SECONDS = 1.0
_LINE = 4
"""Bytes of a header's line in addition to its name and value."""


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
        super().on_header(name, value)  # headers after a body, too
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
            # A client that is still sending would lose the answer if the connection were closed now.
            self.transport.write_eof()
            self.flow.resume_reading()
            self._wait(_LINGER_SECONDS, self.transport.close)


GRACE_SECONDS = 5
"""How long requests may take to end when the server stops."""


class HttpServer(uvicorn.Server):
    """An ASGI application on a listening socket. `on_ready` gets the URL once it answers."""

    def __init__(
        self,
        app: Any,
        listener: socket.socket,
        *,
        limits: HttpLimits = HTTP_LIMITS,
        on_ready: Callable[[str], None] | None = None,
        lifespan: Literal["on", "off"] = "on",
    ) -> None:
        config = uvicorn.Config(
            app,
            http=cast(Any, partial(BoundedProtocol, limits=limits)),
            timeout_keep_alive=cast(int, limits.idle_seconds),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a header never decides who the peer is: see `origin.py`
            timeout_graceful_shutdown=GRACE_SECONDS,
            lifespan=lifespan,
            ws="none",
        )
        super().__init__(config)
        self.url = url_of(listener)
        self.listener = listener
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, without raising them again as uvicorn does: that would abort closing the
        store."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then call `on_ready`."""
        await super().startup(sockets or [self.listener])
        if self.started and self._on_ready is not None:
            self._on_ready(self.url)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a host's first address. Raises PortInUse or AddressUnavailable."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
    except OSError as error:
        raise AddressUnavailable(host=host, port=port, reason=f"{error.strerror or error}.") from error
    try:
        if os.name == "posix":
            # Elsewhere this would let two programs share the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(host=host, port=port) from error
        raise AddressUnavailable(host=host, port=port, reason=f"{error.strerror or error}.") from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"
