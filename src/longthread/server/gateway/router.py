"""The gateway's endpoints as an ASGI application, which the gateway's process serves and the server mounts."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import replace

import aiohttp
from starlette.types import Receive, Scope, Send

from longthread.errors import StoreError
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming, Outgoing, decoded
from longthread.gateway.model_request import StoreFailed
from longthread.gateway.service import (
    ANTHROPIC,
    BODY_LIMIT,
    COMPLETIONS,
    RESPONSES,
    Gateway,
    no_websockets,
    refused,
    too_large,
)
from longthread.server.origin import is_own_name, is_same_origin, own_names
from longthread.server.requests import until_gone

_log = logging.getLogger(__name__)
_ODD = re.compile(rb"%(?:2e|23|3f|5c|25|[01][0-9a-f]|7f)", re.IGNORECASE)
"""Escapes in a path that the next server may read in another way."""
PING_SECONDS = 15.0
"""How long a stream may be silent before the client gets an event that it skips."""
_HEALTH = ("/health", "/ready")
"""What the gateway's own process answers for who watches it."""
_DIALECTS: Sequence[tuple[str, Dialect]] = (
    ("/v1/messages", ANTHROPIC),
    ("/v1/responses", RESPONSES),
    ("/v1/chat/", COMPLETIONS),
)


class GatewayRouter:
    """The endpoints of providers under `/v1`. Requests for other paths get 404, but for the health of a process.

    `host` is the address that the server listens on, if nothing in front checks from where requests come.
    """

    def __init__(self, gateway: Gateway, *, host: str | None = None) -> None:
        self._gateway = gateway
        self._names = own_names(host) if host is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        incoming = Incoming(scope["method"], scope["path"], headers, query=scope["query_string"])
        dialect = _dialect(incoming)
        if refusal := self._refusal(dialect, incoming, scope):
            await _send(refusal, send)
            return
        body = await _body(receive)
        if body is None:
            return  # the client is gone
        try:
            read = decoded(replace(incoming, body=body), BODY_LIMIT) if len(body) <= BODY_LIMIT else None
        except ValueError:
            read = None
        async with AsyncExitStack() as opened:
            with until_gone(receive):
                answer = await self._answer(dialect, read) if read is not None else too_large(dialect)
                if answer.stream is not None:
                    opened.push_async_callback(answer.stream.aclose)
                await _send(answer, send)

    def _refusal(self, dialect: Dialect, incoming: Incoming, scope: Scope) -> Outgoing | None:
        """Return what another site's page gets, and who asks for another path."""
        path, raw_path = incoming.path, scope.get("raw_path", b"")
        slashes = b"%2f" in raw_path.lower() and not path.startswith("/v1/models/")
        odd = slashes or _ODD.search(raw_path) or {".", ".."} & set(path.split("/"))
        is_health = path in _HEALTH and self._names is not None
        if odd or not (path.startswith("/v1/") or is_health):
            return refused(dialect, 404, "", f"The gateway has no {incoming.path}: its endpoints begin with /v1/.")
        if path.startswith("/v1/v1/"):
            twice = f"The gateway has no {path}. This client adds /v1 itself: give it the address without /v1."
            return refused(dialect, 404, "", twice)
        if self._names is None:
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(incoming.headers)}
        host = headers.get("host", "")
        if not is_own_name(host, self._names, scope):
            return refused(dialect, 421, "", "The gateway does not go by that name. Use the address that it printed.")
        if not is_same_origin(headers, host):
            return refused(dialect, 403, "", "A web page sent this request. The gateway answers programs.")
        return None

    async def _answer(self, dialect: Dialect, incoming: Incoming) -> Outgoing:
        is_health = incoming.path in _HEALTH
        try:
            return await (self._gateway.ready() if is_health else self._routed(dialect, incoming))
        except StoreError as error:
            what = "The store does not answer" if is_health else "The upstreams and routes cannot be read"
            return refused(dialect, 503, "", f"{what}: {error}")

    async def _routed(self, dialect: Dialect, incoming: Incoming) -> Outgoing:
        route = (incoming.method, incoming.path.rstrip("/"))
        if route == ("POST", "/v1/messages"):
            return await self._gateway.reply(ANTHROPIC, incoming)
        if route == ("POST", "/v1/messages/count_tokens"):
            return await self._gateway.reply(ANTHROPIC, incoming, counts=True)
        if route == ("POST", "/v1/responses"):
            return await self._gateway.reply(RESPONSES, incoming)
        if route == ("POST", "/v1/chat/completions"):
            return await self._gateway.reply(COMPLETIONS, incoming)
        if route in (("POST", "/v1/responses/compact"), ("POST", "/v1/responses/input_tokens")):
            return await self._gateway.reply(RESPONSES, incoming, counts=True)
        if route == ("GET", "/v1/responses") and incoming.header("upgrade"):
            return no_websockets()
        if incoming.path.startswith("/v1/responses/"):
            return await self._gateway.stored_response(incoming)
        return await self._gateway.relay(dialect, incoming)


def _dialect(incoming: Incoming) -> Dialect:
    """Return the dialect of a request's path, or else the one that its headers tell."""
    own = next((dialect for begin, dialect in _DIALECTS if incoming.path.startswith(begin)), None)
    is_anthropic = incoming.header("anthropic-version") or incoming.header("x-api-key")
    return own or (ANTHROPIC if is_anthropic else COMPLETIONS)


async def _body(receive: Receive) -> bytes | None:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece = message.get("body", b"")
        size += len(piece)
        if size <= BODY_LIMIT + 1:
            pieces.append(piece)
        if not message.get("more_body"):
            return b"".join(pieces) if size <= BODY_LIMIT else bytes(BODY_LIMIT + 1)


async def _send(answer: Outgoing, send: Send) -> None:
    headers = list(answer.headers)
    if answer.stream is None:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.stream is None:
        await send({"type": "http.response.body", "body": answer.body})
        return
    with closing(_Pings(answer.ping, send)) as pings:
        try:
            async for piece in answer.stream:
                pings.said()
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except (aiohttp.ClientError, StoreFailed) as error:
            _log.warning("A stream ends before its last event: %s", str(error) or type(error).__name__)
            return  # so the server breaks the connection off
        await send({"type": "http.response.body", "body": b""})


class _Pings:
    """Sends `ping`, if that is not empty, whenever a stream has been silent for a while, until it is closed."""

    def __init__(self, ping: bytes, send: Send) -> None:
        self._ping = ping
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._sending: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(PING_SECONDS, self._look) if ping else None

    def said(self) -> None:
        """Note that the stream says something. This is cheaper than to set the timer anew."""
        self._last = self._loop.time()

    def _look(self) -> None:
        if self._loop.time() - self._last >= PING_SECONDS:
            self.said()
            self._sending = self._loop.create_task(self._say())
        self._timer = self._loop.call_at(self._last + PING_SECONDS, self._look)

    async def _say(self) -> None:
        await self._send({"type": "http.response.body", "body": self._ping, "more_body": True})

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()
