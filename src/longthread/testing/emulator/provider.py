"""The server: it records requests and answers them from a script."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from longthread.messages.message import Message
from longthread.testing.emulator import anthropic, completions
from longthread.testing.emulator.anthropic import refused_block
from longthread.testing.emulator.embeddings import embeddings
from longthread.testing.emulator.faults import Dropped, Refused, Slow, unpaired
from longthread.testing.scripted import Script, ScriptExhausted, to_message

ANTHROPIC = "/v1/messages"
_START_SECONDS = 10.0


class _ConnectionDropped(Exception):  # what the script asked for, not an error of the emulator
    """Ends a response in the middle: uvicorn closes the connection."""


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it came. `body` is the decoded JSON; header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def tool_names(self) -> list[str]:
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools") or ()]

    @property
    def is_anthropic(self) -> bool:
        """Whether it has Anthropic's form; else OpenAI's."""
        return self.path == ANTHROPIC

    @property
    def messages(self) -> list[Message]:
        return anthropic.received(self.body) if self.is_anthropic else completions.received(self.body)


class ProviderEmulator:
    """A provider on a free port of this machine, within the context: OpenAI-compatible at `base_url`, Anthropic's
    Messages at `anthropic_url`.

    `script` holds what a `ScriptedChatModel` takes, and the faults `Refused`, `Slow` and `Dropped`; or one function of
    the messages answers every request. An exception in it becomes HTTP 500, and so does the script's end. Calls without
    results, or results without calls, are refused as by OpenAI. `refuse_tools` refuses tools as Ollama does for models
    without them. `models` is what `/v1/models` lists. `embed` makes the vectors of `/v1/embeddings` from texts, or
    returns a fault.
    """

    def __init__(
        self,
        script: Sequence[Any] | Callable[[list[Any]], Any] = (),
        *,
        loop: bool = False,
        refuse_tools: bool = False,
        models: Sequence[str] = ("emulated",),
        api_key: str | None = None,
        embed: Callable[[list[str]], Any] | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self._script = Script(script, loop=loop)
        self._refuse_tools = refuse_tools
        self._models = list(models)
        self._api_key = api_key
        self._embed = embed
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """The base URL for a client, ending in `/v1`."""
        if self._socket is None:
            raise RuntimeError("The emulator is not running: use it in a `with` block.")
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for a client of Anthropic's, which adds `/v1/messages` itself."""
        return self.base_url.removesuffix("/v1")

    @property
    def used(self) -> int:
        """How many replies of the script were sent."""
        return self._script.used

    def __enter__(self) -> Self:
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route(ANTHROPIC, self._chat, methods=["POST"]),
                Route("/v1/embeddings", self._embeddings, methods=["POST"]),
                Route("/v1/models", self._list_models, methods=["GET"]),
            ]
        )
        config = uvicorn.Config(
            app, log_config=None, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=0
        )
        # asyncio sends small pieces at once only on sockets that name their protocol.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(100)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="provider-emulator", daemon=True
        )
        self._thread.start()
        # The socket listens already: a client that comes too early waits in its queue.
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None and self._socket is not None:
            self._server.should_exit = True
            self._thread.join(_START_SECONDS)
            self._socket.close()
            self._socket = self._server = self._thread = None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    async def _list_models(self, request: Request) -> Response:
        await self._record(request)
        shared = {"object": "model", "created": completions.CREATED, "owned_by": "script"}
        data = [{"id": name, **shared} for name in self._models]
        return JSONResponse({"object": "list", "data": data})

    async def _chat(self, request: Request) -> Response:
        recorded = await self._record(request)
        try:
            reply = self._next(recorded)
            between, dropped = 0.0, None
            if isinstance(reply, Slow):
                await asyncio.sleep(reply.seconds)
                reply, between = reply.reply, reply.between
            if isinstance(reply, Dropped):
                reply, dropped = reply.reply, reply.pieces
            if isinstance(reply, Refused):
                return _refusal(reply, recorded)
            message = to_message(reply, recorded.messages, native=bool(recorded.tool_names))
        except (Exception, ScriptExhausted) as error:  # noqa: BLE001  # the client gets HTTP 500, as from a provider
            return _refusal(Refused(500, f"{type(error).__name__}: {error}"), recorded)
        if not recorded.body.get("stream"):
            return _whole(_body(recorded, message, self.used), dropped)
        events = list(_events(recorded, message, self.used))
        return StreamingResponse(_send(events, between, dropped), media_type="text/event-stream")

    async def _embeddings(self, request: Request) -> Response:
        recorded = await self._record(request)
        if self._embed is None:
            return _refusal(Refused(404, f"The model {recorded.body.get('model')} does not exist."), recorded)
        given = recorded.body.get("input") or []
        reply = self._denied(recorded) or self._embed([given] if isinstance(given, str) else list(given))
        if isinstance(reply, Slow):
            await asyncio.sleep(reply.seconds)
            reply = reply.reply
        return _refusal(reply, recorded) if isinstance(reply, Refused) else embeddings(recorded.body, reply)

    def _denied(self, request: RecordedRequest) -> Refused | None:
        sent = (request.headers.get("authorization"), request.headers.get("x-api-key"))
        if self._api_key is None or f"Bearer {self._api_key}" in sent or self._api_key in sent:
            return None
        return Refused(401, "Incorrect API key provided.", "invalid_api_key")

    def _next(self, request: RecordedRequest) -> Any:
        """Return the answer to the request; a refusal uses no reply of the script."""
        if denied := self._denied(request):
            return denied
        if self._refuse_tools and request.body.get("tools"):
            return Refused(400, f"registry.ollama.ai/library/{request.body.get('model')} does not support tools")
        if refused := (refused_block(request.body) if request.is_anthropic else None) or unpaired(request.messages):
            return refused
        return self._script.next(request.messages)

    async def _record(self, request: Request) -> RecordedRequest:
        raw = await request.body()
        recorded = RecordedRequest(
            request.method, request.url.path, dict(request.headers), json.loads(raw) if raw else {}
        )
        self.requests.append(recorded)
        return recorded


def _refusal(refused: Refused, request: RecordedRequest) -> Response:
    body = anthropic.refusal(refused) if request.is_anthropic else refused.body
    return JSONResponse(body, status_code=refused.status, headers=refused.headers)


def _body(request: RecordedRequest, message: Message, number: int) -> dict[str, Any]:
    model = str(request.body.get("model"))
    whole = anthropic.whole if request.is_anthropic else completions.completion
    return whole(message, model, number)


def _events(request: RecordedRequest, message: Message, number: int) -> Iterator[bytes]:
    model = str(request.body.get("model"))
    if request.is_anthropic:
        return anthropic.stream(message, model, number)
    include_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
    return completions.stream(message, model, number, include_usage=include_usage)


def _whole(body: dict[str, Any], dropped: int | None) -> Response:
    if dropped is None:
        return JSONResponse(body)
    raw = json.dumps(body).encode()
    half = _send([raw[: len(raw) // 2]], 0.0, 1)
    return StreamingResponse(half, media_type="application/json", headers={"content-length": str(len(raw))})


async def _send(parts: Sequence[bytes], between: float, dropped: int | None) -> AsyncIterator[bytes]:
    for place, part in enumerate(parts):
        if place == dropped:
            break
        yield part
        await asyncio.sleep(between)
    if dropped is not None:
        raise _ConnectionDropped
