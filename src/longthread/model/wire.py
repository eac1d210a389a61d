"""Messages as a provider's wire has them: an entry's payload with the raw JSON of its blocks.

The blocks are compressed with the entry's text as dictionary: what the text column holds is not stored twice.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

WIRE = "wire:"
"""The kind of a packed payload that holds raw blocks, before the name of their dialect."""
_PACKED = b"\x00"
_WINDOW = 32_768
"""Bytes of a dictionary that zlib takes."""


def pack(dialect: str, blocks: Sequence[str], text: str) -> bytes:
    """Return the payload of an entry whose message has these blocks, as JSON texts."""
    body = f"[{','.join(blocks)}]".encode("utf-8", "surrogatepass")
    packer = zlib.compressobj(6, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, _dictionary(text))
    return b"".join([_PACKED, f"{WIRE}{dialect}".encode(), _PACKED, packer.compress(body), packer.flush()])


def is_wire(payload: bytes | None) -> bool:
    return payload is not None and payload.startswith(_PACKED + WIRE.encode())


def unpack(payload: bytes, text: str) -> tuple[str, str]:
    """Return the dialect of a payload, and its blocks as the text of a JSON list. Raises ValueError: it is damaged."""
    kind, body = payload[1:].split(_PACKED, 1)
    unpacker = zlib.decompressobj(-15, _dictionary(text))
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return kind.decode().removeprefix(WIRE), raw.decode("utf-8", "surrogatepass")


def _dictionary(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")[-_WINDOW:]
