"""Sends one request over its own connection, to a checked address, and reads the answer within limits, for a model.

The loggers of HTTP and MCP libraries are silent during our own requests: their records hold headers and messages.
"""

from __future__ import annotations

import codecs
import json
import logging
import math
import ssl
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import httpx

from longthread.errors import ApiFailed, ApiRefused
from longthread.tools.api_request import FilledRequest, Hosts, Resolve, addresses_of, by_the_system, host_of, port_of
from longthread.tools.secrets import Secrets

SHOWN = 64_000
"""Characters of an answer that an observation holds."""
_PARSED = 4 * SHOWN
"""Characters of a text that is parsed as JSON: a longer value would not be shown whole."""
_PIECE = 65_536
_NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"})
_DEEPEST = 50
"""Levels of a JSON value: a deeper one is shown as text."""
_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson",
          "application/x-www-form-urlencoded", "application/yaml", "application/x-yaml")  # fmt: skip


@dataclass(frozen=True)
class ApiResponse:
    """A response without headers. `cut`: there was more."""

    status: int
    media_type: str
    charset: str
    content: bytes
    cut: bool

    def body(self, secrets: Secrets) -> tuple[Any, bool]:
        """The body as JSON or text, without the tool's secrets, and whether it was cut."""
        if not self.content:
            return "", self.cut
        is_text = self.media_type.startswith(_TEXTS) or self.media_type.endswith(("+json", "+xml"))
        if self.media_type and not is_text:
            return f"<{len(self.content)} bytes of {self.media_type}>", self.cut
        text = self._decode_content()
        value = _MISSING if self.cut or len(text) > _PARSED else _parse_json(text)
        if value is not _MISSING:
            # An escape may have made half of a surrogate pair, which nothing can store.
            written = json.dumps(secrets.scrub(value), ensure_ascii=False).encode("utf-8", "replace").decode()
            if len(written) <= SHOWN:
                return json.loads(written), False
        part = text[: 2 * SHOWN]  # scrubbing a long text would block the event loop
        cut = self.cut or len(part) < len(text)
        clean = secrets.scrub(part, cut=cut)
        return clean[:SHOWN], cut or len(clean) > SHOWN

    def _decode_content(self) -> str:
        try:
            # Some codecs of Python are no charsets: `punycode` takes quadratic time, `idna` fails.
            known = codecs.lookup(self.charset).name not in _NO_CHARSETS
            text = self.content.decode(self.charset if known else "utf-8", "replace")
        except (LookupError, ValueError):
            text = self.content.decode("utf-8", "replace")
        # A charset such as utf-7 could make lone surrogates, which nothing can store.
        return text.encode("utf-8", "replace").decode("utf-8").removeprefix("\ufeff")


async def read(response: httpx.Response, most: int, *, head: bool = False) -> ApiResponse:
    """Reads at most `most` bytes of a response, both packed and unpacked. Raises ApiFailed."""
    media_type, _, parameters = response.headers.get("content-type", "").partition(";")
    content = bytearray()
    cut = False
    if not head:
        async with aclosing(_unpack_response(response, most)) as pieces:
            async for piece in pieces:
                content += piece
                if len(content) > most:
                    cut = True
                    break
    charset = parameters.partition("charset=")[2].split(";")[0].strip("\"' ")[:40] or "utf-8"
    return ApiResponse(response.status_code, media_type.strip().lower()[:100], charset, bytes(content[:most]), cut)


async def _unpack_response(response: httpx.Response, most: int) -> AsyncGenerator[bytes]:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise ApiFailed(reason=f"the answer is packed as {encoding[:40]!r}, which was not asked for.")
    unpacking = None if encoding in ("identity", "") else _Unpacking()
    came = 0
    async for piece in response.aiter_raw(_PIECE):
        came += len(piece)
        if unpacking is None:
            yield piece
        else:
            for part in unpacking.parts(piece):
                yield part
        if came > most:  # however little it unpacks to
            return


class _Unpacking:
    """Unpacks in pieces of limited size: a kilobyte may hold a megabyte."""

    def __init__(self) -> None:
        self._raw: Any = None

    def parts(self, piece: bytes) -> Iterator[bytes]:
        """Unpacks a piece."""
        if self._raw is None:
            # With the header of zlib or gzip, or raw deflate, as some servers send it.
            bare = piece[:2] != b"\x1f\x8b" and piece[:1] != b"\x78"
            self._raw = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
        try:
            while piece:
                yield self._raw.decompress(piece, _PIECE)
                piece = self._raw.unconsumed_tail
        except zlib.error as error:
            raise ApiFailed(reason="the answer cannot be unpacked.") from error


_MISSING = object()


def _parse_json(text: str) -> Any:
    """Parses JSON without NaN and Infinity."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return _MISSING
    return _MISSING if _is_deeper(value, _DEEPEST) else value


def _is_deeper(value: Any, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(most == 0 or _is_deeper(one, most - 1) for one in inner)


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)  # such as 1e999


_silent: ContextVar[bool] = ContextVar("silent", default=False)
_LOGGERS = (
    "httpx", "httpcore.connection", "httpcore.http11", "httpx2", "httpcore2.connection", "httpcore2.http11", "client",
    "mcp.client.streamable_http", "mcp.client.session", "mcp.client.client", "mcp.shared.jsonrpc_dispatcher",
)  # fmt: skip


@contextmanager
def silence_loggers() -> Iterator[None]:
    """Within it, and in tasks that start there, these loggers drop their records."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _silent.get()


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_Filter())


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


async def send_request(
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
        request = _redirect_request(request, answer.status, target)
    raise ApiFailed(reason=f"it was redirected more than {_REDIRECTS} times.")


def _redirect_request(request: FilledRequest, status: int, target: str) -> FilledRequest:
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
        with silence_loggers(), _translate_errors(host):
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
def _translate_errors(host: str) -> Iterator[None]:
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
