"""How replies travel: in one piece or in many, compressed, late, or broken off."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response, StreamingResponse

_GZIP = 31
"""The window bits that make zlib write gzip."""


class ConnectionDropped(Exception):  # what the script asked for, not an error of the emulator
    """Ends a response in the middle: uvicorn closes the connection."""


@dataclass(frozen=True)
class Delivery:
    """`chunk_bytes` is the most bytes of one chunk of a reply, wherever that cuts it. `gzip` compresses. A stream waits
    `between` seconds after each piece. `dropped` is the piece at which the connection breaks, from the end if it is
    negative; a body breaks in its middle."""

    chunk_bytes: int | None = None
    gzip: bool = False
    between: float = 0.0
    dropped: int | None = None

    def body(self, raw: bytes, headers: Mapping[str, str]) -> Response:
        told, [raw] = self._compress_parts([raw], headers)
        told["content-length"] = str(len(raw))
        if self.dropped is None and self.chunk_bytes is None:
            return Response(raw, media_type="application/json", headers=told)
        parts = [raw] if self.dropped is None else [raw[: len(raw) // 2]]
        return StreamingResponse(self._sent(parts), media_type="application/json", headers=told)

    def stream(self, events: Sequence[bytes], headers: Mapping[str, str]) -> Response:
        told, parts = self._compress_parts(events, headers)
        return StreamingResponse(self._sent(parts[: self.dropped]), media_type="text/event-stream", headers=told)

    def _compress_parts(self, parts: Sequence[bytes], headers: Mapping[str, str]) -> tuple[dict[str, str], list[bytes]]:
        if not self.gzip or not parts:
            return dict(headers), [*parts]
        packer = zlib.compressobj(wbits=_GZIP)
        packed = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in parts[:-1]]
        packed += [packer.compress(parts[-1]) + packer.flush()]
        return {**headers, "content-encoding": "gzip"}, packed

    async def _sent(self, parts: Sequence[bytes]) -> AsyncIterator[bytes]:
        for part in parts:
            for chunk in self._chunks(part):
                yield chunk
                await asyncio.sleep(0)
            await asyncio.sleep(self.between)
        if self.dropped is not None:
            raise ConnectionDropped

    def _chunks(self, part: bytes) -> Iterator[bytes]:
        size = self.chunk_bytes or len(part) or 1
        return (part[start : start + size] for start in range(0, len(part), size))
