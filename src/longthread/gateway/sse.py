"""Server-sent events: which bytes are whole events, and what they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

_END = re.compile(rb"\n\r?\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


class FinalEvent:
    """Passes a stream on by whole events, and holds back its final event with what follows.

    `final` are the names of final events. An encoded stream cannot be cut: it passes by the pieces that came, up to the
    one in which the final event begins.
    """

    def __init__(self, final: Sequence[str], *, is_encoded: bool) -> None:
        self._final = final
        self._marks = [name.encode() for name in final]
        self._is_encoded = is_encoded
        self._rest: list[bytes] = []
        self._last = b""
        """The end of the rest: an end of an event may lie across two pieces."""
        self._held: list[bytes] = []

    @property
    def is_held(self) -> bool:
        """Whether the final event has come."""
        return bool(self._held)

    def __call__(self, piece: bytes, data: bytes) -> bytes:
        """Take a piece, and its decoded data; return what may pass."""
        if self._held:
            self._held.append(piece)
            return b""
        passed = self._take(data)
        if not self._is_encoded:
            return passed
        if self._held:
            self._held = [piece]
            return b""
        return piece

    def _take(self, data: bytes) -> bytes:
        self._rest.append(data)
        near = self._last + data
        ends = _ends(near)
        self._last = near[-3:]
        if not ends:
            return b""
        data = b"".join(self._rest)
        ends = [len(data) - len(near) + end for end in ends]
        whole, rest = data[: ends[-1]], data[ends[-1] :]
        self._rest, self._last = [rest], rest[-3:]
        if self._has_mark(whole):
            start = 0
            for end in ends:
                event = whole[start:end]
                if self._has_mark(event) and is_final(event, self._final):
                    self._held = [whole[start:] + rest]
                    return whole[:start]
                start = end
        return whole

    def _has_mark(self, data: bytes) -> bool:
        return any(mark in data for mark in self._marks)

    def end(self) -> bytes:
        """Return what was held back; the stream has ended."""
        if self._held:
            return b"".join(self._held)
        return b"" if self._is_encoded else b"".join(self._rest)


def _ends(data: bytes) -> list[int]:
    """Return where events end."""
    if b"\r" in data:
        return [found.end() for found in _END.finditer(data)]
    ends, at = [], data.find(b"\n\n")  # of what almost every provider sends, much faster
    while at >= 0:
        ends.append(at + 2)
        at = data.find(b"\n\n", at + 2)
    return ends


def whole_events(body: bytes) -> bytes:
    """Return a stream up to the end of its last whole event."""
    ends = _ends(body)
    return body[: ends[-1]] if ends else b""


def is_final(event: bytes, names: Sequence[str]) -> bool:
    """Whether an event has one of these names: in its `event` line, as its data, or as the `type` in its data. Its
    texts may hold anything."""
    for line in _LINE.split(event):
        field, _, value = line.partition(b":")
        if field in (b"event", b"data") and value.decode("utf-8", "replace").strip() in names:
            return True
    with suppress(ValueError, RecursionError):
        return any(each.get("type") in names for each in event_data(event))
    return False


def event_data(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that events hold; others are skipped. Raises ValueError: an event is no JSON."""
    for text in event_texts(body):
        value = json.loads(text)
        if isinstance(value, dict):
            yield value


def event_texts(body: bytes, wanted: re.Pattern[bytes] | None = None) -> Iterator[str]:
    """Yield the data of events, only of those in which `wanted` is found. `[DONE]` is none."""
    for event in _END.split(body) if b"\r" in body else body.split(b"\n\n"):
        if wanted is not None and not wanted.search(event):
            continue
        lines = [line[5:].removeprefix(b" ") for line in _LINE.split(event) if line.startswith(b"data:")]
        data = b"\n".join(lines)
        if data and data.strip() != b"[DONE]":
            yield data.decode("utf-8", "surrogatepass")
