"""A provider that answers as a test says, byte for byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from longthread_testing.emulator.listener import Listener


class Answer(NamedTuple):
    """A whole body, or the pieces of a stream."""

    body: bytes | Iterable[bytes]
    status: int = 200


def completion(message: dict[str, Any], **head: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": "stop"}
    return Answer(json.dumps({"id": "chatcmpl-1", "choices": [choice]} | head).encode())


def refused(message: str, status: int = 400) -> Answer:
    return Answer(json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode(), status)


def events(*deltas: dict[str, Any], finish: str | None = "stop", done: bool = True) -> Answer:
    """A stream of deltas of the first choice."""
    chunks = [{"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish:
        chunks.append({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return Answer([*lines, b"data: [DONE]\n\n"] if done else lines)


class PlainProvider:
    """A provider on a socket, while it is open. `answer` gets the body of a request and gives what is sent back."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._answer = answer
        self._app = Starlette(routes=[Route("/{path:path}", self._reply, methods=["POST"])])

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self._listener.port}"

    def __enter__(self) -> Self:
        self._listener = Listener(self._app)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.stop()

    async def _reply(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        answer = self._answer(body)
        if isinstance(answer.body, bytes):
            return Response(answer.body, answer.status, media_type="application/json")
        return StreamingResponse(_pieces(answer.body), answer.status, media_type="text/event-stream")


async def _pieces(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
