"""A streamed reply: its server-sent events, and the chunks of a chat completion, put together. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from longthread.gateway.raw_json import write_json

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


_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_IN_PIECES = frozenset({"text", "summary", "thinking", "reasoning", "data", "arguments", "input"})
"""Texts that come in pieces; of all others the last one holds."""
_CALL_FIELDS = ("function", "custom")


def message_of(body: bytes) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Return the first choice's message, the head of the response, and whether it is whole: the provider said why the
    reply ended, or that it has. Raises ValueError: an event is no JSON."""
    deltas: list[Mapping[str, Any]] = []
    head: dict[str, Any] = {}
    finish: Any = None
    for event in event_data(body):
        head |= {name: value for name, value in event.items() if name != "choices" and value is not None}
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                deltas.append(choice.get("delta") or {})
                finish = choice.get("finish_reason") or finish
    ended = finish is not None or _DONE.search(body) is not None
    return _message(deltas), head | {"finish_reason": finish}, ended and "error" not in head


def _message(deltas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    pieces: dict[str, list[Any]] = {}
    calls: list[list[Mapping[str, Any]]] = []
    open_calls: dict[Any, list[Mapping[str, Any]]] = {}
    for delta in deltas:
        for name, value in delta.items():
            if name == "tool_calls":
                for piece in value or ():
                    _add_call(calls, open_calls, piece)
            elif name != "role" and value is not None:
                pieces.setdefault(name, []).append(value)
    message = {"role": "assistant", "content": None} | {name: _join_pieces(each) for name, each in pieces.items()}
    if "function_call" in pieces:
        message["function_call"] = _join_call(pieces["function_call"], "arguments")
    return message | ({"tool_calls": [_call(each) for each in calls]} if calls else {})


def _add_call(
    calls: list[list[Mapping[str, Any]]], open_calls: dict[Any, list[Mapping[str, Any]]], piece: Mapping[str, Any]
) -> None:
    """Add a piece to its call. Some vendors give each call the same index: a new id is a new call."""
    index, id_ = piece.get("index"), piece.get("id")
    own = open_calls.get(index)
    if own is None or (id_ and id_ != next((each["id"] for each in own if each.get("id")), id_)):
        own = open_calls[index] = []
        calls.append(own)
    own.append(piece)


def _call(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    call: dict[str, Any] = {}
    for name in dict.fromkeys(name for piece in pieces for name in piece if name != "index"):
        values = [piece[name] for piece in pieces if piece.get(name) not in (None, "")]
        if name in _CALL_FIELDS and values:
            call[name] = _join_call(values, "arguments" if name == "function" else "input")
        elif values:
            call[name] = _join_pieces(values) if isinstance(values[0], dict) else values[-1]
    return call


def _join_call(pieces: Sequence[Mapping[str, Any]], said: str) -> dict[str, Any]:
    """Return what is called: the name comes once, or again and again; what is said to it comes in pieces."""
    name = "".join(dict.fromkeys(piece["name"] for piece in pieces if piece.get("name")))
    texts = (piece[said] for piece in pieces if piece.get(said) is not None)
    return {"name": name, said: "".join(text if isinstance(text, str) else write_json(text) for text in texts)}


def _join_pieces(pieces: Sequence[Any]) -> Any:
    """Return a field whose pieces these are: texts, lists of blocks, or objects."""
    if all(isinstance(piece, str) for piece in pieces):
        return _whole("".join(pieces))
    if any(isinstance(piece, list) for piece in pieces):
        blocks: list[Any] = []
        for piece in pieces:
            for block in [{"type": "text", "text": piece}] if isinstance(piece, str) else piece:
                _add_block(blocks, block)
        return blocks
    if all(isinstance(piece, dict) for piece in pieces):
        names = dict.fromkeys(name for piece in pieces for name in piece)
        return {name: _member(name, [piece[name] for piece in pieces if name in piece]) for name in names}
    return pieces[-1]


def _member(name: str, values: Sequence[Any]) -> Any:
    known = [value for value in values if value not in (None, "")] or [values[-1]]
    return _join_pieces(known) if name in _IN_PIECES or not isinstance(known[0], str) else known[-1]


def _add_block(blocks: list[Any], block: Any) -> None:
    """Add a block, or a piece of the one before: it has its index, or the same type, and that one is not signed."""
    for place in range(len(blocks) - 1, -1, -1):
        before = blocks[place]
        if not (isinstance(before, dict) and isinstance(block, dict)) or before.get("type") != block.get("type"):
            break
        same = before.get("index") == block.get("index")
        if same and (block.get("index") is not None or not before.get("signature")):
            blocks[place] = _join_pieces([before, block])
            return
    blocks.append(block)


def _whole(text: str) -> str:
    """Return a text whose characters may have been cut in halves: two surrogates in two chunks are one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
