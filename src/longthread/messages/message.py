"""One message of a conversation, and the pictures in it in any provider's form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longthread.model.entry import NOTE, MessageKind, Role, kind_in, note_in

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

    @property
    def note(self) -> dict[str, Any]:
        """What Longthread notes on the message: the metadata of its entry."""
        return note_in({"additional_kwargs": self.additional_kwargs})

    @property
    def kind(self) -> MessageKind | None:
        """What the message is, beyond its role."""
        return kind_in(self.note)

    def add_note(self, *, kind: MessageKind | None = None, **note: Any) -> Message:
        """Return the message with its kind and a note, which add to what is noted on it."""
        more = note if kind is None else {"kind": kind, **note}
        return replace(self, additional_kwargs=self.additional_kwargs | {NOTE: self.note | more})


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


_DATA = re.compile(r"data:(image/[\w.+-]+)[^,]{0,100};base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture at `url`, or its `data` in base64 with the type `mime`."""

    url: str = ""
    mime: str = ""
    data: str = ""


def inline(block: Mapping[str, Any]) -> Picture | None:
    """Return the picture of a block in the form of OpenAI, Anthropic or LangChain; None for other blocks."""
    if block.get("type") == "image_url":
        image = block.get("image_url")
        return _at(image.get("url") if isinstance(image, dict) else image)
    if block.get("type") != "image":
        return None
    inner = block.get("source")
    source: Mapping[str, Any] = inner if isinstance(inner, dict) else block
    data = source.get("base64") or source.get("data")
    if isinstance(data, str) and data:
        mime = source.get("media_type") or source.get("mime_type") or "image/png"
        return Picture(mime=str(mime), data=data)
    return _at(source.get("url"))


def _at(url: Any) -> Picture | None:
    if not isinstance(url, str) or not url:
        return None
    found = _DATA.fullmatch(url)
    return Picture(mime=found[1], data=found[2]) if found else Picture(url=url)
