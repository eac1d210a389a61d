"""What a chat model is: messages and tools go in, the pieces of one reply come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from longthread.llm.failures import StreamTruncated
from longthread.messages.message import Message


class ToolSpec(Protocol):
    """A tool as a model sees it."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What one call asks for beside its messages.

    `tool_choice` is `auto`, `none`, `required`, or the name of the tool to call. The reply ends before one of `stop`.
    It has at most `max_tokens` if given, else the model's own limit.
    """

    tool_choice: str | None = None
    stop: Sequence[str] = ()
    max_tokens: int | None = None


PLAIN = CallOptions()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a reply: visible text or thinking. The last one holds the whole message instead."""

    text: str = ""
    thinking: str = ""
    message: Message | None = None


class ChatModel(Protocol):
    """A model behind one name.

    `window` is the context window in tokens, `tool_calling` whether it calls tools; None: not known. `max_tokens` is
    the most that a reply may have; None: the provider's limit.
    """

    @property
    def name(self) -> str:
        """The provider's name for it."""

    @property
    def address(self) -> str:
        """Its endpoint, without secrets. Facts learned of a model are stored under address and name."""

    @property
    def window(self) -> int | None: ...

    @property
    def tool_calling(self) -> bool | None: ...

    @property
    def max_tokens(self) -> int | None: ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        """Yield one reply. Closing the generator ends the request.

        A call whose arguments are not one whole JSON object is among the message's `invalid_tool_calls`, as it came.

        Raises:
            ProviderError: there is no reply, or not all of it.
        """

    async def close(self) -> None:
        """Close the connections that stay open between calls."""


async def reply_of(
    model: ChatModel,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    options: CallOptions = PLAIN,
    tell: Callable[[str], Awaitable[None]] | None = None,
) -> Message:
    """Return the whole reply; `tell` is awaited with each piece of visible text. Raises what `stream` raises."""
    async with aclosing(model.stream(messages, tools, options)) as chunks:
        async for chunk in chunks:
            if chunk.message is not None:
                return chunk.message
            if chunk.text and tell is not None:
                await tell(chunk.text)
    raise StreamTruncated("The reply ended without its last piece.")
