"""One request to a chat model, and its streamed reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longthread.llm.chat import PLAIN, CallOptions, ChatModel, ToolSpec, reply_of
from longthread.messages.message import Message
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
        message = await reply_of(self.model, sent, self.tools, self.options, context.publish_text)
        await context.end_text()
        return message
