"""A chat model that replays a script, and the script itself, which the provider emulator speaks too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

Reply = (
    str | AIMessage | Mapping[str, Any] | Sequence[Mapping[str, Any]] | Exception | Callable[[list[BaseMessage]], Any]
)
"""One reply of a script:

- a string: the raw text, well-formed or not;
- an `AIMessage`: as it is, with tool calls, invalid tool calls, thinking blocks or usage;
- `{"thought", "action", "args"}` or `{"thought", "finish"}`: a native tool call or plain text when tools are bound,
  else the same as JSON text; a list of the former: several calls at once;
- an exception: raised;
- a function of the messages: asked for the reply.
"""

PIECE = 8
"""Characters of one streamed piece."""


class ScriptExhausted(AssertionError):  # a state of the script, told by a failed test
    """The model was called more often than its script has replies."""


class Script:
    """Replies in order. One function instead of a list answers every call; `loop` begins again at the end."""

    def __init__(self, replies: Sequence[Reply] | Callable[[list[BaseMessage]], Any], *, loop: bool = False) -> None:
        self._replies: list[Any] = [replies] if callable(replies) else list(replies)
        self._loop = loop or callable(replies)
        self.used = 0
        for reply in self._replies:
            _check(reply)

    def next(self, messages: list[BaseMessage]) -> Any:
        """The next reply as the script gives it; a function in it has been asked already.

        Raises:
            ScriptExhausted: there is none left.
        """
        if not self._replies or (self.used >= len(self._replies) and not self._loop):
            last = f" The last message was: {messages[-1].text[:200]!r}." if messages else ""
            raise ScriptExhausted(
                f"The script has {len(self._replies)} replies, all used, and the model was called again.{last}"
            )
        reply = self._replies[self.used % len(self._replies)]
        self.used += 1
        return reply(messages) if callable(reply) and not isinstance(reply, BaseMessage) else reply


def _check(reply: Any) -> None:
    if isinstance(reply, Mapping) and not {"action", "finish"} & reply.keys():
        raise TypeError(f'A reply given as a dict needs an "action" or a "finish": {dict(reply)!r}')
    if isinstance(reply, list | tuple):
        for call in reply:
            if not isinstance(call, Mapping) or "action" not in call:
                raise TypeError(f'Each of several calls needs an "action": {call!r}')


def to_message(reply: Any, messages: Sequence[BaseMessage], *, native: bool) -> AIMessage:
    """The message that `reply` stands for. `native` says that the caller offered tools.

    Ids of calls follow from the history alone, so a run repeats exactly and no two turns of a thread share one.

    Raises:
        Exception: the reply is an exception.
    """
    if isinstance(reply, Exception):
        raise reply
    _check(reply)
    if isinstance(reply, AIMessage):
        message = reply.model_copy(deep=True)
    elif isinstance(reply, str):
        message = AIMessage(content=reply)
    elif isinstance(reply, Mapping):
        message = _from_objects([reply], messages, native)
    elif isinstance(reply, list | tuple):
        message = _from_objects(reply, messages, native)
    else:
        raise TypeError(f"A script cannot reply with {type(reply).__name__}: {reply!r}")
    if message.usage_metadata is None:
        sent = sum(len(str(each.text)) for each in messages) // 4 + 1
        made = (len(str(message.text)) + sum(len(json.dumps(call["args"])) for call in message.tool_calls)) // 4 + 1
        message.usage_metadata = {"input_tokens": sent, "output_tokens": made, "total_tokens": sent + made}
    return message


def _from_objects(objects: Sequence[Mapping[str, Any]], messages: Sequence[BaseMessage], native: bool) -> AIMessage:
    if not native:
        return AIMessage(content="\n".join(json.dumps(dict(each), ensure_ascii=False) for each in objects))
    if "action" not in objects[0]:
        return AIMessage(content=str(objects[0]["finish"]))
    past = json.dumps([(each.type, str(each.text)) for each in messages], ensure_ascii=True)
    digest = hashlib.sha256(past.encode()).hexdigest()[:12]
    calls = [
        tool_call(name=str(each["action"]), args=dict(each.get("args") or {}), id=f"call_{digest}_{place}")
        for place, each in enumerate(objects)
    ]
    return AIMessage(content=str(objects[0].get("thought", "")), tool_calls=calls)


def pieces(text: str) -> Iterator[str]:
    """`text` as it is streamed."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


@dataclass(frozen=True)
class ModelCall:
    """What one call of a model was given: copies of the messages, the bound tools and the other arguments."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tool_names(self) -> list[str]:
        """The names of the bound tools."""
        return [tool["function"]["name"] for tool in self.tools]


class ScriptedChatModel(BaseChatModel):
    """Replays `script`, streamed or not, and records in `calls` what it was asked.

    Raises `ScriptExhausted` when the script has run out and `loop` is off.
    """

    _script: Script = PrivateAttr()
    _calls: list[ModelCall] = PrivateAttr(default_factory=list)
    _shown: dict[int, tuple[BaseMessage, BaseMessage]] = PrivateAttr(default_factory=dict)

    def __init__(
        self, script: Sequence[Reply] | Callable[[list[BaseMessage]], Any], *, loop: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._script = Script(script, loop=loop)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def calls(self) -> list[ModelCall]:
        """Every call so far, the first one first."""
        return self._calls

    @property
    def used(self) -> int:
        """How many replies were given."""
        return self._script.used

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer `tools`: objects of the script become native calls."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _reply(self, messages: list[BaseMessage], options: Mapping[str, Any]) -> AIMessage:
        tools = list(options.get("tools") or ())
        rest = {name: value for name, value in options.items() if name != "tools" and value is not None}
        # A message that was shown before, and is as it was then, is not copied again: a conversation is shown often.
        shown = {id(message): (message, self._copy_of(message)) for message in messages}
        self._shown = shown
        self._calls.append(ModelCall([shown[id(message)][1] for message in messages], tools, rest))
        return to_message(self._script.next(list(messages)), messages, native=bool(tools))

    def _copy_of(self, message: BaseMessage) -> BaseMessage:
        original, copy = self._shown.get(id(message), (None, None))
        return copy if copy is not None and original is message and copy == message else message.model_copy(deep=True)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, {**kwargs, "stop": stop}))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._reply(messages, {**kwargs, "stop": stop})):
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.text), chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._reply(messages, {**kwargs, "stop": stop})):
            if run_manager:
                await run_manager.on_llm_new_token(str(chunk.message.text), chunk=chunk)
            yield chunk


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """A message in pieces: text, then each call's name and arguments, then the usage."""
    content = pieces(message.content) if isinstance(message.content, str) else [message.content]
    for piece in content:
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    for call in _call_chunks(message):
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            additional_kwargs=message.additional_kwargs,
            response_metadata=message.response_metadata,
            usage_metadata=message.usage_metadata,
            chunk_position="last",
        )
    )


def _call_chunks(message: AIMessage) -> Iterator[ToolCallChunk]:
    for index, (identifier, name, arguments) in enumerate(raw_calls(message)):
        yield tool_call_chunk(name=name, args="", id=identifier, index=index)
        for piece in pieces(arguments):
            yield tool_call_chunk(args=piece, index=index)


def raw_calls(message: AIMessage) -> list[tuple[str | None, str | None, str]]:
    """The id, the name and the arguments as text of each call, those with invalid arguments too."""
    valid = [(call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    return [*valid, *((call["id"], call["name"], call["args"] or "") for call in message.invalid_tool_calls)]
