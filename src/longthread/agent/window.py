"""The view of a run's messages, in LangChain's terms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from longthread.agent.context import note_of
from longthread.agent.messages import draft_of
from longthread.view.compose import Item, Part, compose
from longthread.view.tokens import estimate


def fit(messages: Sequence[AnyMessage], budget: int) -> tuple[list[AnyMessage], list[dict[str, Any]]]:
    """The messages that fit into `budget` tokens, and the manifest: how each one went in."""
    current = _without_stale(messages)
    kept = {message.id for message in current}
    manifest = [{"entry": m.id, "how": "left out", "why": "stale", "tokens": 0} for m in messages if m.id not in kept]
    parts = compose([_item(message) for message in current], budget)
    by_id = {message.id or "": message for message in messages}
    shown = [_shown(by_id[part.item.key], part) for part in parts if part.how != "left out"]
    return shown, manifest + [part.to_json() for part in parts]


def _without_stale(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages without what was observed of another source, or of another schema of this one.

    Such tables would be taken for known. Questions and answers stay: they are the conversation.
    """
    about = [(n, _source_of(message)) for n, message in enumerate(messages) if _source_of(message) is not None]
    changes = [n for (n, source), (_, before) in zip(about[1:], about, strict=False) if source != before]
    start = changes[-1] if changes else 0
    return [m for m in messages[:start] if not _is_observed(m)] + list(messages[start:])


def _is_observed(message: AnyMessage) -> bool:
    """Whether the message is a call or a result."""
    return isinstance(message, ToolMessage) or (isinstance(message, AIMessage) and bool(message.tool_calls))


def _source_of(message: AnyMessage) -> tuple[str, str] | None:
    note = note_of(message)
    return (note["source"], note["fingerprint"]) if note.get("kind") == "question" else None


def _item(message: BaseMessage) -> Item:
    draft = draft_of(message)
    calls = [call.to_json() for call in draft.tool_calls]
    text = draft.text if isinstance(message.content, str) else json.dumps(message.content, ensure_ascii=False)
    return Item(
        key=draft.id,
        role=draft.role,
        text=text,
        calls=tuple(call["id"] for call in calls),
        answers=draft.tool_call_id,
        extra=estimate(json.dumps(calls, ensure_ascii=False)) if calls else 0,
    )


def _shown(message: AnyMessage, part: Part) -> AnyMessage:
    if part.bare and isinstance(message, AIMessage):
        # Blocks of content may hold the calls once more; their text is what is kept of them.
        calls = [{**call, "args": {"left_out": "too long to show"}} for call in message.tool_calls]
        message = message.model_copy(update={"tool_calls": calls, "content": str(message.text)})
    return message if part.text is None else _with_text(message, part.text)


def _with_text(message: AnyMessage, text: str) -> AnyMessage:
    if isinstance(message, AIMessage | ToolMessage) or isinstance(message.content, str):
        return message.model_copy(update={"content": text})
    return message.model_copy(update={"content": [{"type": "text", "text": text}]})
