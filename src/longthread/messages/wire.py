"""A gateway's entries as messages of ours."""

from __future__ import annotations

import json
from typing import Any

from longthread.messages.message import Content

_TEXTS = frozenset({"text", "input_text", "output_text"})


def content_of(raw: str) -> Content:
    """Return raw blocks as a message's content: a text, or parts in the form of their provider. Fields of the message
    are no part of it."""
    blocks: list[Any] = [block for block in json.loads(raw) if isinstance(block, str) or "field" not in block]
    if all(isinstance(block, str) or _is_text(block) for block in blocks):
        return "".join(block if isinstance(block, str) else block["text"] for block in blocks)
    return [{**block, "type": "text"} if _is_text(block) else block for block in blocks]


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _TEXTS and isinstance(block.get("text"), str)
