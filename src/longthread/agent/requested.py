"""What goes with the messages of a model call, in tokens: the prompt, the tools, and the room for the reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from longthread.settings import Settings
from longthread.view.tokens import estimate, message_tokens, tools_tokens

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""What the classes of chat models call the most tokens of a reply."""


def name_of(model: BaseChatModel) -> str:
    """What a chat model is called."""
    named = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((name for name in named if isinstance(name, str) and name), model._llm_type)


def reply_tokens(request: ModelRequest[Any], settings: Settings) -> int:
    """The most tokens that the reply may have: as the model was told, else LLM_MAX_TOKENS."""
    told = (request.model_settings.get(name) for name in _LIMITS)
    return _first(told) or reply_limit(request.model, settings)


def reply_limit(model: BaseChatModel, settings: Settings) -> int:
    """The most tokens that a model's replies may have: as it was made, else LLM_MAX_TOKENS."""
    limits = (getattr(model, name, None) for name in _LIMITS)
    return _first([_beside(model).get("max_tokens"), *limits]) or settings.max_tokens


def limited_reply(model: BaseChatModel, tokens: int) -> dict[str, Any]:
    """Settings of a call by which a model's reply has so many tokens at most; none where it has no limit."""
    if _beside(model):
        return {"extra_body": {**_beside(model), "max_tokens": tokens}}
    return {"max_tokens": tokens} if _first([getattr(model, "max_tokens", None)]) else {}


def _beside(model: BaseChatModel) -> dict[str, Any]:
    """What a server is told beside what OpenAI knows, where that limits its replies: many know `max_tokens` alone."""
    told: dict[str, Any] = getattr(model, "extra_body", None) or {}
    return told if "max_tokens" in told else {}


def _first(limits: Iterable[Any]) -> int | None:
    return next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)


def instructions(messages: Sequence[BaseMessage]) -> list[SystemMessage]:
    """The system messages that a conversation begins with: they are its prompt as well."""
    found: list[SystemMessage] = []
    for each in messages:
        if not isinstance(each, SystemMessage):
            break
        found.append(each)
    return found


def fixed_tokens(request: ModelRequest[Any], family: str) -> int:
    """What the system prompt, the tools and the form of a structured reply cost."""
    tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
    given = [*tools, *_forms(request.response_format)]
    told = json.dumps(given, ensure_ascii=False, default=str) if given else ""
    first = sum(message_tokens(_told(each), family) for each in instructions(request.messages))
    prompt = estimate(_told(request.system_message), family) if request.system_message is not None else 0
    return prompt + first + tools_tokens(told, len(given), family)


def _told(message: BaseMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _forms(wanted: Any) -> list[dict[str, Any]]:
    """The schemas of a structured reply, which go as tools or beside them."""
    if wanted is None:
        return []
    if isinstance(wanted, ProviderStrategy):
        return [wanted.schema_spec.json_schema]
    strategy = wanted if isinstance(wanted, ToolStrategy) else ToolStrategy(getattr(wanted, "schema", wanted))
    return [spec.json_schema for spec in strategy.schema_specs]
