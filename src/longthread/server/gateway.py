"""The gateway's endpoints as an ASGI application, which the gateway's own process serves and the server mounts.

Files and batches of requests are passed on as they come. Addresses that clients get wrong are answered with the
right one.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import replace

import aiohttp
from starlette.types import Message, Receive, Scope, Send
from uvicorn.loops.auto import auto_loop_factory

from longthread.access.keys import is_in_address, remove_credential
from longthread.errors import LoginNeeded, ScopeMissing, SeveralKeys, StoreError, TooManyRequests
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming, Outgoing, decode_request
from longthread.gateway.model_request import Counts, StoreFailed
from longthread.gateway.service import (
    ANTHROPIC,
    BODY_LIMIT,
    COMPLETIONS,
    RESPONSES,
    Gateway,
    GatewayOptions,
    make_refusal,
    no_websockets,
    too_large,
)
from longthread.gateway.stored_calls import rebuild_in_background
from longthread.gateway.upstream import ANTHROPIC_URL, OPENAI_URL, Routes, Upstream
from longthread.otel.export import exporting
from longthread.server.authentication import Authentication, StreamWatch
from longthread.server.gateway_access import Door, require_token, shared_with
from longthread.server.http import HttpLimits, HttpServer, listen
from longthread.server.requests import until_gone
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.telemetry import TRACEPARENT, join_trace

_ANTHROPIC = ("/messages/count_tokens", "/messages/batches", "/messages")
_OPENAI = ("/chat/completions", "/responses", "/completions", "/embeddings", "/models", "/files")
_OLLAMA = re.compile(r"/api/(?:chat|generate|tags|show|embed|embeddings|ps|pull|version)")
_GEMINI = re.compile(r"/v1\w*/models/[^/]+:(?:\w*Contents?|countTokens|predict\w*)")
_AZURE = re.compile(r"/openai/deployments/[^/]+(?:/.*)?")


def is_anthropic(path: str) -> bool:
    """Whether a path means Anthropic's dialect, wherever it begins."""
    return path.rstrip("/").endswith(_ANTHROPIC) or path.startswith("/anthropic")


def hint(path: str, own: str) -> str:
    """Return what is wrong with a path that the gateway has not, and which address a client needs. `own` is the
    gateway's, such as `http://127.0.0.1:8766`."""
    missing = f"The gateway has no {path}."
    place = path.rstrip("/")
    if place.startswith("/v1/v1"):
        return f"{missing} This client adds /v1 itself: give it the address without /v1, {own}"
    if _OLLAMA.fullmatch(place):
        return f"{missing} It does not speak Ollama's own API. Choose an OpenAI-compatible provider, with {own}/v1"
    if _GEMINI.fullmatch(place):
        return f"{missing} It does not speak Gemini's own API. Choose an OpenAI-compatible provider, with {own}/v1"
    if _AZURE.fullmatch(place):
        return f"{missing} It has no deployments. Choose OpenAI and not Azure, with {own}/v1, and name the model"
    if is_anthropic(path):
        return f"{missing} Anthropic's clients want the address alone, {own}, and ask {own}/v1/messages"
    if end := next((each for each in _OPENAI if place.endswith(each)), None):
        return f"{missing} OpenAI's clients want the address with /v1, {own}/v1, and ask {own}/v1{end}"
    return f"{missing} OpenAI's clients want the address {own}/v1, Anthropic's want {own}"


def is_wrong(path: str) -> bool:
    """Whether a path is none of the gateway's endpoints, although it may begin as they do."""
    place = path.rstrip("/")
    twice = any(place.count(end) > 1 for end in ("/chat/completions", "/messages", "/v1"))
    return not path.startswith("/v1/") or place == "/v1" or twice or _GEMINI.fullmatch(place) is not None


