"""Conversion of messages from and to LangChain's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from longthread.messages.fields import BLANK
from longthread.messages.message import Message
from longthread.model.entry import Role

_CLASSES: dict[Role, type[BaseMessage]] = {
    "system": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
    "tool": ToolMessage,
}
_STREAMED = frozenset({"type", "tool_call_chunks", "chunk_position"})
"""Fields that are meaningless after the end of a stream."""


def from_langchain(message: BaseMessage) -> Message:
    """Convert one of LangChain's messages, or a chunk. Containers are shared."""
    role = role_of(message)
    fields = message.__dict__ | (message.__pydantic_extra__ or {})
    known = BLANK[role].keys() - {"type"}
    own = {name: value for name, value in fields.items() if name in known}
    extra = {name: value for name, value in fields.items() if name not in known and name not in _STREAMED}
    return Message(role, **own, extra=extra)


def role_of(message: BaseMessage) -> Role:
    """Return the message's role, by its kind and not its class: a streamed message is a chunk."""
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ToolMessage):
        return "tool"
    if isinstance(message, ChatMessage) and message.role == "assistant":
        return "assistant"
    return "system" if isinstance(message, SystemMessage) else "user"


def to_langchain(message: Message) -> BaseMessage:
    """Convert one of our messages, without checks or additions. Containers are shared."""
    fields: dict[str, Any] = {name: getattr(message, name) for name in BLANK[message.role] if name != "type"}
    return _CLASSES[message.role].model_construct(None, **fields, **message.extra)


def all_to_langchain(messages: Iterable[Message]) -> list[BaseMessage]:
    return [to_langchain(message) for message in messages]
