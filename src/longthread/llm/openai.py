"""Models that speak OpenAI's Chat Completions: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and most gateways."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from longthread.llm.chat import PLAIN, CallOptions, Chunk, ToolSpec
from longthread.llm.failures import StreamTruncated
from longthread.llm.http import Endpoint, decoding, header_value
from longthread.messages.chat_completions import CompletionReply, to_request, tool_choice, tool_specs
from longthread.messages.message import Message

PATH = "/chat/completions"
NO_KEY = "not-needed"
"""Sent to self-hosted servers; some require a key."""


def bearer(name: str, key: str) -> dict[str, str]:
    """Return the header for a key. Raises ModelUnavailable: no header can hold it."""
    return {"authorization": f"Bearer {header_value(name, key)}"}


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    """One model of one server.

    `limit_name` is the server's field for the most tokens of a reply: many know only `max_tokens`. `is_openai`: it is
    OpenAI's own, which refuses unknown fields; `is_near`: it is on this machine or network. `reports_usage` asks for
    the usage of streams.
    """

    name: str
    endpoint: Endpoint
    max_tokens: int | None = None
    temperature: float | None = None
    limit_name: str = "max_tokens"
    reports_usage: bool = True
    is_openai: bool = False
    is_near: bool = False
    window: int | None = None
    tool_calling: bool | None = None

    @property
    def address(self) -> str:
        return self.endpoint.address.removesuffix(PATH)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        reply, done = CompletionReply(self.name), False
        async with aclosing(self.endpoint.events(self._body(messages, tools, options))) as events:
            async for event in events:
                done = "done" in event or "whole" in event or done
                with decoding():
                    pieces = list(reply.add(event.get("whole", event)))
                for text, thinking in pieces:
                    if text or thinking:
                        yield Chunk(text, thinking)
        if not (reply.is_whole or (done and not reply.is_empty)):
            raise StreamTruncated("The reply ended before it was complete.")
        with decoding():
            message = reply.message()
        yield Chunk(message=message)

    async def close(self) -> None:
        await self.endpoint.close()

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], options: CallOptions) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": to_request(messages, self.name, beside=not self.is_openai),
            "stream": True,
        }
        if self.reports_usage:
            body["stream_options"] = {"include_usage": True}
        if limit := options.max_tokens or self.max_tokens:
            body[self.limit_name] = limit
        temperature = self.temperature if self.temperature is not None or not self.is_near else options.temperature
        if temperature is not None:
            body["temperature"] = temperature
        if options.stop:
            body["stop"] = list(options.stop)
        if tools:
            body["tools"] = tool_specs(tools)
            if options.tool_choice:
                body["tool_choice"] = tool_choice(options.tool_choice)
        return body
