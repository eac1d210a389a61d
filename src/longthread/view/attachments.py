"""Token estimates for attachments, by pages, duration or text."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping

from longthread.model.attachment import Attachment, AttachmentKind
from longthread.view.pdf import pages_in
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
