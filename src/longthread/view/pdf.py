"""How many pages a PDF has, from its bytes: its table of pages says so, or its pages can be counted."""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from itertools import islice

_SAMPLE = 1 << 20
"""Bytes at either end of a long file that are looked at first: its table of pages mostly stands there."""
_STREAM = 4 << 20
"""Bytes of a stream of objects that are looked at,"""
_STREAMS = 32 << 20
"""and of all of them, as they are and as they unpack: a file may be made to take long."""
_TABLES = 2_000
"""Tables of pages that are looked at,"""
_AROUND = 1 << 16
"""and bytes before and behind where each says that it is one."""
_FIRST_PAGE = re.compile(rb"/Linearized\b[^>]{0,300}?/N\s+(\d{1,7})\b")
_TABLE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,7})\b")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b[^>]{0,300}>>\s*stream\r?\n")


def pages_in(data: str) -> int | None:
    """The pages of a PDF in base64; None where nothing says how many it has.

    Of a long one only the ends are decoded, if they say it.
    """
    try:
        if len(data) > 4 * _SAMPLE:
            last = (len(data) - _SAMPLE) // 4 * 4
            known = _told(_bytes(data[:_SAMPLE]) + b"\n" + _bytes(data[last:]))
            if known is not None:
                return known
        whole = _bytes(data)
    except (binascii.Error, ValueError):
        return None
    return _told(whole) or _counted(whole)


def _bytes(data: str) -> bytes:
    return b64decode(data + "==")  # some leave out what it ends with


def _told(data: bytes) -> int | None:
    """What a file that is made to be shown while it comes says at its beginning, or the root of its table of pages."""
    said = [int(found[1]) for found in [_FIRST_PAGE.search(data[:2048])] if found]
    roots = [count for part in (data, *_packed(data)) for count in _roots(part)]
    return max([*said, *roots], default=0) or None


def _roots(data: bytes) -> Iterator[int]:
    """What the tables of pages count that are part of no other: each version of the file that it holds has one."""
    for found in islice(_TABLE.finditer(data), _TABLES):
        first, last = max(0, found.start() - _AROUND), found.end() + _AROUND
        begin, end = data.rfind(b"<<", first, found.start()), data.find(b">>", found.end(), last)
        table = data[begin if begin >= 0 else first : end if end >= 0 else last]
        count = _COUNT.search(table)
        if count and b"/Parent" not in table:
            yield int(count[1])


def _counted(data: bytes) -> int | None:
    """How many pages there are, of all versions of the file that it holds."""
    return sum(len(_PAGE.findall(part)) for part in (data, *_packed(data))) or None


def _packed(data: bytes) -> Iterator[bytes]:
    """What stands in the compressed streams of objects; those that cannot be read, as of an encrypted file, are left
    out."""
    left = _STREAMS
    for found in _OBJECTS.finditer(data):
        begin = found.end()
        end = data.find(b"endstream", begin, begin + _STREAM)
        left -= end - begin if end >= 0 else _STREAM
        if left <= 0:
            return
        if end < 0:
            continue
        try:
            part = zlib.decompressobj().decompress(data[begin:end], _STREAM)
        except zlib.error:
            continue
        left -= len(part)
        yield part
