"""Converts the result of a server's tool to an observation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from longthread.errors import McpFailed, McpToolFailed
from longthread.tools.secrets import Secrets

SHOWN = 64_000
"""Characters of a text or structured value in an observation."""
_REASON = 2_000
"""Characters of an error message."""
_ITEMS = 50
"""Other contents that are listed."""


def observed(result: Mapping[str, Any], server: str, secrets: Secrets) -> dict[str, Any]:
    """The data of an observation: `text`, `structured`, and `content` with the kind and size of everything else, such
    as images. Raises McpToolFailed: the tool reports an error; McpFailed: the result is invalid."""
    content = [one for one in result.get("content") or () if isinstance(one, Mapping)]
    text = "\n".join(_texts(content))
    if result.get("isError"):
        reason = _clean(secrets.scrubbed(text[: 2 * _REASON], cut=len(text) > 2 * _REASON))[:_REASON]
        raise McpToolFailed(reason=reason or "it does not say why.")
    data: dict[str, Any] = {}
    notes: list[str] = []
    structured = result.get("structuredContent")
    if structured is not None:
        written = _written(structured, server, secrets)
        if len(written) <= SHOWN:
            data["structured"] = json.loads(written)
        else:
            data["structured_text"] = written[:SHOWN]
            notes.append(f"The structured result has {len(written)} characters; this is how its JSON begins.")
    if text and not (structured is not None and _says_the_same(text, structured)):
        part = text[: 2 * SHOWN]
        cut = len(part) < len(text)
        clean = _clean(secrets.scrubbed(part, cut=cut))
        data["text"] = clean[:SHOWN]
        if cut or len(clean) > SHOWN:
            notes.append(f"The text has {len(text)} characters; this is how it begins.")
    others = [
        json.loads(_written(_named(one), server, secrets))
        for one in content
        if one.get("type") != "text" and not (one.get("type") == "resource" and "text" in one["resource"])
    ]
    if others:
        data["content"] = others[:_ITEMS]
    if len(others) > _ITEMS:
        notes.append(f"There are {len(others)} other contents; these are the first.")
    return data | ({"notes": notes} if notes else {})


def _texts(content: list[Mapping[str, Any]]) -> Iterator[str]:
    for one in content:
        if one.get("type") == "text":
            yield str(one.get("text", ""))
        elif one.get("type") == "resource" and isinstance(one["resource"].get("text"), str):
            yield f"{one['resource'].get('uri', '')}:\n{one['resource']['text']}"


def _named(one: Mapping[str, Any]) -> dict[str, Any]:
    """A content without its data."""
    item = one["resource"] if one.get("type") == "resource" else one
    fields = {
        "type": one.get("type"),
        "mime_type": item.get("mimeType"),
        "name": item.get("name"),
        "uri": item.get("uri"),
        "description": item.get("description"),
    }
    data = item.get("data", item.get("blob"))
    size = {"bytes": len(data) * 3 // 4 - data[-2:].count("=")} if isinstance(data, str) else {}
    return {name: str(value)[:1_000] for name, value in fields.items() if value} | size


def _says_the_same(text: str, structured: Any) -> bool:
    """Whether a text repeats the structured value."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return bool(value == structured or structured == {"result": value})


def _written(value: Any, server: str, secrets: Secrets) -> str:
    """A value as JSON without secrets, NaN and lone surrogates."""
    try:
        text = json.dumps(secrets.scrubbed(value), ensure_ascii=False)
        plain = json.loads(text, parse_constant=lambda _: None)
        return _clean(json.dumps(plain, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError) as error:
        raise McpFailed(server=server, reason="its result is no JSON, or is nested too deeply.") from error


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