_MB = 1024 * 1024
_BATCHES = "/v1/messages/batches"
_FORM = _MB
"""Bytes of a form around a file."""
_HELD = ("application/json", "application/x-www-form-urlencoded", "text/")
"""Kinds of bodies that may say which model they are for."""


def upload_limit(dialect: Dialect, incoming: Incoming) -> int | None:
    """Return how many bytes a body may have that is passed on unread, as the vendor has it; None: it is read first."""
    if incoming.path.rstrip("/") == _BATCHES:
        return 256 * _MB
    kind = (incoming.header("content-type") or _HELD[0]).strip().lower()
    if kind.startswith(_HELD):
        return None
    return (500 if dialect is ANTHROPIC else 512) * _MB + _FORM


class StreamedBody:
    """A request's body, piece by piece. Read it once.

    Attributes:
        is_too_large: it had more bytes than `limit`, so it was broken off.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self.limit = limit
        self._ended = asyncio.Event()
        self.is_too_large = False

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body. Raises ConnectionError: the client is gone, or sends too much."""
        size = 0
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError("The client is gone.")
                piece = message.get("body", b"")
                size += len(piece)
                if size > self.limit:
                    self.is_too_large = True
                    raise ConnectionAbortedError("The body is too large.")
                if piece:
                    yield piece
                if not message.get("more_body"):
                    return
        finally:
            self._ended.set()

    async def receive(self) -> Message:
        """Return what the client sends after the body."""
        await self._ended.wait()
        return await self._receive()


def declared_size(incoming: Incoming) -> int:
    """Return how many bytes a body says that it has, or 0."""
    size = incoming.header("content-length") or ""
    return int(size) if size.isdecimal() and len(size) < 20 else 0


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


_READ = frozenset(
    ("POST", f"/v1/{end}") for end in ("messages", "messages/count_tokens", "responses", "chat/completions")
)
"""Requests whose conversation is read."""


