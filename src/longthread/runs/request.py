"""One request to a chat model, and its reply, taken in while it is streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage

from longthread.llm.stream_recorder import CallRecorder
from longthread.messages.langchain import all_to_langchain, from_langchain
from longthread.messages.message import Message


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is sent: the system prompt, the messages, the tools in OpenAI's form, and settings of this call."""

    model: BaseChatModel
    system: str
    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    async def reply(self, recorder: CallRecorder) -> Message:
        """The model's reply. The recorder is told of each piece of it.

        Raises:
            Exception: whatever the provider's class raises.
        """
        bound: Any = (
            self.model.bind_tools(list(self.tools), **self.settings) if self.tools else self.model.bind(**self.settings)
        )
        pieces: list[Any] = []
        prompt = [SystemMessage(self.system), *all_to_langchain(self.messages)]
        async with aclosing(bound.astream(prompt)) as stream:
            async for piece in stream:
                await recorder.take(piece)
                pieces.append(piece)
        await recorder.end()
        first, *rest = pieces
        return from_langchain(first + rest if rest else first)
