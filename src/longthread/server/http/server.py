"""Uvicorn on a socket of ours, until Ctrl-C."""

from __future__ import annotations

import errno
import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, cast

import uvicorn

from longthread.errors import AddressUnavailable, PortInUse
from longthread.server.http.limits import HTTP_LIMITS, BoundedProtocol, HttpLimits

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