class GatewayRouter:
    """The endpoints of providers under `/v1`. Requests for other paths get 404, but for the health of a process.

    `door` says who may use them. `callers` finds the users whose keys requests carry, on a server with users.
    `has_health`: nothing else answers who watches the process.
    """

    def __init__(
        self, gateway: Gateway, door: Door, *, callers: Authentication | None = None, has_health: bool = False
    ) -> None:
        self._gateway = gateway
        self._door = door
        self._callers = callers
        self._health = _HEALTH if has_health else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        incoming = Incoming(scope["method"], scope["path"], headers, query=scope["query_string"])
        with join_trace(incoming.header(TRACEPARENT)):
            await self._reply(incoming, scope, receive, send)

    async def _reply(self, incoming: Incoming, scope: Scope, receive: Receive, send: Send) -> None:
        dialect = _dialect(incoming)
        origin = incoming.header("origin") if self._door.is_page(incoming) else None
        admitted = self._admit(dialect, incoming, scope)
        if isinstance(admitted, Incoming) and incoming.path not in self._health:
            admitted = await self._identify(dialect, admitted, scope)
        if isinstance(admitted, Outgoing):
            await _send(admitted, send, origin)
            return

        async def reply(_: Scope, receive: Receive, send: Send) -> None:
            await self._reply_to(dialect, admitted, receive, send, origin)

        callers, principal = self._callers, admitted.principal
        if callers is None or principal is None:
            await reply(scope, receive, send)
            return
        watch = StreamWatch(lambda: callers.find_by_key(scope), principal, breaks_off=True)
        await watch.run(reply, scope, receive, send)

    async def _reply_to(
        self, dialect: Dialect, admitted: Incoming, receive: Receive, send: Send, origin: str | None
    ) -> None:
        """Answer a request that may come in."""
        limit = upload_limit(dialect, admitted) if _is_relayed(admitted) else None
        if limit is not None:
            await self._pass_on(dialect, admitted, StreamedBody(receive, limit), send, origin)
            return
        body = await _body(receive)
        if body is None:
            return  # the client is gone
        try:
            read = decode_request(replace(admitted, body=body), BODY_LIMIT) if len(body) <= BODY_LIMIT else None
        except ValueError:
            read = None
        async with AsyncExitStack() as opened:
            with until_gone(receive):
                answer = await self._answer(dialect, read) if read is not None else too_large(dialect)
                if answer.stream is not None:
                    opened.push_async_callback(answer.stream.aclose)
                await _send(answer, send, origin)

    async def _pass_on(
        self, dialect: Dialect, incoming: Incoming, upload: StreamedBody, send: Send, origin: str | None
    ) -> None:
        """Answer a request without reading its body here."""
        if declared_size(incoming) > upload.limit:
            await _send(too_large(dialect, upload.limit), send, origin)
            return
        async with AsyncExitStack() as opened:
            pieces = upload.pieces()
            opened.push_async_callback(pieces.aclose)
            with until_gone(upload.receive):
                answer = await self._answer(dialect, replace(incoming, upload=pieces))
                if answer.stream is not None:
                    opened.push_async_callback(answer.stream.aclose)
                await _send(too_large(dialect, upload.limit) if upload.is_too_large else answer, send, origin)

    def _admit(self, dialect: Dialect, incoming: Incoming, scope: Scope) -> Incoming | Outgoing:
        """Return a request as the gateway may see it, or its refusal: of who may not ask, and of who asks for another
        path."""
        path, raw_path = incoming.path, scope.get("raw_path", b"")
        slashes = b"%2f" in raw_path.lower() and not path.startswith("/v1/models/")
        if slashes or _ODD.search(raw_path) or {".", ".."} & set(path.split("/")):
            return make_refusal(dialect, 404, "", f"The gateway has no {path}: its endpoints begin with /v1/.")
        is_health = path in self._health
        if is_wrong(path) and not is_health:
            return make_refusal(dialect, 404, "", hint(path, f"{scope['scheme']}://{incoming.header('host')}"))
        return self._door.admit(dialect, incoming, scope, is_open=is_health)

    async def _identify(self, dialect: Dialect, incoming: Incoming, scope: Scope) -> Incoming | Outgoing:
        """Return a request with the user whose key it carries, and without that key; or its refusal."""
        if self._callers is None:
            return incoming
        if is_in_address(incoming.path, incoming.query):
            message = "An API key of this server is in the address, which the provider would see. Send it in a header."
            return make_refusal(dialect, 400, "", message)
        try:
            principal = await self._callers.find_by_key(scope)
            if principal is None:
                raise LoginNeeded
            principal.expect_scope("gateway")
            self._callers.count_request(principal)
        except LoginNeeded as error:
            answer = make_refusal(dialect, 401, "" if dialect is ANTHROPIC else "invalid_api_key", str(error))
            answer.headers.append((b"www-authenticate", b"Bearer"))
            return answer
        except ScopeMissing as error:
            return make_refusal(dialect, 403, "", str(error))
        except SeveralKeys as error:
            return make_refusal(dialect, 400, "", str(error))
        except TooManyRequests as error:
            answer = make_refusal(dialect, 429, error.code, str(error), is_passing=True)
            answer.headers.append((b"retry-after", str(error.seconds).encode()))
            return answer
        headers = remove_credential(incoming.headers)
        return replace(incoming, headers=headers, principal=principal, credential=f"user {principal.user}")

    async def _answer(self, dialect: Dialect, incoming: Incoming) -> Outgoing:
        is_health = incoming.path in self._health
        try:
            return await (self._gateway.ready() if is_health else self._route_request(dialect, incoming))
        except StoreError as error:
            what = "Nothing can be stored" if is_health else "The upstreams and routes cannot be read"
            return make_refusal(dialect, 503, "", f"{what}: {error}")

    async def _route_request(self, dialect: Dialect, incoming: Incoming) -> Outgoing:
        route = _route(incoming)
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
    is_known = is_anthropic(incoming.path) or incoming.header("anthropic-version") or incoming.header("x-api-key")
    return own or (ANTHROPIC if is_known else COMPLETIONS)


