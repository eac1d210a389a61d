"""The server: it records requests and answers them from a script."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from longthread.testing.scripted import Script, ScriptExhausted, to_message
from longthread_testing.emulator import completions_api, messages_api, responses_api
from longthread_testing.emulator.completions_api import CompletionsApi
from longthread_testing.emulator.delivery import Delivery
from longthread_testing.emulator.echo import echo
from longthread_testing.emulator.embeddings import embeddings
from longthread_testing.emulator.faults import Dropped, Refused, RuleBroken, Slow, StreamError
from longthread_testing.emulator.listener import Listener
from longthread_testing.emulator.messages_api import MessagesApi
from longthread_testing.emulator.models_api import model, model_list
from longthread_testing.emulator.recorded import RecordedRequest, decode_body
from longthread_testing.emulator.response_routes import Answer, response_routes
from longthread_testing.emulator.responses_api import ResponsesApi
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.wire import ModelRequest, Wire, json_bytes, read_request


class ProviderEmulator:
    """A provider on a free port of this machine, within the context: OpenAI-compatible at `base_url`, Anthropic's
    Messages at `anthropic_url`. `app` is the same without a socket.

    `script` holds what a `ScriptedChatModel` takes, and the faults `Refused`, `Slow`, `Dropped` and `StreamError`; or
    one function of the messages answers every request. An exception in it becomes HTTP 500, and so does the script's
    end. Without a script (None), a reply repeats what was said, or calls the tool that a user's message asks for (`use
    the tool NAME with {json}`).

    `requests` holds what it was asked, and `lookups` what clients looked up: its models, or what it does not have.

    Calls without results, or results without calls, are refused as by OpenAI; `rules` has more rules of the vendors.
    `refuse_tools` refuses tools as Ollama does for models without them. `models` is what `/v1/models` lists. `embed`
    makes the vectors of `/v1/embeddings` from texts, or returns a fault. `chunk_bytes` cuts each reply into chunks of
    that many bytes at most, and `gzip` compresses replies for clients that accept it.
    """

    def __init__(
        self,
        script: Sequence[Any] | Callable[[list[Any]], Any] | None = (),
        *,
        loop: bool = False,
        rules: ProviderRules | None = None,
        refuse_tools: bool = False,
        models: Sequence[str] = ("emulated",),
        api_key: str | None = None,
        embed: Callable[[list[str]], Any] | None = None,
        chunk_bytes: int | None = None,
        gzip: bool = False,
    ) -> None:
        rules = rules or ProviderRules()
        self.requests: list[RecordedRequest] = []
        self.lookups: list[RecordedRequest] = []
        self._script = None if script is None else Script(script, loop=loop)
        self._refuse_tools = refuse_tools
        self._models = list(models)
        self._api_key = api_key
        self._embed = embed
        self._delivery = Delivery(chunk_bytes, gzip)
        self._numbers = itertools.count(1)
        self._token = secrets.token_hex(4)  # ids of two emulators differ, as those of two providers do
        self._listener: Listener | None = None
        self._messages = MessagesApi(rules)
        self._completions = CompletionsApi(rules)
        self._responses = ResponsesApi(rules)
        self.app = Starlette(routes=self._routes(), exception_handlers={RuleBroken: self._handle_broken})

    def _routes(self) -> list[Route]:
        models = "/v1/models"
        return [
            Route(completions_api.PATH, self._endpoint(self._completions), methods=["POST"]),
            Route(messages_api.PATH, self._endpoint(self._messages), methods=["POST"]),
            Route(responses_api.PATH, self._endpoint(self._responses), methods=["POST"]),
            Route(f"{messages_api.PATH}/count_tokens", self._make_endpoint(self._count_tokens), methods=["POST"]),
            *(
                Route(path, self._make_endpoint(answer), methods=[method])
                for method, path, answer in response_routes(self._responses, self._next_number)
            ),
            Route("/v1/embeddings", self._embeddings, methods=["POST"]),
            Route(models, self._make_endpoint(self._list_models), methods=["GET"]),
            Route(models + "/{name:path}", self._make_endpoint(self._show_model), methods=["GET"]),
            Route("/{path:path}", self._make_endpoint(self._refuse_unknown), methods=["GET", "POST", "DELETE"]),
        ]

    @property
    def base_url(self) -> str:
        """The base URL for a client, ending in `/v1`."""
        if self._listener is None:
            raise RuntimeError("The emulator is not running: use it in a `with` block.")
        return f"http://127.0.0.1:{self._listener.port}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for a client of Anthropic's, which adds `/v1/messages` itself."""
        return self.base_url.removesuffix("/v1")

    @property
    def used(self) -> int:
        """How many replies of the script were sent."""
        return self._script.used if self._script else 0

    def forget(self) -> None:
        """Lose the threads and responses that are held for later requests, as after their time."""
        for wire in (self._messages, self._completions, self._responses):
            wire.forget()

    def __enter__(self) -> Self:
        self._listener = Listener(self.app)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def _endpoint(self, wire: Wire) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            recorded = await self._record(request)
            self._admit(recorded)
            read = read_request(wire, recorded.body, recorded.headers)
            try:
                return await self._answer(wire, recorded, read)
            except (Exception, ScriptExhausted) as error:  # noqa: BLE001  # the client gets HTTP 500
                return self._refusal(Refused(500, f"{type(error).__name__}: {error}"), recorded)
            finally:
                wire.release(read)

        return endpoint

    async def _answer(self, wire: Wire, recorded: RecordedRequest, read: ModelRequest) -> Response:
        how, number = self._how(recorded), self._next_number()
        script = self._script
        reply = echo(read.messages, read.tool_names) if script is None else script.next(read.messages)
        if isinstance(reply, Slow):
            await asyncio.sleep(reply.seconds)
            reply, how = reply.reply, replace(how, between=reply.between)
        if isinstance(reply, Dropped):
            reply, how = reply.reply, replace(how, dropped=reply.pieces)
        broken = reply if isinstance(reply, StreamError) else None
        reply = broken.reply if broken else reply
        streamed = bool(recorded.body.get("stream"))
        if isinstance(reply, Refused) or (broken and not streamed):
            return self._refusal(broken.error if broken else reply, recorded)
        message = to_message(reply, read.messages, native=bool(read.tool_names))
        made = wire.reply(read, message, number, hold=how.dropped is None and not broken)
        headers = {wire.request_id: f"req_{number}"}
        if not streamed:
            return how.body(json_bytes(made.body), headers)
        events = list(made.events)
        if broken:
            events = events[: broken.pieces]
            events.append(wire.error_event(broken.error, f"req_{number}", len(events)))
        return how.stream(events, headers)

    def _make_endpoint(self, answer: Answer) -> Callable[[Request], Any]:
        """Return the endpoint of what needs no model."""

        async def endpoint(request: Request) -> Response:
            recorded = await self._record(request)
            self._admit(recorded)
            found = answer(recorded, {**request.query_params, **request.path_params})
            headers = {self._wire(recorded).request_id: f"req_{self._next_number()}"}
            if isinstance(found, list):
                return self._how(recorded).stream(found, headers)
            return self._how(recorded).body(json_bytes(found), headers)

        return endpoint

    def _count_tokens(self, recorded: RecordedRequest, _: Mapping[str, str]) -> dict[str, Any]:
        read = read_request(self._messages, recorded.body, recorded.headers)
        self._messages.release(read)
        return {"input_tokens": read.tokens}

    async def _embeddings(self, request: Request) -> Response:
        recorded = await self._record(request)
        if self._embed is None:
            return self._refusal(Refused(404, f"The model {recorded.body.get('model')} does not exist."), recorded)
        given = recorded.body.get("input") or []
        reply = self._deny(recorded) or self._embed([given] if isinstance(given, str) else list(given))
        if isinstance(reply, Slow):
            await asyncio.sleep(reply.seconds)
            reply = reply.reply
        return self._refusal(reply, recorded) if isinstance(reply, Refused) else embeddings(recorded.body, reply)

    def _list_models(self, recorded: RecordedRequest, _: Mapping[str, str]) -> dict[str, Any]:
        return model_list(self._models, anthropic=recorded.is_anthropic)

    def _show_model(self, recorded: RecordedRequest, asked: Mapping[str, str]) -> dict[str, Any]:
        if asked["name"] not in self._models:
            message = f"The model `{asked['name']}` does not exist."
            raise RuleBroken(Refused(404, message, "model_not_found"))
        return model(asked["name"], anthropic=recorded.is_anthropic)

    def _refuse_unknown(self, recorded: RecordedRequest, _: Mapping[str, str]) -> dict[str, Any]:
        raise RuleBroken(Refused(404, f"Not found: {recorded.method} {recorded.path}"))

    def _admit(self, request: RecordedRequest) -> None:
        """Raises RuleBroken: the key is wrong, or the model takes no tools."""
        if denied := self._deny(request):
            raise RuleBroken(denied)
        if self._refuse_tools and request.body.get("tools"):
            message = f"registry.ollama.ai/library/{request.body.get('model')} does not support tools"
            raise RuleBroken(Refused(400, message))

    def _deny(self, request: RecordedRequest) -> Refused | None:
        sent = (request.headers.get("authorization"), request.headers.get("x-api-key"))
        if self._api_key is None or f"Bearer {self._api_key}" in sent or self._api_key in sent:
            return None
        return Refused(401, "Incorrect API key provided.", "invalid_api_key")

    async def _record(self, request: Request) -> RecordedRequest:
        raw = await request.body()
        body, problem = decode_body(raw)
        url, headers = request.url, dict(request.headers)
        recorded = RecordedRequest(request.method, url.path, headers, body, raw, url.query)
        (self.lookups if _is_lookup(recorded) else self.requests).append(recorded)
        if problem:
            raise RuleBroken(Refused(400, problem))
        return recorded

    async def _handle_broken(self, request: Request, broken: Any) -> Response:
        recorded = RecordedRequest(request.method, request.url.path, dict(request.headers), {})
        return self._refusal(broken.refused, recorded)

    def _next_number(self) -> str:
        return f"{self._token}{next(self._numbers):04x}"

    def _refusal(self, refused: Refused, request: RecordedRequest) -> Response:
        wire, request_id = self._wire(request), f"req_{self._next_number()}"
        headers = {**refused.headers, wire.request_id: request_id}
        response = self._how(request).body(json_bytes(wire.refusal(refused, request_id)), headers)
        response.status_code = refused.status
        return response

    def _how(self, request: RecordedRequest) -> Delivery:
        accepted = "gzip" in request.headers.get("accept-encoding", "")
        return replace(self._delivery, gzip=self._delivery.gzip and accepted)

    def _wire(self, request: RecordedRequest) -> Wire:
        if request.is_anthropic:
            return self._messages
        return self._responses if request.is_responses else self._completions


def _is_lookup(request: RecordedRequest) -> bool:
    return request.method == "GET" and not request.path.startswith("/v1/responses")
