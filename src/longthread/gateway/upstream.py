"""The providers that the gateway asks, and where requests go, as the catalog says now."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache, partial
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from yarl import URL

from longthread.errors import LongthreadError, StoreError
from longthread.gateway.http import REPLY_LIMIT, Incoming, ReplyTooLarge, for_upstream, header_of
from longthread.model.catalog import RouteDefinition, UpstreamDefinition
from longthread.store import catalog
from longthread.store.driver import Driver
from longthread.tools.secrets import read_secrets

ANTHROPIC_URL, OPENAI_URL = "https://api.anthropic.com", "https://api.openai.com"
_VERSION = re.compile(r"[-.@_]?\d[\w.]*|-latest\b")
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=600)
"""Seconds. A stream that is silent for longer is broken: its client, who gets pings, does not see it."""
_PATIENT = aiohttp.ClientTimeout(total=None, sock_connect=15)
"""Of a reply that is not streamed. Models think for as long as they like; the client knows how long it waits."""
_IDLE_SECONDS = 60
_HEADER_LIMIT = 64 * 1024
"""Bytes of a header of a response."""
_AT_ONCE = 256 * 1024
"""Bytes of a body that are sent in one piece."""
_UNESCAPED = "/:@!$&'()*+,;=~%"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider.

    Attributes:
        dialects: the ones that it speaks.
        api_key: ours for it; None: the client's own credentials go up.
        holds_state: it knows threads and responses by their ids.
        problem: why it cannot be asked, such as a secret that is not set; empty: it can.
    """

    name: str
    base_url: str
    dialects: Sequence[str]
    api_key: str | None = field(default=None, repr=False)
    holds_state: bool = False
    problem: str = ""
    id: str = ""

    @property
    def item(self) -> str:
        """As what it is granted."""
        return self.id or self.name

    def url(self, dialect: str, path: str, query: bytes) -> str:
        """Return the address of a path such as `/v1/messages`.

        As for the vendors' SDKs, a base with a path of its own stands for OpenAI's `/v1`, and for Anthropic's if it
        ends with that.
        """
        base = self.base_url.rstrip("/")
        own = urlsplit(base).path
        has_version = own.endswith("/v1") if dialect == "anthropic" else bool(own)
        address = base + quote(path.removeprefix("/v1") if has_version else path, safe=_UNESCAPED)
        return f"{address}?{query.decode('latin-1')}" if query else address

    def credentials(self, dialect: str) -> list[tuple[bytes, bytes]]:
        if self.api_key is None:
            return []
        if dialect == "anthropic":
            return [(b"x-api-key", self.api_key.strip().encode())]
        return [(b"authorization", f"Bearer {self.api_key.strip()}".encode())]


class NoUpstream(Exception):
    """No upstream is asked. `status` is that of the error: 503 if a later request may find one."""

    def __init__(self, message: str, status: int = 404) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Route:
    """Which upstream is asked for models whose name fits a pattern, and by which name; None: by the client's."""

    models: str
    upstream: str
    model: str | None = None
    name: str = ""
    id: str = ""

    @property
    def item(self) -> str:
        """As what it is granted."""
        return self.id or self.name


@dataclass(frozen=True)
class Routes:
    """Where requests go: to the upstream of the first route that fits the model, or else to the first upstream that
    speaks the dialect and that no route names. Of several routes with that pattern, it is the first one whose upstream
    speaks the dialect."""

    upstreams: Mapping[str, Upstream]
    routes: Sequence[Route] = ()

    def find(self, dialects: Sequence[str], model: str) -> tuple[Upstream, str]:
        """Return the upstream for a model that speaks one of these dialects, and the model's name there.

        Raises NoUpstream. A model that a route fits is asked nowhere else: another vendor would get its key.
        """
        fitting = [route for route in self.routes if fnmatchcase(model, route.models)]
        for route in fitting:
            upstream = self.upstreams.get(route.upstream)
            if route.models == fitting[0].models and upstream and _speaks(upstream, dialects):
                return _usable(upstream), route.model or model
        if fitting:
            raise NoUpstream(self._explain_unserved(fitting[0], dialects, model))
        routed = {route.upstream for route in self.routes}
        general = (each for each in self.upstreams.values() if each.name not in routed and _speaks(each, dialects))
        if (upstream := next(general, None)) is not None:
            return _usable(upstream), model
        told = f" for the model {model}" if model else ""
        raise NoUpstream(f"This gateway has no upstream that speaks {dialects[0]}{told}.")

    def _explain_unserved(self, route: Route, dialects: Sequence[str], model: str) -> str:
        upstream = self.upstreams.get(route.upstream)
        told = f"The route {route.name} sends the model {model} to the upstream {route.upstream}, which"
        if upstream is None:
            return f"{told} is not active. Activate it, or change the route."
        spoken = ", ".join(upstream.dialects)
        return f"{told} speaks {spoken}, and not {dialects[0]}. Use a client that speaks {spoken}, or change the route."


