"""What a chat model is: messages and tools go in, the pieces of one reply come out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from longthread.llm.failures import ReplyTooLong, StreamTruncated
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
    """What one call asks for in addition to its messages.

    `tool_choice` is `auto`, `none`, `required`, or the name of the tool to call. The reply ends before one of `stop`.
    It has at most `max_tokens` if given, else the model's own limit. `temperature` is for a server on this network that
    has no configured one: such servers take 0.7 or 0.8 by themselves. `stops_loops` ends a reply that repeats itself
    (`find_loop`); its `finish_reason` is `LOOP` then.
    """

    tool_choice: str | None = None
    stop: Sequence[str] = ()
    max_tokens: int | None = None
    temperature: float = 0.0
    stops_loops: bool = False


PLAIN = CallOptions()

_CHARACTERS = 32
"""Characters for each token of the limit: four times the limit, of words of eight letters."""
_THINKING = 4
"""So many times more of thinking: not every provider counts it."""
_LEAST = 20_000
"""Characters that any reply may have."""
LOOP = "loop"
_LOOP_ROUNDS = 8
_LOOP_LEAST = 1_000
"""Characters without white space: a ruled line, or a list of equal values, is no loop."""
_LOOP_PERIOD = 400
_LOOP_LOOK = 64
"""Characters after which a reply is looked at again."""


@dataclass(frozen=True, slots=True)
class ReplyBounds:
    """Where a reply is broken off. A server may ignore the limit of tokens, and a model may never end. `seconds` are of
    the whole reply."""

    seconds: float = 900.0

    def check(self, limit: int | None, *, text: int = 0, thinking: int = 0) -> None:
        """Raise `ReplyTooLong` if a reply has so many characters, by far too many for a limit of tokens."""
        if limit is None:
            return
        most = max(_CHARACTERS * limit, _LEAST)
        if text > most or thinking > most * _THINKING:
            told = f"{text:,} characters" if text > most else f"{thinking:,} characters of thinking"
            raise ReplyTooLong(
                f"The model did not end its reply, and it was broken off after {told}: LLM_MAX_TOKENS is {limit}. Ask "
                "again or otherwise, use another model, or raise LLM_MAX_TOKENS."
            )


BOUNDS = ReplyBounds()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a reply: visible text or thinking. The last one holds the whole message instead."""

    text: str = ""
    thinking: str = ""
    message: Message | None = None


class ChatModel(Protocol):
    """A model of one name.

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


FIELDS: Mapping[str, Any] = MappingProxyType(
    {
        "name": str,
        "address": str,
        "window": int | None,
        "tool_calling": bool | None,
        "max_tokens": int | None,
        "stream": Callable,
        "close": Callable,
    }
)
"""What a model of a plugin must have, and of which types."""


async def reply_of(
    model: ChatModel,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec] = (),
    options: CallOptions = PLAIN,
    tell: Callable[[str], Awaitable[None]] | None = None,
    bounds: ReplyBounds = BOUNDS,
) -> Message:
    """Return the whole reply; `tell` is awaited with each piece of visible text. Raises `ReplyTooLong`, and what
    `stream` raises."""
    limit, text, thinking = options.max_tokens or model.max_tokens, 0, 0
    written, thought = "", ""
    try:
        async with asyncio.timeout(bounds.seconds) as clock, aclosing(model.stream(messages, tools, options)) as chunks:
            async for chunk in chunks:
                if chunk.message is not None:
                    bounds.check(limit, text=_size(chunk.message))
                    return chunk.message
                text, thinking = text + len(chunk.text), thinking + len(chunk.thinking)
                bounds.check(limit, text=text, thinking=thinking)
                if chunk.text and tell is not None:
                    await tell(chunk.text)
                if options.stops_loops:
                    before, written, thought = len(written), written + chunk.text, thought + chunk.thinking
                    if len(written) // _LOOP_LOOK > before // _LOOP_LOOK and find_loop(written) is not None:
                        kwargs = {"reasoning_content": thought} if thought else {}
                        return Message("assistant", written, kwargs, response_metadata={"finish_reason": LOOP})
    except TimeoutError:
        if not clock.expired():
            raise
        raise ReplyTooLong(
            f"The reply took longer than {bounds.seconds:g} s, and was broken off. Use a faster model, or raise "
            "LLM_REPLY_TIMEOUT."
        ) from None
    raise StreamTruncated("The reply ended without its last piece.")


def find_loop(text: str) -> int | None:
    """Return where a text first repeats what it then repeats to its end; None if it ends in no loop.

    White space is ignored: each round of nested queries is indented deeper than the one before.
    """
    places = [place for place, character in enumerate(text) if not character.isspace()]
    dense = "".join(text[place] for place in places)
    for period in range(1, _LOOP_PERIOD + 1):
        length = max(_LOOP_ROUNDS * period, _LOOP_LEAST)
        if length > len(dense):
            return None
        if dense.endswith(dense[-period:] * 2) and dense[-length:-period] == dense[period - length :]:
            begin = len(dense) - length
            while begin and dense[begin - 1] == dense[begin - 1 + period]:
                begin -= 1
            return places[begin + period]
    return None


def _size(message: Message) -> int:
    """Return the characters of a reply's text and of the arguments of its calls."""
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return len(message.text) + sum(len(json.dumps(call.get("args"), ensure_ascii=False)) for call in calls)
