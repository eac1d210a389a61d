"""Reads a server's answer within limits, for a model."""

from __future__ import annotations

import codecs
import json
import math
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx

from longthread.errors import ApiFailed
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
        text = self._decoded()
        value = _MISSING if self.cut or len(text) > _PARSED else _parsed(text)
        if value is not _MISSING:
            # An escape may have made half of a surrogate pair, which nothing can store.
            written = json.dumps(secrets.scrubbed(value), ensure_ascii=False).encode("utf-8", "replace").decode()
            if len(written) <= SHOWN:
                return json.loads(written), False
        part = text[: 2 * SHOWN]  # scrubbing a long text would block the event loop
        cut = self.cut or len(part) < len(text)
        clean = secrets.scrubbed(part, cut=cut)
        return clean[:SHOWN], cut or len(clean) > SHOWN

    def _decoded(self) -> str:
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
        async with aclosing(_unpacked(response, most)) as pieces:
            async for piece in pieces:
                content += piece
                if len(content) > most:
                    cut = True
                    break
    charset = parameters.partition("charset=")[2].split(";")[0].strip("\"' ")[:40] or "utf-8"
    return ApiResponse(response.status_code, media_type.strip().lower()[:100], charset, bytes(content[:most]), cut)


async def _unpacked(response: httpx.Response, most: int) -> AsyncGenerator[bytes]:
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


def _parsed(text: str) -> Any:
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
