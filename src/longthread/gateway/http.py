"""Requests and responses as they came, without a web framework."""

from __future__ import annotations

import sys
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import aiohttp

from longthread.access.principal import Principal

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, with their values, in order."""

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_ACCOUNT = CREDENTIALS | {b"openai-organization", b"openai-project"}
"""What tells a provider whose request it is."""
_OF_PAGES = {b"cookie", b"origin", b"referer", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"}
"""What a browser says of a page, and was given by this host. It is no provider's."""
_NOT_SENT = _HOP_BY_HOP | _OF_PAGES | {b"host", b"content-length", b"expect", b"accept-encoding"}
_OURS = (b"x-longthread-", b"x-conversation-id")
_READABLE = (b"gzip", b"deflate", b"identity")
"""The encodings of replies that the gateway reads."""
_LARGEST_WINDOW = 25
"""Of zstd, as a power of two: a decoder holds as many bytes."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A client's request. `path` begins with a slash and has no query.

    Attributes:
        encoded: the body as it came, if it was compressed.
        upload: the body, if it is passed on as it comes.
        credential: what tells who asks, never sent or stored; empty if nothing does.
        principal: the user who asks, by an API key; None on a server without login.
    """

    method: str
    path: str
    headers: Headers
    body: bytes = b""
    query: bytes = b""
    encoded: bytes | None = None
    upload: AsyncIterable[bytes] | None = None
    credential: str = field(default="", repr=False)
    principal: Principal | None = None

    def header(self, name: str) -> str | None:
        return header_of(self.headers, name)


@dataclass(slots=True)
class Outgoing:
    """What the client gets: a whole body, or a stream, which the server must read to its end or close. While a stream
    is silent, the client may be sent `ping`, if that is not empty."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    stream: AsyncGenerator[bytes] | None = None
    ping: bytes = b""


def header_of(headers: Headers, name: str) -> str | None:
    wanted = name.lower().encode()
    for key, value in headers:
        if key == wanted:
            return value.decode("latin-1")
    return None


def for_upstream(headers: Headers, own: Iterable[tuple[bytes, bytes]] = ()) -> list[tuple[bytes, bytes]]:
    """Return a client's headers as they go up, with `own` credentials in the place of the client's."""
    own = list(own)
    left_out = _NOT_SENT | (_ACCOUNT if own else frozenset())
    sent = [(name, value) for name, value in headers if name not in left_out and not name.startswith(_OURS)]
    encodings = _encodings(header_of(headers, "accept-encoding"))
    return [*sent, *own, *([(b"accept-encoding", encodings)] if encodings else [])]


def for_client(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return an upstream's headers as the client gets them."""
    left_out = _HOP_BY_HOP | {b"content-length", b"date", b"server"}
    return [(name, value) for name, value in headers if name not in left_out]


def _encodings(accepted: str | None) -> bytes | None:
    if accepted is None:
        return None
    asked = [each.strip().encode() for each in accepted.split(",")]
    return b", ".join(each for each in asked if each.split(b";")[0] in _READABLE) or b"identity"


def decode_request(incoming: Incoming, limit: int) -> Incoming:
    """Return a request with its body decoded, if it is compressed in a way that can be read.

    Raises:
        ValueError: it has more bytes than `limit`.
    """
    encoding = (incoming.header("content-encoding") or "").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        body = _inflate_body(incoming.body, limit + 1)
    elif encoding == "zstd":
        body = _unzstd(incoming.body, limit + 1)
    else:
        return incoming
    if body is None:
        return incoming
    if len(body) > limit:
        raise ValueError("It is too large.")
    return replace(incoming, body=body, encoded=incoming.body)


def _inflate_body(body: bytes, most: int) -> bytes | None:
    try:
        return zlib.decompressobj(47).decompress(body, most)
    except zlib.error:
        return None


def _unzstd(body: bytes, most: int) -> bytes | None:
    """Return at most so many bytes of what zstd compressed, which may be in several frames; None: it is damaged."""
    # Here and not above: few clients use it.
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    options = {int(zstd.DecompressionParameter.window_log_max): _LARGEST_WINDOW}
    found = b""
    try:
        while body and len(found) < most:
            frame = zstd.ZstdDecompressor(options=options)
            found += frame.decompress(body, most - len(found))
            if not frame.eof:
                return found if len(found) >= most else None
            body = frame.unused_data
    except zstd.ZstdError:
        return None
    return found


REPLY_LIMIT = 64 * 1024 * 1024
"""Bytes of a reply, decompressed, if no setting says otherwise."""


class ReplyTooLarge(aiohttp.ClientError):
    """A provider's reply has more bytes than the gateway reads, decompressed."""

    def __init__(self, limit: int) -> None:
        size = f"{limit / 2**20:g} MB"
        super().__init__(f"The reply has more than {size}, decompressed. LLM_MAX_REPLY_MB allows more.")


class Decoder:
    """Decodes a body's content encoding piece by piece. What it cannot decode it leaves as it is.

    Calls raise ReplyTooLarge: it has more bytes than `limit`.
    """

    def __init__(self, encoding: str | None, limit: int = REPLY_LIMIT) -> None:
        self._limit = self._left = limit
        name = (encoding or "identity").strip().lower()
        self._inflate = zlib.decompressobj(47) if name in ("gzip", "x-gzip", "deflate") else None

    def __call__(self, data: bytes) -> bytes:
        found = self._decode_piece(data)
        self._left -= len(found)
        if self._left < 0:
            raise ReplyTooLarge(self._limit)
        return found

    def _decode_piece(self, data: bytes) -> bytes:
        if self._inflate is None:
            return data
        try:
            return self._inflate.decompress(data, self._left + 1)
        except zlib.error:
            self._inflate = None
            return data
