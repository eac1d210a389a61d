"""The guard in front of every route: it checks `Host`, `Origin` and body size, and sets security headers.

A web page could make a user's browser call the server, by DNS rebinding (hence the check of `Host`) or across origins
(hence the check of `Origin`). Who may use a route, `access_table.py` says.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longthread.access.keys import has_credential
from longthread.server.problems import Problem
from longthread.server.requests import is_own_name, is_same_origin, origin_of, own_names

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class RequestGuard:
    """ASGI middleware. `host` is what the server listens on, `public_url` what people open. Bodies above `limit` bytes
    are refused; `limits` has others, by the beginning of the path. The application of the paths that begin with
    `unguarded` checks all of that itself."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        limit: int,
        limits: Mapping[str, int] | None = None,
        unguarded: str | None = None,
        public_url: str | None = None,
    ) -> None:
        self._app = app
        self._names = own_names(host, public_url)
        self._origin = origin_of(public_url) if public_url is not None else None
        self._limit = limit
        self._limits = limits or {}
        self._unguarded = unguarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self._unguarded is not None and scope["path"].startswith(self._unguarded):
            await self._app(scope, receive, send_guarded)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        body = _Body(receive, self._most(scope["path"]))
        await self._app(scope, body.receive, send_guarded)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        path = scope["path"]
        host = headers.get("host", "")
        if not is_own_name(host, self._names, scope):
            detail = "This server does not go by that name. Open it under the address that it printed, or under a name "
            detail += "that its operator gave it with --host."
            return Problem(421, "unknown_host", detail, path=path)
        is_public = self._origin is not None and headers.get("origin", "").lower() == self._origin
        # A browser sends a cookie for another site's page, but no key, unless the page has it.
        is_safe = scope["method"] in _READING or is_public or has_credential(scope["headers"])
        if not is_safe and not is_same_origin(headers, host):
            detail = "Another site's page sent this request. Send it from this server's page, or from a program."
            return Problem(403, "cross_origin", detail, path=path)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most(path):
            most = f"{self._most(path):,}"
            detail = f"The request is larger than {most} bytes. Put the data into a file and ask that as a source."
            return Problem(413, "request_too_large", detail, path=path)
        return None

    def _most(self, path: str) -> int:
        return next((limit for begins, limit in self._limits.items() if path.startswith(begins)), self._limit)


class _Body:
    """Counts a request's body: a chunked one has no Content-Length."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._left = limit

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                # The application sees a disconnected client, and the body is dropped.
                return {"type": "http.disconnect"}
        return message
