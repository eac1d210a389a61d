"""Messages as a provider's wire has them: an entry's payload with the raw JSON of its blocks.

What the text column holds is not stored twice: where it stands among the blocks, spelled as JSON, it is cut out. Bytes
that the blocks have in base64, such as signatures, are stored as such. The rest is compressed.
"""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

from longthread.model.deflate import deflated, inflated

_MARK = b"\x00"
_DIALECTS = ("anthropic", "responses", "completions")
"""In a payload a dialect is its place here, from 1. The order never changes."""
_MARKS = tuple(_MARK + bytes([number]) for number in range(1, len(_DIALECTS) + 1))
_WHOLE, _CUT, _CUT_ASCII = range(3)
"""The third byte: whether the entry's text was cut out, and whether its JSON was in ASCII."""
_OLD = b"\x00wire:"
"""How older payloads begin, which stores keep. The dialect's name follows, then a NUL and the compressed blocks."""
_OLD_WINDOW = 32_768
_SEAL = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}|[\w-]{64,}={0,2}", re.ASCII)


class _Seal(NamedTuple):
    """Bytes that stand in base64 before a place of the rest. `is_url`: in the alphabet for URLs."""

    at: int
    is_url: bool
    data: bytes


def pack(dialect: str, blocks: Sequence[str], text: str) -> bytes:
    """Return the payload of an entry whose message has these blocks, as JSON texts."""
    form, at, rest = _cut(f"[{','.join(blocks)}]", text)
    body = deflated(_joined(at, *_unsealed(rest)), b"" if form else _bytes(text))
    return _MARKS[_DIALECTS.index(dialect)] + bytes([form]) + body


def is_wire(payload: bytes | None) -> bool:
    return payload is not None and payload.startswith((*_MARKS, _OLD))


def unpack(payload: bytes, text: str) -> tuple[str, str]:
    """Return the dialect of a payload, and its blocks as the text of a JSON list. Raises ValueError: it is damaged."""
    if payload.startswith(_OLD):
        return _unpack_old(payload, text)
    try:
        form = payload[2]
        at, seals, rest = _parted(inflated(payload[3:], b"" if form else _bytes(text)))
        rest = _sealed(seals, rest)
        if form != _WHOLE:
            rest = rest[:at] + _spelled(text, form) + rest[at:]
        return _DIALECTS[payload[1] - 1], rest
    except (IndexError, TypeError) as error:
        raise ValueError(str(error)) from error


def _cut(raw: str, text: str) -> tuple[int, int, str]:
    """Return how the text is spelled in the blocks, its place, and the blocks without it."""
    for form in (_CUT, _CUT_ASCII) if text else ():
        spelled = _spelled(text, form)
        at = raw.find(spelled)
        if at >= 0:
            return form, at, raw[:at] + raw[at + len(spelled) :]
    return _WHOLE, 0, raw


def _spelled(text: str, form: int) -> str:
    return json.dumps(text, ensure_ascii=form == _CUT_ASCII)[1:-1]


def _unsealed(text: str) -> tuple[list[_Seal], str]:
    """Return the bytes that a text has in base64, and the text without them."""
    seals: list[_Seal] = []
    pieces: list[str] = []
    at = begin = 0
    for match in _SEAL.finditer(text):
        seal = _seal(match[0], at + match.start() - begin)
        if seal is not None:
            pieces.append(text[begin : match.start()])
            at, begin = seal.at, match.end()
            seals.append(seal)
    return seals, "".join([*pieces, text[begin:]])


def _seal(text: str, at: int) -> _Seal | None:
    """Return what a text is in base64. One that is numbers in hexadecimal gets smaller as it is."""
    is_url = "-" in text or "_" in text
    if text in (text.lower(), text.upper()):
        return None
    try:
        seal = _Seal(at, is_url, (urlsafe_b64decode if is_url else b64decode)(text))
    except binascii.Error:
        return None
    return seal if _base64(seal) == text else None


def _sealed(seals: Sequence[_Seal], rest: str) -> str:
    ends = [0, *(seal.at for seal in seals)]
    pieces = [
        piece for begin, seal in zip(ends, seals, strict=False) for piece in (rest[begin : seal.at], _base64(seal))
    ]
    return "".join([*pieces, rest[ends[-1] :]])


def _base64(seal: _Seal) -> str:
    return (urlsafe_b64encode if seal.is_url else b64encode)(seal.data).decode()


def _joined(at: int, seals: Sequence[_Seal], rest: str) -> bytes:
    """Return a line of numbers (the text's place; of each seal its place, its alphabet and its size), the seals and the
    rest."""
    numbers = [at, *(number for seal in seals for number in (seal.at, int(seal.is_url), len(seal.data)))]
    return b"".join([" ".join(map(str, numbers)).encode(), b"\n", *(seal.data for seal in seals), _bytes(rest)])


def _parted(body: bytes) -> tuple[int, list[_Seal], str]:
    head, _, body = body.partition(b"\n")
    at, *numbers = map(int, head.split())
    found: list[_Seal] = []
    for place, is_url, size in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        found.append(_Seal(place, bool(is_url), body[:size]))
        body = body[size:]
    return at, found, body.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _unpack_old(payload: bytes, text: str) -> tuple[str, str]:
    kind, body = payload[1:].split(_MARK, 1)
    unpacker = zlib.decompressobj(-15, _bytes(text)[-_OLD_WINDOW:])
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return kind.decode().removeprefix("wire:"), raw.decode("utf-8", "surrogatepass")
