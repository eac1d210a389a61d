"""Calls of a reply that could not be read, for their arguments are no JSON object: no tool has run for them.

Clients send them unchanged, and providers refuse a call without a result. A view shows them as text. If a result does
follow, and LangChain's agents add one before the next question, they are calls like others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from longthread.messages.message import Message, tool_call
from longthread.messages.reasoning import CALLS, has_items, without_thinking

_NOT_SENT = frozenset({"tool_calls", "function_call"})
"""Keys of `additional_kwargs` that clients take calls from if a message has none."""


def has_unread(message: Message) -> bool:
    return bool(message.invalid_tool_calls)


def readable(message: Message) -> Message:
    """Return the message with its unread calls as text, before its other calls."""
    if not has_unread(message):
        return message
    if has_items(message):  # they precede the calls that are removed
        message = without_thinking(message)
    told = "\n".join(map(_told, message.invalid_tool_calls))
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key not in _NOT_SENT}
    content = _content(message, told)
    return replace(message, content=content, invalid_tool_calls=[], additional_kwargs=kwargs)


def answered(message: Message, results: Sequence[str | None]) -> Message:
    """Return the message with its unread calls that have results as read ones. `results` are the call ids of the
    results right after it."""
    if not has_unread(message):
        return message
    left = Counter(results) - Counter(call["id"] for call in message.tool_calls)
    read, unread = list(message.tool_calls), []
    for call in message.invalid_tool_calls:
        if left[call["id"]] > 0:
            left[call["id"]] -= 1
            read.append(tool_call(call["name"] or "unknown", {"unread": call["args"]}, call["id"]))
        else:
            unread.append(call)
    if len(unread) == len(message.invalid_tool_calls):
        return message
    return replace(message, tool_calls=read, invalid_tool_calls=unread)


def _told(call: Mapping[str, Any]) -> str:
    return f"(This call of {call['name'] or 'a tool'} could not be read, and was not run: {call['args'] or ''})"


def _content(message: Message, told: str) -> Any:
    if type(message.content) is not list:
        return f"{message.content}\n{told}".lstrip()
    unread = {call["id"] for call in message.invalid_tool_calls} - {call["id"] for call in message.tool_calls}
    kept = [block for block in message.content if not _is_of(block, unread)]
    first = next((n for n, block in enumerate(kept) if _type(block) in CALLS), len(kept))
    return [*kept[:first], {"type": "text", "text": told}, *kept[first:]]


def _is_of(block: Any, calls: set[str | None]) -> bool:
    if _type(block) == "invalid_tool_call":
        return True
    return _type(block) in CALLS and (block.get("call_id") or block.get("id")) in calls


def _type(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None
