"""An agent's turn for benchmarks: the model's name says how long it is, `lean-60x1000` (60 pieces, one a second).

The first call of a turn runs a query. The second says the pieces, the first of them at once. `lean-8x0+30000` is silent
for 30 seconds before its end. A piece costs the emulator tens of microseconds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from longthread.messages.message import Message, tool_call
from longthread_testing.emulator import completions

SQL = "SELECT name, share FROM t ORDER BY share DESC LIMIT 10"
"""The query of every turn; `make_source` of the benchmarks makes the table."""
_MODEL = re.compile(rb'"model"\s*:\s*"lean-(\d+)x(\d+)(?:\+(\d+))?"')
_ROLE = re.compile(rb'"role"\s*:\s*"(\w+)"')


@dataclass(frozen=True)
class LeanTurn:
    """What one call of a turn is answered with: events, and before each of them so many seconds of silence."""

    events: list[bytes]
    pauses: list[float]


def turn_of(body: bytes) -> LeanTurn | None:
    """Return the answer to a request for chat completions; None if its model names no turn."""
    named = _MODEL.search(body)
    if named is None:
        return None
    roles = _ROLE.findall(body)
    count, milliseconds, silence = (int(found or 0) for found in named.groups())
    return _answer(count, milliseconds, silence) if roles and roles[-1] == b"tool" else _call()


def words(count: int) -> list[str]:
    """Return the pieces of an answer: each one tells its place, so that a lost or doubled one is seen."""
    return [f"{' ' if number else ''}word{number}" for number in range(count)]


@lru_cache
def _call() -> LeanTurn:
    usage = {"input_tokens": 900, "output_tokens": 20, "total_tokens": 920}
    call = tool_call("run_sql", {"sql": SQL}, "call_0123456789abcdef")
    events = _stream(Message("assistant", "", tool_calls=[call], usage_metadata=usage))
    return LeanTurn(events, [0.0] * len(events))


@lru_cache
def _answer(count: int, milliseconds: int, silence: int) -> LeanTurn:
    usage = {"input_tokens": 1_000, "output_tokens": count, "total_tokens": 1_000 + count}
    begin, *_, end, used, done = _stream(Message("assistant", "word0", usage_metadata=usage))
    middle = [_piece(begin, word) for word in words(count)]
    pauses = [0.0, 0.0] + [milliseconds / 1000] * count
    pauses[-1] += silence / 1000
    return LeanTurn([begin, *middle, end + used + done], pauses)


def _piece(begin: bytes, word: str) -> bytes:
    chunk: dict[str, Any] = json.loads(begin.removeprefix(b"data: "))
    chunk["choices"][0]["delta"] = {"content": word}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _stream(message: Message) -> list[bytes]:
    body = completions.completion(message, "lean", "chatcmpl-0123456789abcdef")
    return list(completions.stream(body, include_usage=True))
