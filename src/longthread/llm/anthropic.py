"""Models that speak Anthropic's Messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from longthread.llm.chat import PLAIN, CallOptions, Chunk, ToolSpec
from longthread.llm.failures import StreamTruncated
from longthread.llm.http import Endpoint, decoding
from longthread.messages.anthropic import AnthropicReply, to_request, tool_choice, tool_specs
from longthread.messages.message import Message

PATH = "/v1/messages"
VERSION = "2023-06-01"
"""The value of the header `anthropic-version`."""


@dataclass(frozen=True, slots=True)
class AnthropicModel:
    """One model. A request must say the most tokens of a reply."""

    name: str
    endpoint: Endpoint
    max_tokens: int
    temperature: float | None = None
    window: int | None = None
    tool_calling: bool | None = True

    @property
    def address(self) -> str:
        return self.endpoint.address.removesuffix(PATH)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        reply = AnthropicReply(self.name)
        async with aclosing(self.endpoint.events(self._body(messages, tools, options))) as events:
            async for event in events:
                with decoding():
                    pieces = list(reply.add(event.get("whole", event)))
                for text, thinking in pieces:
                    if text or thinking:
                        yield Chunk(text, thinking)
        if not reply.is_whole:
            raise StreamTruncated("The reply ended before it was complete.")
        with decoding():
            message = reply.message()
        yield Chunk(message=message)

    async def close(self) -> None:
        await self.endpoint.close()

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], options: CallOptions) -> dict[str, Any]:
        prompt, sent = to_request(messages)
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": options.max_tokens or self.max_tokens,
            "messages": sent,
            "stream": True,
        }
        if prompt:
            body["system"] = prompt
        if self.temperature is not None:
            body["temperature"] = min(self.temperature, 1.0)
        if options.stop:
            body["stop_sequences"] = list(options.stop)
        if tools:
            body["tools"] = tool_specs(tools)
            if options.tool_choice:
                body["tool_choice"] = tool_choice(options.tool_choice)
        return body
