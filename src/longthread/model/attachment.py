"""Attachments of messages in the forms of LangChain, OpenAI, Anthropic and Google."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

AttachmentKind = Literal["image", "document", "text", "audio", "video"]

_KINDS: Mapping[str, AttachmentKind] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), "image"),
    **dict.fromkeys(("file", "input_file", "document", "media"), "document"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    "video": "video",
    "text-plain": "text",
}
"""The default kind of a block, by its type."""
_NESTED = ("source", "file", "input_audio", "extras")
"""Keys of nested objects in a block."""
_DATA = ("base64", "data", "file_data", "url", "file_url", "image_url")
"""Keys of the data, or of a URL that may hold it."""
_LABELS = ("filename", "name", "title", "context", "revised_prompt")
_TEXTS = re.compile(r"text/|application/(?:json|xml|yaml|x-yaml|javascript|sql|[\w.-]+\+(?:json|xml))\b", re.IGNORECASE)
_INLINE = re.compile(r"data:([^;,]{0,200})[^,]{0,200};base64,", re.IGNORECASE)
_PDF = "JVBERi0"
"""Base64 of `%PDF-`."""

ContentBlock = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attachment:
    """The content of one block: `data` in base64 or `text`; both are empty for a URL or id. `label` has its name, title
    and description; `images` is the number of images in its text."""

    kind: AttachmentKind
    mime: str = ""
    data: str = ""
    text: str = ""
    label: str = ""
    images: int = 0


def attachment_of(block: ContentBlock) -> Attachment | None:
    """The attachment in a content block; None for any other block."""
    type_ = block.get("type")
    kind = _KINDS.get(type_) if isinstance(type_, str) else None
    if kind is None:
        return None
    fields = _fields(block)
    mime, data = _data(fields)
    label = "\n".join(each for key in _LABELS if isinstance(each := fields.get(key), str) and each)
    found = Attachment(_kind(kind, mime), mime, data, label=label)
    source = fields.get("of")
    if source == "content":
        return _of_content(found, fields.get("content"))
    if source == "text" or type(block.get("text")) is str:
        content_text = fields.get("text") or fields.get("data")
        return replace(found, kind="text", data="", text=content_text if isinstance(content_text, str) else "")
    if found.kind == "text" and data:
        content_text = _decoded(data)
        return replace(found, kind="document") if content_text is None else replace(found, data="", text=content_text)
    return found


def _fields(block: ContentBlock) -> dict[str, Any]:
    """The fields of a block with those of nested objects; `of` is the type of its source."""
    fields = dict(block)
    for key in _NESTED:
        inner = block.get(key)
        if isinstance(inner, dict):
            fields |= {name: value for name, value in inner.items() if name != "type"}
    source = block.get("source")
    return fields | {"of": source.get("type") if isinstance(source, dict) else block.get("source_type")}


def _data(fields: Mapping[str, Any]) -> tuple[str, str]:
    """The media type, and the data in base64, if it is inline."""
    mime = fields.get("mime_type") or fields.get("media_type") or ""
    mime = mime if isinstance(mime, str) else ""
    for key in _DATA:
        value = fields.get(key)
        if not isinstance(value, str) or not value:
            continue
        inline = _INLINE.match(value)
        if inline:
            mime, value = mime or inline[1], value[inline.end() :]
        elif key.endswith("url"):
            continue
        if not mime:
            mime = "application/pdf" if value.startswith(_PDF) else str(fields.get("format") or "")
        return mime.lower(), value
    return mime.lower(), ""


def _kind(kind: AttachmentKind, mime: str) -> AttachmentKind:
    """The kind of a file, by its media type."""
    if kind != "document":
        return kind
    of: dict[str, AttachmentKind] = {"image": "image", "audio": "audio", "video": "video"}
    return of.get(mime.partition("/")[0]) or ("text" if _TEXTS.match(mime) else "document")


def _of_content(found: Attachment, content: Any) -> Attachment:
    """A document of nested blocks."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    content_text = [content] if isinstance(content, str) else texts
    return replace(
        found, kind="text", text="\n".join(content_text), images=sum(block.get("type") == "image" for block in blocks)
    )


def _decoded(data: str) -> str | None:
    try:
        return b64decode(data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
