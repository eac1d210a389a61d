"""Token costs of a LangChain request besides its messages: prompt, tools, and the room for the reply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from longthread.llm.langchain import LIMITS, LangChainModel
from longthread.llm.models import reply_limit
from longthread.settings import Settings
from longthread.view.tokens import estimate, message_tokens, tools_tokens


def reply_tokens(request: ModelRequest[Any], settings: Settings) -> int:
    told = (request.model_settings.get(name) for name in LIMITS)
    limit = next((each for each in told if isinstance(each, int) and each > 0), None)
    return limit or reply_limit(LangChainModel(request.model), settings)


def instructions(messages: Sequence[BaseMessage]) -> list[SystemMessage]:
    """Return the leading system messages of a conversation: they are part of its prompt."""
    found: list[SystemMessage] = []
    for each in messages:
        if not isinstance(each, SystemMessage):
            break
        found.append(each)
    return found


def fixed_tokens(request: ModelRequest[Any], family: str) -> int:
    """Return the tokens of the system prompt, the tools and the schema of a structured reply."""
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
    if wanted is None:
        return []
    if isinstance(wanted, ProviderStrategy):
        return [wanted.schema_spec.json_schema]
    strategy = wanted if isinstance(wanted, ToolStrategy) else ToolStrategy(getattr(wanted, "schema", wanted))
    return [spec.json_schema for spec in strategy.schema_specs]
