"""OpenAI's chat completions, and what compatible vendors add to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.messages.message import Message
from longthread_testing.emulator import completions
from longthread_testing.emulator.faults import Refused, RuleBroken, refuse_unpaired
from longthread_testing.emulator.hidden_fields import HiddenFields
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.wire import ModelReply, ModelRequest, json_bytes

PATH = "/v1/chat/completions"


class CompletionsApi:
    """The dialect of `/v1/chat/completions`."""

    request_id = "x-request-id"

    def __init__(self, rules: ProviderRules) -> None:
        self._hidden = HiddenFields(rules)

    def read(self, body: dict[str, Any], headers: Mapping[str, str]) -> ModelRequest:
        messages = completions.read_messages(body)
        if refused := refuse_unpaired(messages):
            raise RuleBroken(refused)
        self._hidden.check(body.get("messages") or [])
        return ModelRequest(body, body, headers, messages)

    def reply(self, request: ModelRequest, message: Message, id: str, *, hold: bool) -> ModelReply:  # noqa: A002
        include_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
        body = completions.completion(message, request.model, f"chatcmpl-{id}")
        said = request.messages[-1].text if request.messages else ""
        self._hidden.add(completions.reply_of(body), said)
        return ModelReply(body, completions.stream(body, include_usage=include_usage))

    def release(self, request: ModelRequest) -> None:
        """It holds nothing for a request alone."""

    def refusal(self, refused: Refused, request_id: str) -> dict[str, Any]:
        return refused.body

    def error_event(self, refused: Refused, request_id: str, place: int) -> bytes:
        return b"data: " + json_bytes(refused.body) + b"\n\n"

    def forget(self) -> None:
        """It holds no conversations."""
