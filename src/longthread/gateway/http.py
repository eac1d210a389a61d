"""Requests and responses as they came, without a web framework."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, with their values, in order."""

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
_CREDENTIALS = frozenset(
    {b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"openai-organization", b"openai-project"}
)
"""What tells a provider whose request it is."""
_NOT_SENT = _HOP_BY_HOP | {b"host", b"content-length", b"expect", b"accept-encoding", b"cookie"}
"""Cookies were given for the gateway's own host."""
_OURS = (b"x-longthread-", b"x-conversation-id")
_READABLE = (b"gzip", b"deflate", b"identity")
"""The encodings that the standard library reads."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A client's request. `path` begins with a slash and has no query."""

    method: str
    path: str
    headers: Headers
    body: bytes = b""
    query: bytes = b""
    encoded: bytes | None = None
    """The body as it came, if it was compressed."""

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
    left_out = _NOT_SENT | (_CREDENTIALS if own else frozenset())
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


def decoded(incoming: Incoming, limit: int) -> Incoming:
    """Return a request with its body decoded, if it is compressed in a way that can be read.

    Raises:
        ValueError: it has more bytes than `limit`.
    """
    encoding = (incoming.header("content-encoding") or "").strip().lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return incoming
    inflate = zlib.decompressobj(47)
    try:
        body = inflate.decompress(incoming.body, limit + 1)
    except zlib.error:
        return incoming
    if len(body) > limit:
        raise ValueError("It is too large.")
    return replace(incoming, body=body, encoded=incoming.body)


class Decoder:
    """Decodes a body's content encoding piece by piece. What it cannot decode it leaves as it is."""

    def __init__(self, encoding: str | None) -> None:
        name = (encoding or "identity").strip().lower()
        self._inflate = zlib.decompressobj(47) if name in ("gzip", "x-gzip", "deflate") else None

    def __call__(self, data: bytes) -> bytes:
        if self._inflate is None:
            return data
        try:
            return self._inflate.decompress(data)
        except zlib.error:
            self._inflate = None
            return data
