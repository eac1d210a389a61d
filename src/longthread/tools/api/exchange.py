"""Sends one request over its own connection, to a checked address."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import httpx

from longthread.errors import ApiFailed, ApiRefused
from longthread.tools.api.address import Resolve, addresses_of, by_the_system
from longthread.tools.api.host import Hosts, host_of, port_of
from longthread.tools.api.response import ApiResponse, read
from longthread.tools.api.template import FilledRequest
from longthread.tools.log_filter import silenced

_REDIRECTS = 5
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Network:
    """The resolver, TLS authorities (by default httpx's, whatever the environment says) and transport of requests."""

    resolve: Resolve = by_the_system
    tls: ssl.SSLContext | None = None
    transport: type[httpx.AsyncHTTPTransport] = httpx.AsyncHTTPTransport

    def connection(self) -> httpx.AsyncHTTPTransport:
        """A new connection: one of another request may be for another name at the same address."""
        return self.transport(verify=self.tls or _authorities(), trust_env=False, http2=False, retries=0)


@cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


NOT_SENT, BROKEN = "no", "perhaps"
"""`sent` of ApiFailed: there was no connection; or it broke before the answer, and the server may have acted."""


async def exchanged(
    request: FilledRequest, hosts: Hosts, network: Network, *, most: int, allow_private: bool, seconds: float
) -> ApiResponse:
    """Sends a request and follows redirects, which are checked too. Raises ApiRefused: the URL or address is not
    allowed; ApiFailed: there is no valid answer (`sent` says whether it was sent)."""
    for _ in range(_REDIRECTS + 1):
        hosts.check(request.url)
        addresses = await addresses_of(
            host_of(request.url), port_of(request.url), network.resolve, allow_private=allow_private
        )
        answer, target = await _sent(request, addresses, network, most, seconds)
        if target is None:
            return answer
        request = _redirected(request, answer.status, target)
    raise ApiFailed(reason=f"it was redirected more than {_REDIRECTS} times.")


def _redirected(request: FilledRequest, status: int, target: str) -> FilledRequest:
    """The request of a redirect, without secrets for another host."""
    try:
        url = request.url.join(target)
        port_of(url)
    except (httpx.InvalidURL, ValueError, KeyError) as error:
        raise ApiRefused(reason="it was redirected to what is no http:// or https:// URL.") from error
    if request.url.scheme == "https" and url.scheme != "https":
        raise ApiRefused(reason="it was redirected from https:// to http://.")
    same = (url.scheme, host_of(url), port_of(url)) == (request.url.scheme, host_of(request.url), port_of(request.url))
    again = status in (307, 308) or request.method in ("GET", "HEAD")
    if not same and again and request.secret_content:
        raise ApiRefused(reason="it was redirected to another host, which is not told the secret in its body.")
    remaining = {
        name: value
        for name, value in request.headers.items()
        if (same or name.lower() not in request.confidential) and (again or not name.lower().startswith("content-"))
    }
    method = request.method if again else "GET"
    return replace(request, method=method, url=url, headers=remaining, content=request.content if again else None)


async def _sent(
    request: FilledRequest, addresses: list[str], network: Network, most: int, seconds: float
) -> tuple[ApiResponse, str | None]:
    """The answer, and the target of a redirect."""
    host, connect = host_of(request.url), min(_CONNECT_SECONDS, seconds)
    timeouts = {"connect": connect, "read": seconds, "write": seconds, "pool": connect}
    for address in addresses:
        last = address == addresses[-1]
        # To the checked address, while TLS and the server get the name.
        sent = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers={"Host": request.url.netloc.decode("ascii"), "Accept-Encoding": "gzip, deflate"}
            | dict(request.headers),
            content=request.content,
            extensions={"timeout": timeouts, "sni_hostname": host},
        )
        with silenced(), _translated(host):
            async with network.connection() as transport:
                try:
                    response = await transport.handle_async_request(sent)
                except httpx.ConnectError:
                    if last:
                        raise
                    continue
                try:
                    target = response.headers.get("location") if response.is_redirect else None
                    head = request.method == "HEAD" or target is not None
                    return await read(response, most, head=head), target
                finally:
                    await response.aclose()
    raise ApiFailed(reason=f"{host[:100]} has no address.", sent=NOT_SENT)


@contextmanager
def _translated(host: str) -> Iterator[None]:
    """Raises ApiFailed in place of the HTTP library's errors, without the request in its message."""
    name = host[:100]
    try:
        yield
    except httpx.ConnectTimeout as error:
        raise ApiFailed(reason=f"{name} does not answer.", sent=NOT_SENT) from error
    except httpx.ConnectError as error:
        is_tls = "CERTIFICATE" in str(error).upper() or "SSL" in str(error).upper()
        why = f"TLS with {name} failed ({str(error)[:200]})" if is_tls else f"no connection to {name}"
        raise ApiFailed(reason=f"{why}.", sent=NOT_SENT) from error
    except httpx.TimeoutException as error:
        raise ApiFailed(reason=f"{name} did not answer in time.", sent=BROKEN) from error
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, UnicodeError) as error:
        raise ApiFailed(
            reason=f"{name} broke it off, or its answer is no HTTP ({type(error).__name__}).", sent=BROKEN
        ) from error