def _speaks(upstream: Upstream, dialects: Sequence[str]) -> bool:
    return any(dialect in upstream.dialects for dialect in dialects)


def _usable(upstream: Upstream) -> Upstream:
    if upstream.problem:
        raise NoUpstream(f"The upstream {upstream.name} cannot be asked: {upstream.problem}", 503)
    return upstream


class UpstreamResponse:
    """A provider's answer: its status and headers, and a body as it comes: encoded, in any pieces. Read it to its end
    or close it."""

    def __init__(self, found: aiohttp.ClientResponse) -> None:
        self._found = found
        self.status = found.status
        self.headers = [(name.lower(), value) for name, value in found.raw_headers]

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        return header_of(self.headers, name)

    async def piece(self) -> bytes:
        """Wait until something has come, and return all of it; nothing at the end. Raises aiohttp.ClientError: the
        connection is lost."""
        return await self._found.content.readany()

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body. Raises aiohttp.ClientError: the connection is lost."""
        try:
            while piece := await self.piece():
                yield piece
        finally:
            self.close()

    async def read(self, limit: int = REPLY_LIMIT) -> bytes:
        """Return the whole body, as it is encoded. Raises aiohttp.ClientError: the connection is lost, or it has more
        bytes than `limit`."""
        found = bytearray()
        try:
            while piece := await self.piece():
                found += piece
                if len(found) > limit:
                    raise ReplyTooLarge(limit)
            return bytes(found)
        finally:
            self.close()

    def close(self) -> None:
        """Stop the provider, if it has not ended."""
        self._found.close()


class Connections:
    """Connections to upstreams, shared by all requests of one event loop. Close them when done. Proxies are those of
    the environment."""

    def __init__(self) -> None:
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._ways: dict[tuple[str, str], dict[str, Any]] = {}

    async def send(
        self, upstream: Upstream, dialect: str, asked: Incoming, body: bytes, *, is_patient: bool = False
    ) -> UpstreamResponse:
        """Send a request up; the response's body is not read. `is_patient`: wait for it as long as the client does.
        Raises aiohttp.ClientError, also for a setting with which nothing can be sent: a name that is none, a missing
        file of certificates, a line break in a key."""
        try:
            url = _parse_url(upstream.url(dialect, asked.path, asked.query))
        except ValueError as error:
            raise aiohttp.InvalidURL(upstream.base_url, str(error)) from error
        send = partial(self._sent, url, upstream, dialect, asked, body, _PATIENT if is_patient else _TIMEOUT)
        reused: list[bool] = []
        try:
            try:
                return await send(self._open_session(), reused)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                # A server closes a connection that was idle for long, as the next request comes. Nothing was answered.
                if not reused:
                    raise
                return await send(self._open_session(is_fresh=True), reused)
        except aiohttp.ClientError:
            raise
        except (ValueError, OSError) as error:
            raise aiohttp.ClientConnectionError(str(error)) from error

    async def _sent(
        self,
        url: URL,
        upstream: Upstream,
        dialect: str,
        asked: Incoming,
        body: bytes,
        limits: aiohttp.ClientTimeout,
        session: aiohttp.ClientSession,
        reused: list[bool],
    ) -> UpstreamResponse:
        """Send a request up. `reused` gets a member if that takes a connection that was open already."""
        headers = for_upstream(asked.headers, upstream.credentials(dialect))
        if asked.encoded is not None and body == asked.body:
            body = asked.encoded
        elif asked.encoded is not None:
            headers = [(name, value) for name, value in headers if name != b"content-encoding"]
        if asked.upload is not None:
            headers += [each for each in asked.headers if each[0] == b"content-length"]
        elif len(body) > _AT_ONCE:
            headers.append((b"content-length", str(len(body)).encode()))
        found = await session.request(
            asked.method,
            url,
            headers=[(name.decode(), _text(value)) for name, value in headers],
            data=asked.upload or (_slices(body) if len(body) > _AT_ONCE else body or None),
            allow_redirects=False,
            timeout=limits,
            trace_request_ctx=reused,
            **self._way(url.scheme, url.host or "", url.port),
        )
        return UpstreamResponse(found)

    def _open_session(self, *, is_fresh: bool = False) -> aiohttp.ClientSession:
        """Return the session, or the one that opens a connection for each request."""
        if is_fresh not in self._sessions:
            traces = aiohttp.TraceConfig()
            traces.on_connection_reuseconn.append(_note_reuse)
            self._sessions[is_fresh] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True)
                if is_fresh
                else aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
                trace_configs=[] if is_fresh else [traces],
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
                max_line_size=_HEADER_LIMIT,
                max_field_size=_HEADER_LIMIT,
            )
        return self._sessions[is_fresh]

    def _way(self, scheme: str, host: str, port: int | None) -> dict[str, Any]:
        """Return aiohttp's arguments about the proxy and the certificates for a host. Raises aiohttp.InvalidURL: the
        proxy is no HTTP proxy."""
        place = f"{host}:{port}"
        if (scheme, place) not in self._ways:
            is_direct = proxy_bypass(host) or proxy_bypass(place)
            proxy = None if is_direct else _proxy(scheme)
            is_secure = scheme == "https" or (proxy or "").lower().startswith("https:")
            self._ways[scheme, place] = {"proxy": proxy, "ssl": _certificates() if is_secure else True}
        return self._ways[scheme, place]

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


async def _note_reuse(session: object, context: Any, params: object) -> None:
    """Note that a request takes a connection that was open already."""
    context.trace_request_ctx.append(True)


def _proxy(scheme: str) -> str | None:
    """Return the environment's proxy. Raises aiohttp.InvalidURL: it is no HTTP proxy."""
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and not proxy.lower().startswith(("http://", "https://")):
        raise aiohttp.InvalidURL(proxy, "It is no HTTP proxy.")
    return proxy


