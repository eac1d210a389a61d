"""Counts the pages of a PDF: by its page tree, or by its page objects."""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from itertools import islice

_SAMPLE = 1 << 20
"""Bytes at both ends of a long file, where the page tree mostly is."""
_STREAM = 4 << 20
"""Bytes of one object stream,"""
_STREAMS = 32 << 20
"""and of all of them, packed and unpacked, at most."""
_TABLES = 2_000
"""Page tree nodes at most,"""
_AROUND = 1 << 16
"""and bytes around each."""
_FIRST_PAGE = re.compile(rb"/Linearized\b[^>]{0,300}?/N\s+(\d{1,7})\b")
_TABLE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,7})\b")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b[^>]{0,300}>>\s*stream\r?\n")


def pages_in(data: str) -> int | None:
    """The number of pages of a PDF in base64, or None. Of a long file only the ends are decoded, if these suffice."""
    try:
        if len(data) > 4 * _SAMPLE:
            last = (len(data) - _SAMPLE) // 4 * 4
            known = _declared(_bytes(data[:_SAMPLE]) + b"\n" + _bytes(data[last:]))
            if known is not None:
                return known
        whole = _bytes(data)
    except (binascii.Error, ValueError):
        return None
    return _declared(whole) or sum(len(_PAGE.findall(part)) for part in (whole, *_packed(whole))) or None


def _bytes(data: str) -> bytes:
    return b64decode(data + "==")  # some leave out what it ends with


def _declared(data: bytes) -> int | None:
    """The number of pages in the header of a linearized file, or at the root of the page tree."""
    linearized = [int(found[1]) for found in [_FIRST_PAGE.search(data[:2048])] if found]
    roots = [count for part in (data, *_packed(data)) for count in _roots(part)]
    return max([*linearized, *roots], default=0) or None


def _roots(data: bytes) -> Iterator[int]:
    """The counts of root page tree nodes: each version in the file has one."""
    for found in islice(_TABLE.finditer(data), _TABLES):
        first, last = max(0, found.start() - _AROUND), found.end() + _AROUND
        begin, end = data.rfind(b"<<", first, found.start()), data.find(b">>", found.end(), last)
        table = data[begin if begin >= 0 else first : end if end >= 0 else last]
        count = _COUNT.search(table)
        if count and b"/Parent" not in table:
            yield int(count[1])


def _packed(data: bytes) -> Iterator[bytes]:
    """The unpacked object streams, without unreadable ones."""
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
