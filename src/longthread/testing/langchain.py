"""A LangChain chat model that replays a script, for applications of LangGraph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from longthread.messages.langchain import from_langchain, to_langchain
from longthread.testing.scripted import ModelCall, Script, ScriptedReply, pieces, raw_calls, to_message


class ScriptedChatModel(BaseChatModel):
    """LangChain's `ScriptedModel`: replays `script`, streamed or not, and records each request in `calls`. Raises
    `ScriptExhausted` when the script has run out and `loop` is off."""

    _script: Script = PrivateAttr()
    _calls: list[ModelCall] = PrivateAttr(default_factory=list)
    _shown: dict[int, tuple[BaseMessage, BaseMessage]] = PrivateAttr(default_factory=dict)

    def __init__(
        self, script: Sequence[ScriptedReply] | Callable[[list[Any]], Any], *, loop: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._script = Script(script, loop=loop)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def calls(self) -> list[ModelCall]:
        """Every call so far, oldest first."""
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
        # Unchanged messages are not copied again: a conversation is passed often.
        shown = {id(message): (message, self._copy_of(message)) for message in messages}
        self._shown = shown
        self._calls.append(ModelCall([shown[id(message)][1] for message in messages], tools, rest))
        message = to_langchain(to_message(self._script.next(list(messages)), messages, native=bool(tools)))
        assert isinstance(message, AIMessage)
        return message

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
    """Yield a message in pieces: text, then each call's name and arguments, then the usage."""
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
    for index, (identifier, name, arguments) in enumerate(raw_calls(from_langchain(message))):
        yield tool_call_chunk(name=name, args="", id=identifier, index=index)
        for piece in pieces(arguments):
            yield tool_call_chunk(args=piece, index=index)
