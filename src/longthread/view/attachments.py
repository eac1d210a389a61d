"""Token estimates for attachments, by pages, duration or text.

The pages of a PDF are counted by its page tree, or by its page objects.
"""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from itertools import islice

from longthread.model.content import Attachment, AttachmentKind
from longthread.view.tokens import ANY, IMAGE, estimate

PAGE = 3_000
"""Tokens of a page: Anthropic's maximum for text and image. Others charge less."""
PAGE_BYTES = 25_000
"""Bytes of a page if their number is unknown."""
MOST_PAGES = 100
"""The most pages assumed for such a file: the limit of large providers."""
AUDIO_SECOND = 32
"""Tokens of a second of audio by Google; OpenAI has 10."""
VIDEO_SECOND = 300
"""Tokens of a second of video by Google."""
ELSEWHERE: Mapping[AttachmentKind, int] = {
    "image": IMAGE,
    "document": 5 * PAGE,
    "text": 5_000,
    "audio": 60 * AUDIO_SECOND,
    "video": 60 * VIDEO_SECOND,
}
"""Tokens of content at a URL or with the provider: five pages, or a minute."""
_BYTES_A_SECOND = {"mp3": 16_000, "mpeg": 16_000, "flac": 60_000, "pcm16": 48_000, "l16": 48_000}
"""Of audio formats with a usual rate,"""
_SPEECH = 8_000
"""of other audio, mostly speech,"""
_FILM = 125_000
"""and of video."""
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


def attachment_tokens(given: Attachment, family: str = ANY) -> int:
    """An upper estimate for an attachment with a family of models."""
    if given.kind == "image":
        return IMAGE
    label = estimate(given.label, family) if given.label else 0
    if given.text:
        return label + estimate(given.text, family) + given.images * IMAGE
    if not given.data:
        return label + (given.images * IMAGE or ELSEWHERE[given.kind])
    size = len(given.data) * 3 // 4
    if given.kind == "audio":
        usual = next((rate for name, rate in _BYTES_A_SECOND.items() if name in given.mime), _SPEECH)
        return label + round((1 + size / (_wav_rate(given.data) or usual)) * AUDIO_SECOND)
    if given.kind == "video":
        return label + round(size / _FILM * VIDEO_SECOND)
    pages = pages_in(given.data) if "pdf" in given.mime else None
    return label + (pages or min(MOST_PAGES, 1 + size // PAGE_BYTES)) * PAGE


def _wav_rate(data: str) -> int:
    """The bytes per second in a WAV header, or 0."""
    try:
        head = b64decode(data[:64])
    except (binascii.Error, ValueError):
        return 0
    is_wav = head[:4] == b"RIFF" and head[8:16] == b"WAVEfmt "
    return int.from_bytes(head[28:32], "little") if is_wav else 0


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
