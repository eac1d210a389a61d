"""The demo model as a LangChain chat model: native tool calls when tools are bound, JSON text when not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput, ModelProfile
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from longthread.context.system_prompt import KNOWLEDGE
from longthread.demo.brain import NextStep, decide
from longthread.demo.talk import DemoCall, DemoMessage

_OBSERVATION = "Observation:"
_LIST_TABLES = "list_tables"
_CJK = re.compile(r"[\u3400-\u9fff]")
_PIECE = re.compile(r"\S+\s*|\s+")


class DemoChatModel(BaseChatModel):
    """A deterministic, rule-based model: no network, no key, no AI. It answers questions about a database."""

    model_name: str = "demo"
    profile: ModelProfile | None = Field(
        default_factory=lambda: ModelProfile(max_input_tokens=1_000_000, tool_calling=True)
    )
    """It has no context window: it reads the whole conversation, however long."""

    @property
    def _llm_type(self) -> str:
        return "longthread-demo"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with native tool calls. `tool_choice` changes nothing: the rules choose."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = _reply(messages, kwargs.get("tools") or ())
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = _reply(messages, kwargs.get("tools") or ())
        for piece in _pieces(message.text):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager is not None:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk
        calls = [
            tool_call_chunk(
                name=call["name"], args=json.dumps(call["args"], ensure_ascii=False), id=call["id"], index=at
            )
            for at, call in enumerate(message.tool_calls)
        ]
        last = AIMessageChunk(
            content="",
            tool_call_chunks=calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)


def _reply(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]) -> AIMessage:
    talk = conversation_of(messages)
    native = bool(tools)
    decision = decide(talk) if _may_ask(talk, tools) else NextStep("", answer=_without_database(talk))
    digest = _digest(talk)
    usage = _usage(messages, decision)
    facts = {"model_name": "demo", "finish_reason": "tool_calls" if decision.calls and native else "stop"}
    if not native:
        return AIMessage(content=_as_json(decision), usage_metadata=usage, response_metadata=facts)
    calls = [
        ToolCall(name=call.name, args=dict(call.args), id=f"demo_{len(messages)}_{at}_{digest}", type="tool_call")
        for at, call in enumerate(decision.calls)
    ]
    text = decision.thought if calls else decision.answer
    return AIMessage(content=text, tool_calls=calls, usage_metadata=usage, response_metadata=facts)


def _may_ask(talk: Sequence[DemoMessage], tools: Sequence[dict[str, Any]]) -> bool:
    """Whether there is a database to ask: by a tool, or as the prompt tells."""
    if tools:
        return any(tool.get("function", {}).get("name") == _LIST_TABLES for tool in tools)
    prompts = [message.text for message in talk if message.role == "system"]
    return not prompts or any(_LIST_TABLES in text or KNOWLEDGE in text for text in prompts)


def _without_database(talk: Sequence[DemoMessage]) -> str:
    asked = next((message.text for message in reversed(talk) if message.role == "user"), "")
    return _NO_DATABASE["zh" if _CJK.search(asked) else "en"]


_NO_DATABASE = {
    "en": "I am the demo model: rules, and no AI. All that I can do is ask a database, and this agent has none. "
    "Configure a model with LONGTHREAD_MODEL to talk with it.",
    "zh": "我是演示模型：只有规则，没有 AI。我只会查询数据库，而这个智能体没有数据库。"
    "请用 LONGTHREAD_MODEL 配置一个模型。",
}


def _as_json(decision: NextStep) -> str:
    if decision.calls:
        call = decision.calls[0]  # the JSON protocol has room for one; the next reply asks for the next
        value: dict[str, Any] = {"thought": decision.thought, "action": call.name, "args": dict(call.args)}
    else:
        value = {"thought": decision.thought, "finish": decision.answer}
    return json.dumps(value, ensure_ascii=False)


def conversation_of(messages: Sequence[BaseMessage]) -> list[DemoMessage]:
    """LangChain's messages as the demo model's, in both protocols."""
    result: list[DemoMessage] = []
    for number, message in enumerate(messages):
        text = str(message.text)
        if isinstance(message, SystemMessage):
            result.append(DemoMessage("system", text))
        elif isinstance(message, ToolMessage):
            result.append(DemoMessage("tool", text, call_id=message.tool_call_id))
        elif isinstance(message, AIMessage):
            result.append(_assistant(message, text, number))
        elif isinstance(message, HumanMessage):
            kind = (message.additional_kwargs.get("longthread") or {}).get("kind")
            if kind == "digest":  # what stands for other messages asks nothing
                result += [DemoMessage("system", text)] if KNOWLEDGE in text else []
                continue
            observed = kind == "observation" or text.startswith(_OBSERVATION)
            result.append(
                DemoMessage("tool", text.removeprefix(_OBSERVATION).strip()) if observed else DemoMessage("user", text)
            )
    return result


def _assistant(message: AIMessage, text: str, number: int) -> DemoMessage:
    if message.tool_calls:
        made = tuple(
            DemoCall(call["name"], call["args"], call["id"] or f"call-{number}") for call in message.tool_calls
        )
        return DemoMessage("assistant", text, calls=made)
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("action"), str):
            args = value.get("args")
            call = DemoCall(value["action"], args if isinstance(args, dict) else {}, f"call-{number}")
            return DemoMessage("assistant", text, calls=(call,))
        if isinstance(value, dict) and "finish" in value:
            return DemoMessage("assistant", str(value["finish"]))
    return DemoMessage("assistant", text)


def _digest(talk: Sequence[DemoMessage]) -> str:
    """Differs with every state of the conversation, so that a call's id is never used twice in it."""
    state = [(message.role, message.text, message.call_id, [call.id for call in message.calls]) for message in talk]
    return hashlib.sha256(json.dumps(state, ensure_ascii=False).encode()).hexdigest()[:12]


def _usage(messages: Sequence[BaseMessage], decision: NextStep) -> UsageMetadata:
    """An estimate: one token a Chinese character, one for four others."""
    given = sum(_tokens(str(message.text)) + 4 for message in messages)
    made = _tokens(decision.answer or decision.thought)
    made += sum(_tokens(json.dumps(dict(call.args), ensure_ascii=False)) + 8 for call in decision.calls)
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)


def _tokens(text: str) -> int:
    chinese = len(_CJK.findall(text))
    return chinese + (len(text) - chinese + 3) // 4


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces of about 24 characters, cut at spaces or between Chinese characters."""
    piece = ""
    for word in _PIECE.findall(text):
        while len(word) > 24:
            yield piece + word[: 24 - len(piece) % 24]
            word, piece = word[24 - len(piece) % 24 :], ""
        piece += word
        if len(piece) >= 24:
            yield piece
            piece = ""
    if piece:
        yield piece