def _route(incoming: Incoming) -> tuple[str, str]:
    return incoming.method, incoming.path.rstrip("/")


def _is_relayed(incoming: Incoming) -> bool:
    """Whether a request is passed on unread."""
    is_read = _route(incoming) in _READ or incoming.path.startswith("/v1/responses/")
    return incoming.path.startswith("/v1/") and not is_read


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


async def _send(answer: Outgoing, send: Send, origin: str | None = None) -> None:
    """Send an answer. `origin` is that of the page that may read it."""
    headers = list(answer.headers) if origin is None else shared_with(origin, answer.headers)
    if answer.stream is None:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.stream is None:
        await send({"type": "http.response.body", "body": answer.body})
        return
    with closing(_Pings(answer.ping, send)) as pings:
        try:
            async for piece in answer.stream:
                pings.note_output()
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

    def note_output(self) -> None:
        """Note that the stream says something. This is cheaper than to set the timer again."""
        self._last = self._loop.time()

    def _look(self) -> None:
        if self._loop.time() - self._last >= PING_SECONDS:
            self.note_output()
            self._sending = self._loop.create_task(self._say())
        self._timer = self._loop.call_at(self._last + PING_SECONDS, self._look)

    async def _say(self) -> None:
        await self._send({"type": "http.response.body", "body": self._ping, "more_body": True})

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()


_EXPIRY_SECONDS = 60.0
"""How often expired conversations are deleted."""


def run(
    settings: Settings,
    options: GatewayOptions,
    *,
    anthropic_url: str = "",
    openai_url: str = "",
    on_ready: Callable[[str], None] | None = None,
) -> Counts:
    """Serve until Ctrl-C or SIGTERM; return what happened. `on_ready` gets the URL once it answers. Raises StoreError;
    ServerError: it cannot listen, others would reach it without a token, or a token or an origin is none."""
    require_token(settings)
    door = Door.of(settings)

    async def serve() -> Counts:
        async with exporting(settings), open_store(settings.database, read_only=settings.read_only) as store:
            gateway = Gateway(store, own_routes(anthropic_url, openai_url), options)
            background: list[asyncio.Task[None]] = []
            if not settings.read_only:
                background.append(asyncio.create_task(_expire_in_background(store)))
                background.append(asyncio.create_task(rebuild_in_background(store)))
            try:
                callers = Authentication(settings, store) if door.has_users else None
                app = GatewayRouter(gateway, door, callers=callers, has_health=True)
                limits = HttpLimits.of(settings)
                await HttpServer(app, listener, limits=limits, on_ready=on_ready, lifespan="off").serve()
            finally:
                for task in background:
                    task.cancel()
                await gateway.close()
        return gateway.counts

    # A client that tries a WebSocket first gets 426; uvicorn would advise to install a library for it.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    fast = auto_loop_factory()
    with listen(settings.host, settings.port) as listener, asyncio.Runner(loop_factory=fast) as runner:
        return runner.run(serve())


async def _expire_in_background(store: Driver) -> None:
    await asyncio.sleep(_EXPIRY_SECONDS)
    # Here and not above: the first requests do not wait for it.
    from longthread.store.maintenance.retention import expire_states

    await expire_states(store, _EXPIRY_SECONDS)


def own_routes(anthropic_url: str = "", openai_url: str = "") -> Routes:
    """Return the vendors' own endpoints, which hold state, or others in their place. They come after the routes of the
    catalog."""
    own = [
        Upstream("anthropic", anthropic_url or ANTHROPIC_URL, ["anthropic"], holds_state=not anthropic_url),
        Upstream("openai", openai_url or OPENAI_URL, ["responses", "completions"], holds_state=not openai_url),
    ]
    return Routes({upstream.name: upstream for upstream in own})
