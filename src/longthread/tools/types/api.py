"""Builds and calls API tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from longthread.errors import ApiFailed, ApiStatus, LongthreadError
from longthread.tools.api_exchange import BROKEN, NOT_SENT, ApiResponse, Network, send_request
from longthread.tools.api_request import FIELDS, IDEMPOTENT, METHODS, FilledRequest, RequestTemplate
from longthread.tools.arguments import Arguments, add_tool_name
from longthread.tools.secrets import Secrets, read_secrets
from longthread.tools.tool import DefinedTool, ImplementationFields, Observation, Tool, make_failure, make_success
from longthread.tools.tool_type import Bilingual, FormField, ToolParts, ToolType

_ATTEMPTS = 3
_BUSY = frozenset({429, 502, 503, 504})
"""Statuses after which a retry may succeed."""
_PAUSE = 0.2
_SECONDS, _MOST_SECONDS = 30.0, 300.0
_BYTES, _MOST_BYTES = 1_000_000, 20_000_000
_MESSAGE_CHARS = 2_000
"""Characters of an answer in an error."""


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Checks an implementation without sending anything. Raises ToolInvalid."""
    _Api(implementation, Arguments(parameters))


def build(definition: DefinedTool, *, secrets: Secrets | None = None, network: Network | None = None) -> Tool:
    """Builds the tool, by default with the secrets of the settings. Raises ToolInvalid."""
    arguments = Arguments(definition.parameters, tool=definition.name)
    api = _Api(definition.implementation, arguments)
    known = read_secrets(api.template.secrets) if secrets is None else secrets
    over = network or Network()

    async def call(given: Mapping[str, Any]) -> Observation:
        started = time.monotonic()
        try:
            request = api.template.fill(arguments.validate(given), known)
            answer = await api.send(request, over)
            return _build_observation(answer, known, started)
        except LongthreadError as error:
            observation = make_failure(add_tool_name(error, definition.name))
            message = known.scrub(observation["error"]["message"])
            return observation | {"error": observation["error"] | {"message": message}}

    description = definition.description or ""
    return Tool(definition.name, description, definition.parameters, call, retry_safe=api.repeatable)


class _Api:
    """A parsed implementation. Raises ToolInvalid."""

    def __init__(self, implementation: Mapping[str, Any], arguments: Arguments) -> None:
        fields = ImplementationFields(implementation, "api", FIELDS)
        self.template = RequestTemplate(fields, implementation, arguments.properties)
        self.repeatable = self.template.method in IDEMPOTENT or fields.truth("retry_safe")
        self._private = fields.truth("allow_private")
        self._seconds = fields.seconds("timeout_seconds", _SECONDS, _MOST_SECONDS)
        self._most = fields.whole("max_bytes", _BYTES, _MOST_BYTES)

    async def send(self, request: FilledRequest, network: Network) -> ApiResponse:
        """Sends the request, with up to two retries if it may be repeated."""
        try:
            async with asyncio.timeout(self._seconds):
                for attempt in range(1, _ATTEMPTS):
                    answer = await self._attempt(request, network)
                    if answer is not None:
                        return answer
                    await asyncio.sleep(_PAUSE * 2**attempt)
                return await self._once(request, network)
        except TimeoutError as error:
            raise ApiFailed(reason=f"there was no whole answer within {self._seconds:g} s.") from error

    async def _attempt(self, request: FilledRequest, network: Network) -> ApiResponse | None:
        """The answer; None if a retry is safe and may help."""
        try:
            answer = await self._once(request, network)
        except ApiFailed as error:
            sent = error.sent
            if sent == NOT_SENT or (sent == BROKEN and self.repeatable):
                return None
            raise
        return None if answer.status in _BUSY and self.repeatable else answer

    async def _once(self, request: FilledRequest, network: Network) -> ApiResponse:
        return await send_request(
            request,
            self.template.hosts,
            network,
            most=self._most,
            allow_private=self._private,
            seconds=self._seconds,
        )


def _build_observation(answer: ApiResponse, secrets: Secrets, started: float) -> Observation:
    body, cut = answer.body(secrets)
    if not 200 <= answer.status < 300:
        raise ApiStatus(status=answer.status, body=str(body)[:_MESSAGE_CHARS] or "(nothing).")
    data: dict[str, Any] = {"status": answer.status, "body": body}
    if answer.media_type:
        data["content_type"] = secrets.scrub(answer.media_type)
    if cut:
        data["notes"] = [f"The answer is longer than what is shown ({len(body)} characters)."]
    return make_success(data | {"elapsed_ms": round((time.monotonic() - started) * 1000)})


async def _build(definition: DefinedTool, _: ToolParts) -> list[Tool]:
    return [build(definition)]


TYPE = ToolType(
    Bilingual("API", "API"),
    check,
    _build,
    about=Bilingual("a call to a service", "调用一个服务"),
    fields=(
        FormField(
            "endpoint",
            "code",
            Bilingual("Address", "地址"),
            hint=Bilingual(
                "Write {{name}} where an argument stands, in the path or behind ?.",
                "参数的位置写 {{name}}，可以在路径里或 ? 之后。",
            ),
        ),
        FormField(
            "method",
            "choice",
            Bilingual("Method", "方法"),
            options=METHODS,
            none=Bilingual("GET, or POST with a body", "GET；有请求体时 POST"),
        ),
    ),
    more=Bilingual(
        "Such as headers, body_template, hosts or timeout_seconds.",
        "例如 headers、body_template、hosts、timeout_seconds。",
    ),
)
