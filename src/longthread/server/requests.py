"""Requests: where they come from, and how they are counted, logged and ended when their client is gone.

Without a login, the server recognizes the owner, who may do what the command line may, by the request itself, never by
the address that it listens on. A web page could also make the owner's browser call the server, by DNS
rebinding (hence the check of `Host`) or across origins (hence the check of `Origin`). Logs hold no contents.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longthread.metrics import HTTP_REQUESTS, STREAMS
from longthread.server.http import PEER, Peer
from longthread.telemetry import TRACEPARENT, join_trace

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

        async def send_counted(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                streams = Headers(raw=message["headers"]).get("content-type", "").startswith(EVENT_STREAM)
                STREAMS.add(by=int(streams))
            await send(message)

        try:
            with join_trace(Headers(scope=scope).get(TRACEPARENT)):
                await self._app(scope, receive, send_counted)
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
    gone = asyncio.create_task(_wait_for_disconnect(receive))

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


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\s]+)(?::(\d{1,5}))?")
_OF_PROXIES = re.compile(
    rb".*forwarded.*|via|(.*-)?client-ip|(x-)?(real|original|envoy|remote|cf|fastly|fly|akamai|tailscale|azure|vercel)-.*"
    rb"|x-(auth-request|authenticated|appengine)-.*|x-scheme|cdn-loop|x-amzn-trace-id|x-amz-cf-id|x-cloud-trace-context"
)
"""The names of headers that proxies, networks and logins add to what they hand on, in lower case and with `-`."""


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_forwarded(scope: Scope) -> bool:
    """Whether a proxy handed a request on. HTTP/1.0 is what some speak that add no header; no browser does."""
    return scope.get("http_version") == "1.0" or any(
        _OF_PROXIES.fullmatch(name.lower().replace(b"_", b"-")) for name, _ in scope["headers"]
    )


def is_owner(scope: Scope) -> bool:
    """Return whether a request comes from the owner: straight from this machine, under a name of loopback.

    The program at the other end of a Unix socket is not known, so it does not count as the owner. Nor does a program of
    another user of this machine, where the system tells: it may be a proxy that adds no header.
    """
    peer = scope.get("client")
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
    named = len(hosts) == 1 and is_loopback(_name_of(hosts[0]) or "")
    if peer is None or not is_loopback(peer[0]) or not named or is_forwarded(scope):
        return False
    program: Peer | None = scope.get(PEER)
    return program is None or not program.is_other_users


def own_names(host: str, public_url: str | None = None) -> set[str]:
    """Return the names of a server that listens on `host`, and that people open at `public_url`."""
    public = urlsplit(public_url or "").hostname
    return {host.strip("[]").lower(), "localhost", socket.gethostname().lower(), *filter(None, [public])}


def origin_of(url: str) -> str:
    """Return the origin of an address, such as https://longthread.example."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def is_own_name(header: str, names: Collection[str], scope: Scope) -> bool:
    """Return whether a `Host` is this server's. For a direct caller any IP address is, since DNS rebinding needs a
    name. Through a proxy only loopback addresses are: others are the proxy's."""
    name = _name_of(header)
    if name is None:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return name in names or is_loopback(name) or not is_forwarded(scope)


def is_same_origin(headers: Mapping[str, str], host: str) -> bool:
    """Whether this server's own page, or a program, sent a request. `headers` have names in lower case."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() in {f"http://{host}".lower(), f"https://{host}".lower()}
    return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}


def _name_of(header: str) -> str | None:
    """Return the host of a `Host` header without its port, in lower case; None if it is none."""
    found = _HOST.fullmatch(header)
    return None if found is None else found[1].strip("[]").lower().rstrip(".")
