"""A chat model that replays a script, and the script, which the provider emulator shares."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from longthread.llm.chat import PLAIN, CallOptions, Chunk, ToolSpec
from longthread.messages.chat_completions import tool_specs
from longthread.messages.message import Message, tool_call

ScriptedReply = str | Message | Mapping[str, Any] | Sequence[Mapping[str, Any]] | Exception | Callable[[list[Any]], Any]
"""One reply of a script:

- a string: the raw text, well-formed or not;
- a `Message`, or an `AIMessage` of LangChain's: as it is, with calls, invalid calls, thinking blocks or usage;
- `{"thought", "action", "args"}` or `{"thought", "finish"}`: a native tool call or plain text when tools are bound,
  else the same as JSON text; a list of the former: several calls at once;
- an exception: raised;
- a function of the messages: asked for the reply.
"""

PIECE = 8
"""Characters of one streamed piece."""


class ScriptExhausted(AssertionError):  # it must fail the test
    """The model was called more often than its script has replies."""


class Script:
    """Replies in order. One function instead of a list answers every call; `loop` repeats the list."""

    def __init__(self, replies: Sequence[ScriptedReply] | Callable[[list[Any]], Any], *, loop: bool = False) -> None:
        self._replies: list[Any] = [replies] if callable(replies) else list(replies)
        self._loop = loop or callable(replies)
        self.used = 0
        for reply in self._replies:
            _check(reply)

    def next(self, messages: list[Any]) -> Any:
        """Return the next reply; a function in the list is called first. Raises ScriptExhausted: there is none left."""
        if not self._replies or (self.used >= len(self._replies) and not self._loop):
            last = f" The last message was: {messages[-1].text[:200]!r}." if messages else ""
            raise ScriptExhausted(
                f"The script has {len(self._replies)} replies, all used, and the model was called again.{last}"
            )
        reply = self._replies[self.used % len(self._replies)]
        self.used += 1
        return reply(messages) if callable(reply) else reply


def _check(reply: Any) -> None:
    if isinstance(reply, Mapping) and not {"action", "finish"} & reply.keys():
        raise TypeError(f'A reply given as a dict needs an "action" or a "finish": {dict(reply)!r}')
    if isinstance(reply, list | tuple):
        for call in reply:
            if not isinstance(call, Mapping) or "action" not in call:
                raise TypeError(f'Each of several calls needs an "action": {call!r}')


def to_message(reply: Any, messages: Sequence[Any], *, native: bool) -> Message:
    """Return the message for `reply`, or raise it if it is an exception. `native`: the caller offered tools.

    Ids of calls derive from the history alone, so a run repeats exactly and no two turns of a thread share one.
    """
    if isinstance(reply, Exception):
        raise reply
    _check(reply)
    message = _message(reply, messages, native)
    if message.usage_metadata is not None:
        return message
    sent = sum(len(str(each.text)) for each in messages) // 4 + 1
    made = (len(message.text) + sum(len(json.dumps(call["args"])) for call in message.tool_calls)) // 4 + 1
    usage = {"input_tokens": sent, "output_tokens": made, "total_tokens": sent + made}
    return replace(message, usage_metadata=usage)


def _message(reply: Any, messages: Sequence[Any], native: bool) -> Message:
    if isinstance(reply, Message):
        return copy.deepcopy(reply)
    if isinstance(reply, str):
        return Message("assistant", reply)
    if isinstance(reply, Mapping):
        return _from_objects([reply], messages, native)
    if isinstance(reply, list | tuple):
        return _from_objects(reply, messages, native)
    if hasattr(reply, "tool_calls"):
        from longthread.messages.langchain import from_langchain  # the one reply that needs LangChain

        return from_langchain(reply.model_copy(deep=True))
    raise TypeError(f"A script cannot reply with {type(reply).__name__}: {reply!r}")


def _from_objects(objects: Sequence[Mapping[str, Any]], messages: Sequence[Any], native: bool) -> Message:
    if not native:
        return Message("assistant", "\n".join(json.dumps(dict(each), ensure_ascii=False) for each in objects))
    if "action" not in objects[0]:
        return Message("assistant", str(objects[0]["finish"]))
    past = json.dumps([(_kind(each), str(each.text)) for each in messages], ensure_ascii=True)
    digest = hashlib.sha256(past.encode()).hexdigest()[:12]
    calls = [
        tool_call(str(each["action"]), dict(each.get("args") or {}), f"call_{digest}_{place}")
        for place, each in enumerate(objects)
    ]
    return Message("assistant", str(objects[0].get("thought", "")), tool_calls=calls)


def _kind(message: Any) -> str:
    return str(message.role if isinstance(message, Message) else message.type)


def pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


@dataclass(frozen=True)
class ModelCall:
    """A call's arguments: copies of the messages, the bound tools and the other arguments."""

    messages: list[Any]
    tools: list[dict[str, Any]] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.tools]


class ScriptedModel:
    """Replays `script`, in pieces, and records each request in `calls`. Raises `ScriptExhausted` when the script has
    run out and `loop` is off."""

    def __init__(
        self,
        script: Sequence[ScriptedReply] | Callable[[list[Any]], Any],
        *,
        loop: bool = False,
        name: str = "scripted",
        window: int | None = None,
        tool_calling: bool | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name, self.address = name, "scripted"
        self.window, self.tool_calling, self.max_tokens = window, tool_calling, max_tokens
        self.calls: list[ModelCall] = []
        self._script = Script(script, loop=loop)

    @property
    def used(self) -> int:
        """How many replies were given."""
        return self._script.used

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        """Yield the script's next reply, see `ChatModel`. Raises an exception that is the reply."""
        told = {name: value for name, value in asdict(options).items() if value}
        self.calls.append(ModelCall(list(messages), tool_specs(tools), told))
        message = to_message(self._script.next(list(messages)), messages, native=bool(tools))
        for piece in pieces(message.text):
            yield Chunk(piece)
        yield Chunk(message=message)

    async def close(self) -> None:
        """It has no connections."""


def raw_calls(message: Message) -> list[tuple[str | None, str | None, str]]:
    """Return the id, the name and the raw arguments of each call, invalid ones included."""
    valid = [(call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    return [*valid, *((call["id"], call["name"], call["args"] or "") for call in message.invalid_tool_calls)]
