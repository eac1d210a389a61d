"""Authentication of the protocol over HTTP, and the end of its requests when the server closes.

Behind `RequestGuard`, which checks `Host` and the body. Here every request of another origin is refused, as the
protocol asks, and every one without the configured token. Without a token only the owner may ask.
"""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longthread.server.origin import is_owner, is_same_origin
from longthread.server.problems import Problem

_GRACE = 2.0
"""Seconds for sending answers when the server closes."""
_BEARER = "bearer "


class OpenRequests:
    """The requests under way."""

    def __init__(self) -> None:
        self._answers: dict[anyio.CancelScope, asyncio.Event] = {}
        self._streams: set[anyio.CancelScope] = set()

    def enter(self, cancel: anyio.CancelScope, method: str) -> None:
        """Add a request. A GET is a stream that ends only with the session."""
        if method == "GET":
            self._streams.add(cancel)
        else:
            self._answers[cancel] = asyncio.Event()

    def leave(self, cancel: anyio.CancelScope) -> None:
        """Remove an answered request."""
        self._streams.discard(cancel)
        if cancel in self._answers:
            self._answers.pop(cancel).set()

    async def close(self) -> None:
        """Cancel streams at once, and other requests that are not answered in time."""
        for stream in list(self._streams):
            stream.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                for done in list(self._answers.values()):
                    await done.wait()
        for answer in list(self._answers):
            answer.cancel()


class Authenticator:
    """ASGI middleware. Every request needs the `token`: `Authorization: Bearer` or `X-Api-Key`. Without one, it is
    the owner's."""

    def __init__(self, app: ASGIApp, *, token: str | None, requests: OpenRequests) -> None:
        self._app = app
        self._token = token
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        sender = _Sender(send)
        with anyio.CancelScope() as cancel:
            self._requests.enter(cancel, scope["method"])
            try:
                await self._app(scope, receive, sender.send)
            finally:
                self._requests.leave(cancel)
        if cancel.cancelled_caught:
            await sender.finish(scope, receive)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        if not is_same_origin(headers, headers.get("host", "")):
            detail = "A page of another origin sent this request. Use a program, which sends no Origin."
            return Problem(403, "cross_origin", detail, path=scope["path"])
        if self._token is None and not is_owner(scope):
            detail = "This server has no token, and answers only the user of its own machine, without a proxy. Others "
            detail += "need a token: its operator sets LONGTHREAD_MCP_TOKEN."
            return Problem(403, "not_local", detail, path=scope["path"])
        if self._token is None or _is(self._token, headers):
            return None
        detail = "Send the token of this server: `Authorization: Bearer TOKEN`, as LONGTHREAD_MCP_TOKEN says it."
        problem = Problem(401, "token_wrong", detail, path=scope["path"])
        problem.headers["WWW-Authenticate"] = "Bearer"
        return problem


def _is(token: str, headers: Headers) -> bool:
    header = headers.get("authorization", "")
    given = header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else headers.get("x-api-key", "")
    return hmac.compare_digest(given.encode(), token.encode())


class _Sender:
    """Follows what was sent of an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._over = False

    async def send(self, message: Message) -> None:
        self._begun = True
        self._over = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self, scope: Scope, receive: Receive) -> None:
        """End a cancelled answer."""
        if not self._begun:
            problem = Problem(503, "closing", "This server is closing. Try again later.", path=scope["path"])
            await problem(scope, receive, self._send)
        elif not self._over:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
