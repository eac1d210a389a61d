"""One message of a conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from longthread.model.entry import Role

Content = str | list[str | dict[str, Any]]
"""A text, or the parts of a message: texts, and blocks in the form of their provider."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said. Its containers are never changed: `dataclasses.replace` makes another message.

    The names are those of the stored payload, which LangChain's messages have too. A reply's `tool_calls` are `{"name",
    "args", "id", "type": "tool_call"}`. Its `invalid_tool_calls` are `{"name", "args", "id", "error", "type":
    "invalid_tool_call"}`, with `args` as the text that came. `usage_metadata` holds `input_tokens`, `output_tokens` and
    `total_tokens`. `tool_call_id`, `artifact` and `status` are a tool result's. `additional_kwargs` and
    `response_metadata` are the provider's own. `extra` holds other fields of a stored payload.
    """

    role: Role
    content: Content = ""
    additional_kwargs: dict[str, Any] = field(default_factory=dict)
    response_metadata: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    id: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    invalid_tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage_metadata: dict[str, Any] | None = None
    tool_call_id: str | None = None
    artifact: Any = None
    status: str = "success"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The visible text: the content, or the text parts of it, joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(map(_text_of, self.content))

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks of the content; none if it is a text."""
        return [] if isinstance(self.content, str) else [part for part in self.content if isinstance(part, dict)]


def _text_of(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text")
    return text if part.get("type") == "text" and isinstance(text, str) else ""


def tool_call(name: str, args: dict[str, Any], id: str | None) -> dict[str, Any]:  # noqa: A002  # the key's name
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def invalid_tool_call(
    name: str | None,
    args: str | None,
    id: str | None,  # noqa: A002
    error: str | None = None,
) -> dict[str, Any]:
    """Return a call whose arguments are no JSON object; `args` is their text, byte for byte."""
    return {"name": name, "args": args, "id": id, "error": error, "type": "invalid_tool_call"}
