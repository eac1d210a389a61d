"""A model's thinking in a message: shown unchanged, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longthread.messages.message import Message
from longthread.model.content import CALLS as CALLS
from longthread.model.content import HOSTED, THINKING

_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Keys of `additional_kwargs` that hold some providers' thinking."""
_ITEM = "reasoning"
"""The type of a block, and the key, of a possible item of OpenAI's Responses, which the reply's other items need."""
_ITEM_IDS = "__openai_function_call_ids__"


def is_thinking(block: dict[str, Any]) -> bool:
    return block.get("type") in THINKING


def beside_content(message: Message) -> list[Any]:
    return [each for key in _KEYS if (each := message.additional_kwargs.get(key))]


def hosted(message: Message) -> list[Any]:
    """Return what the provider's own tools did for a reply, if it is outside of the content."""
    return list(message.additional_kwargs.get(HOSTED) or ())


def has_items(message: Message) -> bool:
    """Return whether there is thinking that is, or may be, an item of OpenAI's Responses."""
    return _ITEM in message.additional_kwargs or any(block.get("type") == _ITEM for block in message.blocks)


def without_thinking(message: Message) -> Message:
    """Return the message without thinking, as if it had never had any. The items' ids go too: OpenAI's Responses
    refuse an item with an id but without the reasoning before it."""
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key not in _KEYS}
    content, own_id = message.content, message.id
    if type(content) is list:
        content = [block for block in content if not (isinstance(block, dict) and is_thinking(block))] or ""
    if has_items(message):
        kwargs = {key: value for key, value in kwargs.items() if key not in (HOSTED, _ITEM_IDS)}
        content = [_without_id(block) for block in content] if type(content) is list else content
        own_id = None if (own_id or "").startswith("msg_") else own_id
    return replace(message, content=content, additional_kwargs=kwargs, id=own_id)


def _without_id(block: Any) -> Any:
    if not isinstance(block, dict) or block.get("type") in ("tool_use", "tool_call"):  # their id is the call's
        extras = block.get("extras") if isinstance(block, dict) else None
        if not isinstance(extras, dict) or "item_id" not in extras:
            return block
        return {**block, "extras": {key: value for key, value in extras.items() if key != "item_id"}}
    return {key: value for key, value in block.items() if key != "id"}
