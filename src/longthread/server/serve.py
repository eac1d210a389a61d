"""Serves the application on a socket, until Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from longthread.errors import AddressUnavailable, PortInUse
from longthread.llm.model_cache import ModelFactory
from longthread.llm.models import resolve_model
from longthread.runs.analyst import Analyst
from longthread.server.app import create_app
from longthread.server.security import is_loopback
from longthread.settings import Settings

GRACE_SECONDS = 5
"""How long requests may take to end when the server stops; runs and their streams end before."""

_log = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """Uvicorn that ends runs and their streams before it waits for requests."""

    def __init__(
        self, app: Starlette, listener: socket.socket, *, on_ready: Callable[[str], None] | None = None
    ) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            lifespan="on",
            ws="none",
        )
        super().__init__(config)
        self.url = url_of(listener)
        self._app = app
        self._listener = listener
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
        await super().startup(sockets or [self._listener])
        if self.started and self._on_ready is not None:
            self._on_ready(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the runs first: their streams end with them."""
        await self._app.state.served.close()
        await super().shutdown(sockets or [self._listener])


def run(
    settings: Settings,
    *,
    open_browser: bool = False,
    on_ready: Callable[[str], None] | None = None,
    models: ModelFactory = resolve_model,
) -> None:
    """Serve until Ctrl-C or SIGTERM, then stop the runs under way; they can be resumed.

    `on_ready` gets the URL once the server answers. Raises PortInUse, AddressUnavailable or StoreError.
    """

    def ready(url: str) -> None:
        if not is_loopback(settings.host):
            _log.warning("Anyone who reaches %s can read and ask: Longthread has no login yet.", url)
        if on_ready is not None:
            on_ready(url)
        if open_browser:
            webbrowser.open(url)

    with listen(settings.host, settings.port) as listener:

        async def serve() -> None:
            async with Analyst.open(settings, models=models) as analyst:
                await Server(create_app(settings, analyst=analyst), listener, on_ready=ready).serve()

        asyncio.run(serve())


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
