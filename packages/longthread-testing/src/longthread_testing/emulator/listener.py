"""An ASGI application on a free port of this machine, in a thread."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

_STOP_SECONDS = 10.0
_KEPT_SECONDS = 75
"""How long an idle connection stays open, as at providers. After uvicorn's 5 seconds, a busy client may still write."""


class Listener:
    """The application, until `stop`. `port` is where it listens."""

    def __init__(self, app: ASGIApp) -> None:
        self._socket = listening(0)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(config(app))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="provider-emulator", daemon=True
        )
        self._thread.start()
        # The socket listens already: a client that comes too early waits in its queue.

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        self._socket.close()


def listening(port: int) -> socket.socket:
    """Return a socket that listens on this machine; port 0 takes a free one."""
    # asyncio sends small pieces at once only on sockets that name their protocol.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(100)
    return listener


def config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        lifespan="off",
        ws="none",
        timeout_keep_alive=_KEPT_SECONDS,
        timeout_graceful_shutdown=0,
    )
