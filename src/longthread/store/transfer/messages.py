"""Messages in OpenAI's and Anthropic's forms as entries. What an entry's columns cannot hold goes into its payload."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longthread.model.entry import Draft, Role, ToolCall
from longthread.store.transfer.foreign import decode_json, storable

JsonFields = dict[str, Any]

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SAID = frozenset({"id", "role", "content", "tool_calls", "tool_call_id", "name"})
"""A message's keys that have columns. The payload holds all others."""
_RESULT = frozenset({"type", "tool_use_id", "content"})


def drafts_of(message: Any, id_: str) -> list[Draft]:
    """Return a message's entries: one, or more if a user's message holds call results (Anthropic). Raises `ValueError`
    with the reason if it is no message."""
    if not isinstance(message, Mapping):
        raise ValueError("it is no object")
    role = role_of(message)
    if role is None:
        raise ValueError(f"its role is {str(message.get('role'))[:40]!r}")
    content = message.get("content")
    if role == "user" and any(_is_result(block) for block in _blocks(content)):
        parts = enumerate(_split(message, _blocks(content)))
        return [replace(part, id=f"{id_}/{place}" if place else id_) for place, part in parts]
    return [_draft(message, role, id_)]


def role_of(message: Any) -> Role | None:
    """Return a message's role here; None if it has none that is known."""
    return _ROLES.get(str(message.get("role", "")).lower()) if isinstance(message, Mapping) else None


def text_of(message: Any) -> str:
    """Return the visible text of a message of any form."""
    return _content_text(message.get("content") if isinstance(message, Mapping) else message)[0]


def calls_of(given: Any) -> tuple[list[ToolCall], list[JsonFields]]:
    """Return the calls of `tool_calls`, and those whose arguments are no JSON object. Raises `ValueError` if an item is
    no call."""
    calls: list[ToolCall] = []
    broken: list[JsonFields] = []
    for place, each in enumerate(given if isinstance(given, list) else [given] if given else []):
        if not isinstance(each, Mapping):
            raise ValueError("a tool call is no object")
        function = each["function"] if isinstance(each.get("function"), Mapping) else each
        name, id_ = function.get("name"), each.get("id")
        if not isinstance(name, str):
            raise ValueError("a tool call has no name")
        said: Any = next((function[key] for key in ("arguments", "args", "input") if key in function), {})
        id_ = storable(str(id_)) if id_ is not None else f"call_{place}"
        args = _args(said)
        if args is None:
            broken.append({"name": name, "args": str(said), "id": id_, "error": None, "type": "invalid_tool_call"})
        else:
            calls.append(ToolCall(id_, storable(name), storable(args)))
    return calls, broken


def payload_of(fields: Mapping[str, Any]) -> bytes | None:
    """Encode the fields that no column holds; None if there are none. SQL reads it, so lone surrogates are escaped."""
    if not fields:
        return None
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _args(said: Any) -> Mapping[str, Any] | None:
    if isinstance(said, str):
        try:
            said = decode_json(said) if said.strip() else {}
        except ValueError:
            return None
    return said if isinstance(said, Mapping) else None


def _draft(message: Mapping[str, Any], role: Role, id_: str) -> Draft:
    content = message.get("content")
    parts = message.get("parts") if "content" not in message else None  # as Gemini's clients say it
    text, rest = _content_text(content if parts is None else parts)
    if parts is not None:
        rest = {}
    calls: list[ToolCall] = []
    if role == "assistant":
        calls, broken = calls_of(message.get("tool_calls") or _uses(content))
        rest |= {"invalid_tool_calls": broken} if broken else {}
    more = {key: value for key, value in message.items() if key not in _SAID and value is not None}
    if role != "assistant" and message.get("tool_calls"):
        more["tool_calls"] = message["tool_calls"]
    if more:
        rest["additional_kwargs"] = more
    call_id = message.get("tool_call_id")
    name = message.get("name")
    return Draft(
        id=id_,
        role=role,
        text=storable(text),
        tool_calls=calls,
        tool_call_id=storable(str(call_id or "")) if role == "tool" else None,
        name=storable(name) if isinstance(name, str) else None,
        payload=payload_of(rest),
    )


def _content_text(content: Any) -> tuple[str, JsonFields]:
    """Return a content's text, and the fields that the text does not hold."""
    if content is None:
        return "", {}
    if isinstance(content, str):
        return content, {} if storable(content) == content else {"content": content}
    blocks = _blocks(content)
    text = "".join(_read_text(block) for block in blocks)
    return text, {"content": blocks}


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, Mapping):
        return [content]
    return list(content) if isinstance(content, Sequence) and not isinstance(content, str | bytes) else []


def _read_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) and block.get("type", "text") == "text" else None
    return text if isinstance(text, str) and not (isinstance(block, Mapping) and block.get("thought")) else ""


def _uses(content: Any) -> list[Any]:
    return [
        each
        for each in _blocks(content)
        if isinstance(each, Mapping) and each.get("type") == "tool_use" and isinstance(each.get("name"), str)
    ]


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _split(message: Mapping[str, Any], blocks: Sequence[Any]) -> Iterator[Draft]:
    """Split a user's message into its results and the content between them."""
    waiting: list[Any] = []
    for block in blocks:
        if not _is_result(block):
            waiting.append(block)
            continue
        if waiting:
            yield _draft({**message, "content": waiting}, "user", "")
            waiting = []
        more = {key: value for key, value in block.items() if key not in _RESULT}
        failed = {"status": "error"} if more.pop("is_error", False) is True else {}
        draft = _draft({"content": block.get("content"), **more, "tool_call_id": block.get("tool_use_id")}, "tool", "")
        yield replace(draft, payload=_with(draft.payload, failed))
    if waiting:
        yield _draft({**message, "content": waiting}, "user", "")


def _with(payload: bytes | None, more: JsonFields) -> bytes | None:
    fields = json.loads(payload.decode("utf-8", "surrogatepass")) if payload else {}
    return payload_of(fields | more)
