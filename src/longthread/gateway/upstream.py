"""The providers that the gateway asks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from longthread.gateway.http import Incoming, for_upstream

ANTHROPIC, OPENAI = "https://api.anthropic.com", "https://api.openai.com"
_VERSION = re.compile(r"[-.@_]?\d[\w.]*|-latest\b")
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60)
_EXTENSIONS = {"timeout": httpx.Timeout(600, connect=15).as_dict()}
"""Seconds. Providers think for minutes before the first byte of a reply that is not streamed."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider.

    Attributes:
        dialects: those that it speaks.
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

    def url(self, dialect: str, path: str, query: bytes) -> str:
        """Return the address of a path such as `/v1/messages`.

        As for the vendors' SDKs, a base with a path of its own stands for OpenAI's `/v1`, and for Anthropic's if it
        ends with that.
        """
        base = self.base_url.rstrip("/")
        own = urlsplit(base).path
        has_version = own.endswith("/v1") if dialect == "anthropic" else bool(own)
        address = base + (path.removeprefix("/v1") if has_version else path)
        return f"{address}?{query.decode('latin-1')}" if query else address

    def credentials(self, dialect: str) -> list[tuple[bytes, bytes]]:
        if self.api_key is None:
            return []
        if dialect == "anthropic":
            return [(b"x-api-key", self.api_key.encode())]
        return [(b"authorization", f"Bearer {self.api_key}".encode())]


@dataclass(frozen=True, slots=True)
class Route:
    """Which upstream is asked for models whose name fits a pattern, and by which name; None: by the client's."""

    models: str
    upstream: str
    model: str | None = None


@dataclass(frozen=True)
class Routes:
    """Where requests go: the first route that fits the model and whose upstream speaks the dialect, else the first
    upstream that speaks it and that no route names."""

    upstreams: Mapping[str, Upstream]
    routes: Sequence[Route] = ()

    def find(self, dialect: str, model: str) -> tuple[Upstream, str] | None:
        for route in self.routes:
            upstream = self.upstreams.get(route.upstream)
            if upstream and dialect in upstream.dialects and fnmatchcase(model, route.models):
                return upstream, route.model or model
        routed = {route.upstream for route in self.routes}
        general = (each for each in self.upstreams.values() if each.name not in routed and dialect in each.dialects)
        return next(((upstream, model) for upstream in general), None)


class Connections:
    """Connections to upstreams, shared by all requests. Close them when done.

    They are httpx's transports, without its client: that takes longer than all else about a request, and what it adds,
    such as cookies and redirects, is the caller's own business here. Proxies are those of the environment.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._given = transport
        self._of_hosts: dict[tuple[str, str], httpx.AsyncBaseTransport] = {}
        self._of_proxies: dict[str | None, httpx.AsyncBaseTransport] = {}

    async def send(self, upstream: Upstream, dialect: str, asked: Incoming, body: bytes) -> httpx.Response:
        """Send a request up; the response's body is not read. Raises httpx.HTTPError."""
        url = _parsed(upstream.url(dialect, asked.path, asked.query))
        headers = for_upstream(asked.headers, upstream.credentials(dialect))
        if asked.encoded is not None and body == asked.body:
            body = asked.encoded
        elif asked.encoded is not None:
            headers = [(name, value) for name, value in headers if name != b"content-encoding"]
        request = httpx.Request(asked.method, url, headers=headers, content=body or None, extensions=_EXTENSIONS)
        response = await (self._given or self._transport(url)).handle_async_request(request)
        response.request = request
        return response

    def _transport(self, url: httpx.URL) -> httpx.AsyncBaseTransport:
        key = (url.scheme, url.host)
        if key not in self._of_hosts:
            proxies = {} if proxy_bypass(url.host) else getproxies()
            proxy = proxies.get(url.scheme) or proxies.get("all")
            if proxy not in self._of_proxies:
                self._of_proxies[proxy] = httpx.AsyncHTTPTransport(limits=_LIMITS, proxy=proxy)
            self._of_hosts[key] = self._of_proxies[proxy]
        return self._of_hosts[key]

    async def close(self) -> None:
        for transport in self._of_proxies.values():
            await transport.aclose()


@lru_cache(256)
def _parsed(url: str) -> httpx.URL:
    """Raises httpx.UnsupportedProtocol: it is no address of a server."""
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise httpx.UnsupportedProtocol(f"{url}: {error}") from error
    if found.scheme not in ("http", "https") or not found.host:
        raise httpx.UnsupportedProtocol(f"{url} is no address that begins with http:// or https://.")
    return found


def family_of(model: str) -> str:
    """Return a model's family: its name without versions. Signatures of one family do not hold in another."""
    name = model.rsplit("/", 1)[-1].lower()
    return _VERSION.sub("", name) or name
