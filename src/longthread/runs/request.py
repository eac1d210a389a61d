"""One request to a chat model, and its streamed reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread.llm.chat import PLAIN, CallOptions, ChatModel, ReplyBounds, ToolSpec, reply_of
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
        context.sent = sent
        try:
            with MODEL_SECONDS.timed():
                bounds = ReplyBounds(context.settings.reply_timeout)
                message = await reply_of(self.model, sent, self.tools, self.options, context.publish_text, bounds)
        except ProviderError:
            MODEL_CALLS.add("error")
            raise
        MODEL_CALLS.add("ok")
        usage = message.usage_metadata or {}
        for direction in ("input", "output"):
            TOKENS.add(direction, by=usage.get(f"{direction}_tokens", 0))
        await context.end_text()
        most = context.settings.max_tool_calls
        if (count := len(message.tool_calls)) > most:
            told = f"The reply makes {count} calls, of which the first {most} are made: LLM_MAX_TOOL_CALLS."
            await context.stream.publish("warning", message=told)
            message = _with_calls(message, most)
        return message


def _with_calls(message: Message, most: int) -> Message:
    """Return a reply with no more than so many calls. The model sees what became of these, and can make the others."""
    calls = message.tool_calls[:most]
    kept, content = {call["id"] for call in calls}, message.content
    if isinstance(content, list):
        content = [each for each in content if _call_id(each) in {None, *kept}]
    return replace(message, content=content, tool_calls=calls)


def _call_id(block: Any) -> str | None:
    return block.get("id") if isinstance(block, dict) and block.get("type") == "tool_use" else None
