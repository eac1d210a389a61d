"""A provider for benchmarks: fixed replies as bare ASGI, so that what is measured is not the provider.

It reads no JSON: it looks for `"stream": true` and for thinking in the bytes, and fills a new id into a reply that was
written once. Each reply thinks (if asked to) in a signed block, and says a few words. Models of agents' turns are in
`lean_turns`.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from typing import Any

from starlette.types import Receive, Scope, Send

from longthread.messages.message import Message
from longthread_testing.emulator.completions_api import PATH as COMPLETIONS
from longthread_testing.emulator.completions_api import CompletionsApi
from longthread_testing.emulator.lean_turns import LeanTurn, turn_of
from longthread_testing.emulator.messages_api import PATH as MESSAGES
from longthread_testing.emulator.messages_api import MessagesApi
from longthread_testing.emulator.responses_api import PATH as RESPONSES
from longthread_testing.emulator.responses_api import ResponsesApi
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.wire import Wire, json_bytes

TEXT = "The answer is 42, as before. 答案是四十二。"
_ID = "0123456789abcdef"
"""What stands for the id in a reply that was written once."""

_STREAM = re.compile(rb'"stream"\s*:\s*true')
_THINKING = re.compile(rb'"thinking"\s*:\s*\{[^{}]*"type"\s*:\s*"(?:enabled|adaptive)"')
_USAGE = {"input_tokens": 1_000, "output_tokens": 16, "total_tokens": 1_016}

_Reply = tuple[bytes, list[bytes]]
"""A reply as one body, and as the events of a stream."""


class LeanProvider:
    """The ASGI application."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        rules = ProviderRules(signatures=True)
        wires: dict[str, Wire] = {
            MESSAGES: MessagesApi(rules),
            RESPONSES: ResponsesApi(rules),
            COMPLETIONS: CompletionsApi(rules),
        }
        self._replies = {
            (path, thinks): _reply(wire, thinks=thinks) for path, wire in wires.items() for thinks in (False, True)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if scope["path"] == COMPLETIONS and (turn := turn_of(body)) is not None:
            await self._say(send, turn)
            return
        reply = self._replies.get((scope["path"], _says(body, _THINKING)))
        number = self._number()
        headers = [(b"request-id", b"req_" + number), (b"x-request-id", b"req_" + number)]
        if reply is None:
            await _send(send, 404, headers, [b'{"error":{"message":"Not found."}}'])
            return
        whole, events = reply
        streamed = _says(body, _STREAM)
        kind = b"text/event-stream" if streamed else b"application/json"
        parts = [part.replace(_ID.encode(), number) for part in (events if streamed else [whole])]
        headers.append((b"content-type", kind))
        await _send(send, 200, headers, parts)

    def _number(self) -> bytes:
        return f"{self._token}{next(self._numbers):08x}".encode()

    async def _say(self, send: Send, turn: LeanTurn) -> None:
        number = self._number()
        headers = [(b"x-request-id", b"req_" + number), (b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event, seconds in zip(turn.events, turn.pauses, strict=True):
            if seconds:
                await asyncio.sleep(seconds)
            body = event.replace(_ID.encode(), number)
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body"})


def _says(body: bytes, field: re.Pattern[bytes]) -> bool:
    """Return whether the request has the field. In a text, a quote is escaped; a regex assertion on the character
    before it would make the search slow."""
    return any(body[found.start() - 1] != _ESCAPE for found in field.finditer(body))


_ESCAPE = ord("\\")


def _reply(wire: Wire, *, thinks: bool) -> _Reply:
    asked: dict[str, Any] = {"model": "lean", "stream_options": {"include_usage": True}}
    asked["thinking"] = {"type": "enabled" if thinks else "disabled"}
    said = {"role": "user", "content": "q"}
    request = wire.read({**asked, "input": "q", "messages": [said]}, {})
    message = Message("assistant", TEXT, usage_metadata=dict(_USAGE))
    reply = wire.reply(request, message, _ID, hold=False)
    return json_bytes(reply.body), [*reply.events]


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes]) -> None:
    if len(parts) == 1:
        headers.append((b"content-length", str(len(parts[0])).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for place, part in enumerate(parts, 1):
        await send({"type": "http.response.body", "body": part, "more_body": place < len(parts)})
