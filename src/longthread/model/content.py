"""The searchable text in a message's payload, and its attachments, in the forms of all providers."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from longthread.model.catalog import RECALL_TOOL
from longthread.model.wire import is_wire, unpack

CALLS = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call"})
"""Types of blocks that repeat a message's calls."""
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
"""Types of thinking blocks, which are not searchable."""
HOSTED = "tool_outputs"
"""The key of `additional_kwargs` for the items of OpenAI's own tools."""
_NAMED = (b'"content"', b'"invalid_tool_calls"', b'"tool_outputs"')
"""A payload without any of these keys holds no further text."""
_PACKED = b"\x00json:"
"""The prefix of a payload that is a whole message as JSON, after the name of its class and a NUL."""
_SKIPPED = CALLS | THINKING | {"invalid_tool_call"}
_NOTES = ("annotations", "citations")
"""Keys of a text block for its sources."""
_IDS = {"id", "call_id", "tool_use_id", "tool_call_id", "item_id", "file_id", "container_id", "index"}
_SEALED = {"signature", "encrypted_content", "encrypted_index", "base64"}
_OPAQUE = frozenset(_IDS | _SEALED | {"type", "status", "cache_control", "mime_type", "media_type"})
"""Keys of values that are not for people."""
_BYTES = re.compile(r"data:[^,]{0,100};base64,|[\w+/=-]{1000}", re.ASCII)
_DEEPEST = 50
_CALL_FIELDS = ("tool_calls", "function_call")
"""Fields of Chat Completions' messages that are calls."""
_INPUTS = ("arguments", "input")
_WIRE_TEXTS = frozenset({"input_text", "output_text"})
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
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


def extra_text(payload: bytes | None, text: str) -> str:
    """The text and names of attachments, invalid calls and the provider's tool items; empty for a foreign payload.
    `text` is the entry's."""
    if payload is not None and is_wire(payload):
        found = _of_wire(payload, text)
    else:
        found = _texts(_fields(payload) if payload and any(name in payload for name in _NAMED) else {})
    return _UNSTORABLE.sub("\ufffd", "\n".join(each for each in found if each.strip()))


def _fields(payload: bytes) -> Mapping[str, Any]:
    body = payload.partition(b"\x00")[2].partition(b"\x00")[2] if payload.startswith(_PACKED) else payload
    try:
        fields = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _texts(fields: Mapping[str, Any]) -> Iterator[str]:
    for block in _dicts(fields.get("content")):
        yield from _of_block(block)
    for call in _dicts(fields.get("invalid_tool_calls")):
        if call.get("name") != RECALL_TOOL:
            yield from (each for each in (call.get("name"), call.get("args")) if isinstance(each, str))
    kwargs = fields.get("additional_kwargs")
    for item in _dicts(kwargs.get(HOSTED)) if isinstance(kwargs, dict) else ():
        yield from _of_block(item)


def _of_wire(payload: bytes, text: str) -> Iterator[str]:
    """Yield what a gateway's entry says in addition to its text and calls. What only providers read stays hidden."""
    try:
        blocks = json.loads(unpack(payload, text)[1], strict=False)
    except (ValueError, RecursionError):
        return
    for block in _dicts(blocks):
        kind, field = block.get("type"), block.get("field")
        if field in _CALL_FIELDS:
            yield from _invalid_call(block.get("value"))
        elif field == "refusal":
            yield from _strings(block.get("value"))
        elif kind == "tool_use":
            yield from _invalid_call(block)
        elif kind in CALLS or ("call_id" in block and str(kind).endswith("_call")):
            continue  # its input is among the entry's calls, whatever it is
        elif kind == "tool_result" or block.get("role") == "tool" or str(kind).endswith("_output"):
            yield from _of_result(block.get("output", block.get("content")))
        elif field is None and kind not in _WIRE_TEXTS:
            yield from _of_block(block)


def _of_result(content: Any) -> Iterator[str]:
    """Yield what a tool's result holds in addition to its texts, which are the entry's."""
    if isinstance(content, dict):
        yield from _strings(content)
    for block in _dicts(content):
        if not isinstance(block.get("text"), str):
            yield from _of_block(block)


def _invalid_call(call: Any) -> Iterator[str]:
    """A call's input if it is a text: it is no arguments, and not in the entry's calls."""
    if not isinstance(call, dict):
        return
    for inner in (call, call.get("function"), call.get("custom")):
        given = next((inner[key] for key in _INPUTS if key in inner), None) if isinstance(inner, dict) else None
        if isinstance(given, str) and not _is_object(given):
            yield given


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False), dict) or not text.strip()
    except (ValueError, RecursionError):
        return not text.strip()


def _of_block(block: Mapping[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    if kind in _SKIPPED:
        return
    if kind == "text":
        yield from _strings([block.get(key) for key in _NOTES])
        return
    attached = attachment_of(block)
    if attached is None:
        yield from _strings(block)
    else:
        yield attached.label
        yield attached.text


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """The texts in a value. Encoded bytes, keys for machines and very deep values are skipped."""
    if isinstance(value, str):
        if not _BYTES.match(value):
            yield value
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        for item in value if isinstance(value, list) else (value[key] for key in value if key not in _OPAQUE):
            yield from _strings(item, depth + 1)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


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
    fields = _block_fields(block)
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
        content_text = _decode_base64(data)
        return replace(found, kind="document") if content_text is None else replace(found, data="", text=content_text)
    return found


def _block_fields(block: ContentBlock) -> dict[str, Any]:
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


def _decode_base64(data: str) -> str | None:
    try:
        return b64decode(data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
