"""One request to a chat model, and its reply, taken in while it is streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, SystemMessage
from langchain_core.messages.utils import message_chunk_to_message

from longthread.llm.stream_recorder import CallRecorder


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is sent: the system prompt, the messages, the tools in OpenAI's form, and settings of this call."""

    model: BaseChatModel
    system: str
    messages: Sequence[AnyMessage]
    tools: Sequence[dict[str, Any]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    async def reply(self, recorder: CallRecorder) -> AIMessage:
        """The model's reply. The recorder is told of each piece of it.

        Raises:
            Exception: whatever the provider's class raises.
        """
        bound: Any = (
            self.model.bind_tools(list(self.tools), **self.settings) if self.tools else self.model.bind(**self.settings)
        )
        pieces: list[Any] = []
        async with aclosing(bound.astream([SystemMessage(self.system), *self.messages])) as stream:
            async for piece in stream:
                await recorder.take(piece)
                pieces.append(piece)
        await recorder.end()
        return _whole(pieces)


def _whole(pieces: list[Any]) -> AIMessage:
    first, *rest = pieces
    whole: BaseMessage = first + rest if rest else first
    message = message_chunk_to_message(whole) if isinstance(whole, AIMessageChunk) else whole
    assert isinstance(message, AIMessage)
    return message
