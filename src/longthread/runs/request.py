"""One request to a chat model, and its streamed reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longthread.llm.chat import PLAIN, CallOptions, ChatModel, ToolSpec, reply_of
from longthread.llm.failures import ProviderError
from longthread.messages.message import Message
from longthread.metrics import MODEL_CALLS, MODEL_SECONDS, TOKENS
from longthread.runs.run_context import RunContext


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is sent: the system prompt, the messages, the tools and the call's options."""

    model: ChatModel
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    options: CallOptions = PLAIN

    async def reply(self, context: RunContext) -> Message:
        """Return the model's reply; its text is published as it comes. Raises ProviderError."""
        sent = [Message("system", self.system), *self.messages]
        try:
            with MODEL_SECONDS.timed():
                message = await reply_of(self.model, sent, self.tools, self.options, context.publish_text)
        except ProviderError:
            MODEL_CALLS.add("error")
            raise
        MODEL_CALLS.add("ok")
        usage = message.usage_metadata or {}
        for direction in ("input", "output"):
            TOKENS.add(direction, by=usage.get(f"{direction}_tokens", 0))
        await context.end_text()
        return message