async def _slices(body: bytes) -> AsyncGenerator[bytes]:
    """Yield a large body in pieces: other requests go on while it is sent."""
    for at in range(0, len(body), _AT_ONCE):
        yield body[at : at + _AT_ONCE]


def _text(value: bytes) -> str:
    """Return a header's value for aiohttp, which writes UTF-8. Other bytes, which no known client sends, are read as
    Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


@lru_cache(256)
def _parse_url(url: str) -> URL:
    """Raises ValueError: it is no address of a server."""
    found = URL(url, encoded=True)
    if found.scheme not in ("http", "https") or not found.host:
        raise ValueError("It is no address that begins with http:// or https://.")
    return found.with_user(None)


@cache
def _certificates() -> ssl.SSLContext:
    """Return whom to trust: those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, or else of the package certifi."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file, capath=folder)
    return ssl.create_default_context(cafile=certifi.where())


def family_of(model: str) -> str:
    """Return a model's family: its name without versions. Signatures of one family do not hold in another."""
    name = model.rsplit("/", 1)[-1].lower()
    return _VERSION.sub("", name) or name


FRESH_SECONDS = 2.0
"""For how long the catalog is not read again. An idle gateway does not read it."""
_log = logging.getLogger(__name__)


class CatalogRoutes:
    """The catalog's upstreams and routes, and after them the ones that every gateway has.

    Safe to share between tasks.
    """

    def __init__(self, store: Driver, own: Routes) -> None:
        self._store = store
        self._own = own
        self._routes = own
        self._definitions: tuple[list[UpstreamDefinition], list[RouteDefinition]] | None = None
        self._read_at = 0.0
        self._first = asyncio.Lock()

    async def find(self, dialects: Sequence[str], model: str) -> tuple[Upstream, str]:
        """Return the upstream for a model that speaks one of these dialects, and the model's name there.

        Raises NoUpstream. Raises StoreError: the catalog could never be read, so it is unknown where a request and its
        key may go.
        """
        return (await self.present()).find(dialects, model)

    async def present(self) -> Routes:
        """Return the routes as they are now. Raises StoreError, as `find`."""
        if self._definitions is None:
            async with self._first:
                if self._definitions is None:
                    await self._read()
        elif time.monotonic() - self._read_at >= FRESH_SECONDS:
            await self._read()
        return self._routes

    async def _read(self) -> None:
        self._read_at = time.monotonic()
        try:
            async with self._store.reading() as tx:
                found = (await catalog.upstreams(tx), await catalog.routes(tx))
        except StoreError as error:
            if self._definitions is None:
                raise
            _log.error("The catalog cannot be read, so upstreams and routes stay as they were: %s", error)
            return
        if found != self._definitions or any(each.problem for each in self._routes.upstreams.values()):
            self._routes = merge_routes(*found, self._own)
        self._definitions = found


def merge_routes(upstreams: Sequence[UpstreamDefinition], routes: Sequence[RouteDefinition], own: Routes) -> Routes:
    """Return the catalog's upstreams and routes before the gateway's own. One of the same name stands in its place.

    Of several patterns that fit a model, the longest counts.
    """
    there = {each.name: _upstream(each) for each in upstreams}
    every = there | {name: each for name, each in own.upstreams.items() if name not in there}
    found = [
        Route(route.models, route.upstream, route.model, route.name, route.id) for route in sorted(routes, key=_rank)
    ]
    return Routes(every, [*found, *own.routes])


def _rank(route: RouteDefinition) -> tuple[bool, int, str]:
    """Return what orders routes: names before patterns, long patterns before short ones."""
    plain = [character for character in route.models if character not in "*?"]
    return len(plain) < len(route.models), -len(plain), route.name


def _upstream(found: UpstreamDefinition) -> Upstream:
    key, problem = found.api_key, ""
    if key is not None and key.startswith("${"):
        try:
            key = read_secrets([key[2:-1]]).fill(key)
        except LongthreadError as error:
            key, problem = None, str(error)
    return Upstream(found.name, found.base_url, found.dialects, key, found.holds_state, problem, found.id)
