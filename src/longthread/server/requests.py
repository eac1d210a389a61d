"""Counts and logs requests, without what is in them, and ends those whose client is gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longthread.metrics import HTTP_REQUESTS, STREAMS

EVENT_STREAM = "text/event-stream"
NO_STORE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no cache keeps it, and nginx hands it on as it comes."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = logging.getLogger(__name__)


class CountedRequests:
    """ASGI middleware. It counts a request under the path of its route, where ids have their names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, streams = time.perf_counter(), 500, False

        async def counted(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                streams = Headers(raw=message["headers"]).get("content-type", "").startswith(EVENT_STREAM)
                STREAMS.add(by=int(streams))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            STREAMS.add(by=-int(streams))
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = route_of(scope)
            HTTP_REQUESTS.add(method, route, status)
            fields: dict[str, Any] = {"method": method, "route": route, "status": status}
            fields["ms"] = round(1000 * (time.perf_counter() - began), 1)
            ids = scope.get("path_params", {})
            fields |= {name: unquote(ids[name]) for name in ("thread_id", "run_id") if name in ids}
            _log.info("request", extra={"fields": fields})


def route_of(scope: Scope) -> str:
    """Return the route's path as it is written in the code; for files and the gateway, the prefix they are under."""
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        return str(path)
    under = scope.get("root_path", "").removeprefix(scope.get("app_root_path", ""))
    return under or "none"


@contextmanager
def until_gone(receive: Receive) -> Iterator[None]:
    """End the block when the client is gone: whatever it asked for is in vain."""
    sending = asyncio.current_task()
    assert sending is not None
    gone = asyncio.create_task(_disconnected(receive))

    def leave(_: object) -> None:
        sending.cancel()

    gone.add_done_callback(leave)
    try:
        yield
    except asyncio.CancelledError:
        # The server may have cancelled it as well.
        if not gone.done() or sending.uncancel():
            raise
    finally:
        gone.remove_done_callback(leave)
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
