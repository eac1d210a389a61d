"""A server at a URL: each request goes to a checked address, like those of API tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from longthread.errors import ApiRefused, LongthreadError, McpFailed
from longthread.tools.api.address import addresses_of
from longthread.tools.api.exchange import Network
from longthread.tools.api.host import host_of, port_of
from longthread.tools.mcp.endpoint import ServerUrl

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 300.0
"""Seconds of silence after which a connection ends. Calls have their own limit."""


class Web:
    """The connection to one server. `problem` is the error of a request, which the MCP library does not pass on."""

    def __init__(self, address: ServerUrl, network: Network) -> None:
        self._address = address
        self._network = network
        self.problem: LongthreadError | None = None

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The streams for the MCP library."""
        timeout = httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
        client = httpx2.AsyncClient(
            transport=_Checked(self, self._address, self._network),
            headers={**dict(self._address.headers), "Accept-Encoding": "identity"},
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
        )
        async with (
            client,
            streamable_http_client(
                self._address.url, http_client=client, max_sse_event_size=self._address.most
            ) as streams,
        ):
            yield streams

    async def judged(self, url: httpx.URL) -> list[str]:
        """The checked addresses of the server. Raises ApiRefused, ApiFailed."""
        own = httpx.URL(self._address.url)
        if (url.scheme, host_of(url), port_of(url)) != (own.scheme, host_of(own), port_of(own)):
            raise ApiRefused(reason=f"it leads to another server, {host_of(url)[:100]}:{port_of(url)}.")
        return await addresses_of(
            host_of(url), port_of(url), self._network.resolve, allow_private=self._address.allow_private
        )


class _Checked(httpx2.AsyncBaseTransport):
    """Connects to checked addresses, and limits the size of answers."""

    def __init__(self, web: Web, address: ServerUrl, network: Network) -> None:
        self._web = web
        self._most = address.most
        self._name = address.name
        tls = network.tls or httpx2.create_ssl_context(trust_env=False)
        limits = httpx2.Limits(keepalive_expiry=5)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, http2=False, retries=0, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            addresses = await self._web.judged(httpx.URL(str(request.url)))
        except LongthreadError as error:
            self._web.problem = error
            raise httpx2.ConnectError("refused") from error
        for address in addresses:
            sent = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # with the name as their host
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
            try:
                return self._bounded(await self._inner.handle_async_request(sent))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                self._web.problem = McpFailed(
                    server=self._name, reason=f"there is no connection to {request.url.host[:100]}."
                )
                if address == addresses[-1]:
                    raise
                del error
        raise httpx2.ConnectError("no address")

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        self._web.problem = None
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("it is packed, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Bounded(self._web, self._name, response.stream, self._most),
            extensions=response.extensions,
        )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, web: Web, name: str, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._web = web
        self._name = name
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                reason = f"it sent an answer of more than {self._most} bytes."
                self._web.problem = McpFailed(server=self._name, reason=reason)
                raise httpx2.ReadError("too large")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
