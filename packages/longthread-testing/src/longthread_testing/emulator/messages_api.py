"""Anthropic's Messages: thinking, message threads, and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.messages.message import Message
from longthread_testing.emulator import anthropic
from longthread_testing.emulator.faults import Refused, RuleBroken, refuse_unpaired
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.thinking import BINDING_BETA, HIDDEN, asks_for_thinking, check, mode, sign_blocks
from longthread_testing.emulator.threads import MessageThreads
from longthread_testing.emulator.wire import ModelReply, ModelRequest

PATH = "/v1/messages"


class MessagesApi:
    """The dialect of `/v1/messages`."""

    request_id = "request-id"

    def __init__(self, rules: ProviderRules) -> None:
        self._rules = rules
        self._threads = MessageThreads()

    def read(self, body: dict[str, Any], headers: Mapping[str, str]) -> ModelRequest:
        beta = headers.get("anthropic-beta", "")
        whole = self._threads.expand(body, beta, on=self._rules.threads)
        request = ModelRequest(body, whole, headers, anthropic.read_messages(whole))
        try:
            if refused := anthropic.refused_block(whole) or refuse_unpaired(request.messages):
                raise RuleBroken(refused)
            return ModelRequest(body, whole, headers, request.messages, check(whole, self._rules))
        except RuleBroken:
            self.release(request)
            raise

    def reply(self, request: ModelRequest, message: Message, id: str, *, hold: bool) -> ModelReply:  # noqa: A002
        blocks = anthropic.reply_blocks(message)
        if self._rules.signatures:
            blocks = [
                *sign_blocks(self._thought(request, message, blocks), request.body, request.rest, self._rules, id)
            ]
        body = anthropic.whole(message, blocks, request.model, f"msg_{id}")
        if BINDING_BETA in request.headers.get("anthropic-beta", ""):
            body["input_transformations"] = request.rest.transformations
        if hold:
            self._threads.hold(request.body, body)
        return ModelReply(body, anthropic.stream(body, message))

    def _thought(self, request: ModelRequest, message: Message, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put thinking before a reply that the script gives as a text; blocks are what the script says."""
        if mode(request.body) == "disabled":
            return [each for each in blocks if each["type"] not in HIDDEN]
        if asks_for_thinking(request.body) and isinstance(message.content, str):
            said = request.messages[-1].text if request.messages else ""
            return [{"type": "thinking", "thinking": f"They said: {said[:80]}"}, *blocks]
        return blocks

    def release(self, request: ModelRequest) -> None:
        self._threads.release(request.sent)

    def refusal(self, refused: Refused, request_id: str) -> dict[str, Any]:
        return anthropic.refusal(refused, request_id)

    def error_event(self, refused: Refused, request_id: str, place: int) -> bytes:
        told = anthropic.refusal(refused, request_id)
        return anthropic.event("error", error=told["error"], request_id=request_id)

    def forget(self) -> None:
        self._threads.forget()
