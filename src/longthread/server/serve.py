"""Serves the application on a socket, until Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import webbrowser
from collections.abc import Callable
from types import FrameType

from starlette.applications import Starlette
from uvicorn.loops.auto import auto_loop_factory

from longthread.allocator import give_back_freed_memory
from longthread.llm.connections import ModelFactory
from longthread.llm.models import resolve_model
from longthread.runs.analyst import Analyst
from longthread.server.app import create_app
from longthread.server.http.limits import HTTP_LIMITS, HttpLimits
from longthread.server.http.server import HttpServer, listen
from longthread.server.json_log import log_as_json
from longthread.server.origin import is_loopback
from longthread.server.state import Served
from longthread.settings import Settings

_log = logging.getLogger(__name__)


class Server(HttpServer):
    """Ends runs and their streams before it waits for requests. SIGTERM leaves the runs to other servers, and a second
    signal ends the steps under way. Ctrl-C stops the runs."""

    def __init__(
        self,
        app: Starlette,
        listener: socket.socket,
        *,
        limits: HttpLimits = HTTP_LIMITS,
        on_ready: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(app, listener, limits=limits, on_ready=on_ready)
        self._app = app
        self._drains = False
        self._hurry = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._hurry.set)
        else:
            self._drains = sig == signal.SIGTERM
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leave or stop the runs first: their streams end with them."""
        served: Served = self._app.state.served
        if self._drains:
            await served.drain(self._hurry)
        await served.close()
        await super().shutdown(sockets or [self.listener])


def run(
    settings: Settings,
    *,
    open_browser: bool = False,
    on_ready: Callable[[str], None] | None = None,
    models: ModelFactory = resolve_model,
) -> None:
    """Serve until Ctrl-C, then stop the runs under way, which can be resumed; or until SIGTERM, then leave them to
    other servers.

    `on_ready` gets the URL once the server answers. Raises PortInUse, AddressUnavailable or StoreError.
    """

    give_back_freed_memory()
    if settings.log == "json":
        log_as_json()

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
                app, limits = create_app(settings, analyst=analyst), HttpLimits.of(settings)
                await Server(app, listener, limits=limits, on_ready=ready).serve()

        with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
            runner.run(serve())
