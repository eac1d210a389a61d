"""What a chat model is: messages and tools go in, the pieces of one reply come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from longthread.llm.failures import StreamTruncated
from longthread.messages.message import Message


class ToolSpec(Protocol):
    """A tool as a model is told of it."""

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

    `tool_choice` is `auto`, `none`, `required`, or the name of the tool that must be called. The reply ends before one
    of `stop`. It has at most `max_tokens`, where that is given, and else at most the model's own.
    """

    tool_choice: str | None = None
    stop: Sequence[str] = ()
    max_tokens: int | None = None


PLAIN = CallOptions()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a reply: visible text, or thinking. The last one holds the whole message instead."""

    text: str = ""
    thinking: str = ""
    message: Message | None = None


class ChatModel(Protocol):
    """A model behind one name.

    `window` is the context window in tokens and `tool_calling` whether it calls tools; None: not known. `max_tokens` is
    the most that a reply may have; None: as its provider has it.
    """

    @property
    def name(self) -> str:
        """As its provider calls it."""

    @property
    def address(self) -> str:
        """Where it is asked, without anything secret: with the name, what is learned of a model is kept under it."""

    @property
    def window(self) -> int | None: ...

    @property
    def tool_calling(self) -> bool | None: ...

    @property
    def max_tokens(self) -> int | None: ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        """One reply. To close the generator ends the request.

        A call whose arguments are not one whole JSON object is among the message's `invalid_tool_calls`, as it came.

        Raises:
            ProviderError: there is no reply, or not all of it.
        """

    async def close(self) -> None:
        """Close the connections that it keeps open between calls."""


async def reply_of(
    model: ChatModel,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    options: CallOptions = PLAIN,
    tell: Callable[[str], Awaitable[None]] | None = None,
) -> Message:
    """The whole reply of a model; `tell` is given the pieces of its visible text as they come.

    Raises:
        ProviderError: as `stream` does.
    """
    async with aclosing(model.stream(messages, tools, options)) as chunks:
        async for chunk in chunks:
            if chunk.message is not None:
                return chunk.message
            if chunk.text and tell is not None:
                await tell(chunk.text)
    raise StreamTruncated("The reply ended without its last piece.")
