"""What a message's payload holds: its searchable text, its attachments, and a provider's blocks as raw JSON."""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from longthread.model.catalog import RECALL_TOOL

_MARK = b"\x00"
_DIALECTS = ("anthropic", "responses", "completions")
"""In a payload a dialect is its place here, from 1. The order never changes."""
_MARKS = tuple(_MARK + bytes([number]) for number in range(1, len(_DIALECTS) + 1))
_WHOLE, _CUT, _CUT_ASCII = range(3)
"""The third byte: whether the entry's text was cut out, and whether its JSON was in ASCII."""
_OLD = b"\x00wire:"
"""How older payloads begin, which stores keep. The dialect's name follows, then a NUL and the compressed blocks."""
_OLD_WINDOW = 32_768
_SEAL = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}|[\w-]{64,}={0,2}", re.ASCII)
_WINDOW = 32_768
"""Bytes of a dictionary that zlib takes."""
_SMALL = 8_192
"""Up to so many bytes a small window does, which takes a quarter of the time."""
# What is stored was made with these bytes: they never change. What comes last is found with the fewest bits.
_WORDS = (
    b'"created_at":17,"incomplete_details":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,'
    b'"prompt_cache_key":"","safety_identifier":null,"truncation":"disabled","top_logprobs":0,"background":false,'
    b'"tool_choice":"auto","temperature":1.0,"top_p":1.0,"reasoning":{"effort":"medium","summary":null},'
    b'"text":{"format":{"type":"text"},"verbosity":"medium"},"metadata":{},"user":null,"error":null,'
    b'{"id":"resp_0","object":"response","status":"completed","model":"gpt-5","store":true,'
    b'"output":[{"id":"rs_0","type":"reasoning","encrypted_content":"gAAAAAB","summary":[{"type":"summary_text","text":"'
    b'{"id":"fc_0","type":"function_call","status":"completed","arguments":"{\\"","call_id":"call_","name":"'
    b'{"type":"function_call_output","call_id":"call_","output":"'
    b'{"id":"msg_0","type":"message","status":"completed","phase":"final_answer","role":"assistant",'
    b'"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"'
    b'{"type":"message","role":"user","content":[{"type":"input_text","text":"'
    b'"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,'
    b'"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1}'
    b'{"id":"chatcmpl-","object":"chat.completion","created":17,"system_fingerprint":"fp_","choices":[{"index":0,'
    b'"finish_reason":"stop","native_finish_reason":"stop","logprobs":null,"refusal":null,"reasoning_content":"'
    b'"reasoning_details":[{"type":"reasoning.text","format":"","index":0,"text":"'
    b'"extra_content":{"google":{"thought_signature":"'
    b'"tool_calls":[{"id":"call_","index":0,"type":"function","function":{"name":"","arguments":"{\\"'
    b'{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1,"prompt_tokens_details":{"cached_tokens":0,'
    b'"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}'
    b'{"field":"content","value":"{"field":"reasoning_content","value":"{"field":"phase","value":"{"field":"id","value":"'
    b'"stop_details":null,"container":null,"context_management":{"applied_edits":[]},"diagnostics":null,'
    b'"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"server_tool_use":null,'
    b'"service_tier":"standard","inference_geo":"global","output_tokens_details":{"thinking_tokens":0},'
    b'{"id":"msg_01","type":"message","role":"assistant","model":"claude-","stop_reason":"tool_use",'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":0,'
    b'"cache_read_input_tokens":0,"output_tokens":1}}'
    b'{"type": "tool_use", "id": "toolu_01", "name": "", "input": {"'
    b'{"type":"tool_use","id":"toolu_01","name":"","input":{"'
    b'"caller":{"type":"direct"}},"is_error":false,"cache_control":{"type":"ephemeral"},"citations":null,'
    b'[{"type": "tool_result", "tool_use_id": "toolu_01", "content": "'
    b'[{"type":"tool_result","tool_use_id":"toolu_01","content":"'
    b'[{"type":"redacted_thinking","data":"'
    b'[{"type": "thinking", "thinking": "", "signature": ""},{"type": "text", "text": ""}]'
    b'[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":""}]'
)


class _Seal(NamedTuple):
    """Bytes that stand in base64 before a place of the rest. `is_url`: in the alphabet for URLs."""

    at: int
    is_url: bool
    data: bytes


def pack(dialect: str, blocks: Sequence[str], text: str) -> bytes:
    """Return the payload of an entry whose message has these blocks, as JSON texts."""
    form, at, rest = _cut(f"[{','.join(blocks)}]", text)
    body = deflate(_join_line(at, *_take_seals(rest)), b"" if form else _bytes(text))
    return _MARKS[_DIALECTS.index(dialect)] + bytes([form]) + body


def is_wire(payload: bytes | None) -> bool:
    return payload is not None and payload.startswith((*_MARKS, _OLD))


def unpack(payload: bytes, text: str) -> tuple[str, str]:
    """Return the dialect of a payload, and its blocks as the text of a JSON list. Raises ValueError: it is damaged."""
    if payload.startswith(_OLD):
        return _unpack_old(payload, text)
    try:
        form = payload[2]
        at, seals, rest = _part_line(inflate(payload[3:], b"" if form else _bytes(text)))
        rest = _put_seals(seals, rest)
        if form != _WHOLE:
            rest = rest[:at] + _spell_text(text, form) + rest[at:]
        return _DIALECTS[payload[1] - 1], rest
    except (IndexError, TypeError) as error:
        raise ValueError(str(error)) from error


def _cut(raw: str, text: str) -> tuple[int, int, str]:
    """Return how the text is spelled in the blocks, its place, and the blocks without it."""
    for form in (_CUT, _CUT_ASCII) if text else ():
        spelled = _spell_text(text, form)
        at = raw.find(spelled)
        if at >= 0:
            return form, at, raw[:at] + raw[at + len(spelled) :]
    return _WHOLE, 0, raw


def _spell_text(text: str, form: int) -> str:
    return json.dumps(text, ensure_ascii=form == _CUT_ASCII)[1:-1]


def _take_seals(text: str) -> tuple[list[_Seal], str]:
    """Return the bytes that a text has in base64, and the text without them."""
    seals: list[_Seal] = []
    pieces: list[str] = []
    at = begin = 0
    for match in _SEAL.finditer(text):
        seal = _seal(match[0], at + match.start() - begin)
        if seal is not None:
            pieces.append(text[begin : match.start()])
            at, begin = seal.at, match.end()
            seals.append(seal)
    return seals, "".join([*pieces, text[begin:]])


def _seal(text: str, at: int) -> _Seal | None:
    """Return what a text is in base64. One that is numbers in hexadecimal gets smaller as it is."""
    is_url = "-" in text or "_" in text
    if text in (text.lower(), text.upper()):
        return None
    try:
        seal = _Seal(at, is_url, (urlsafe_b64decode if is_url else b64decode)(text))
    except binascii.Error:
        return None
    return seal if _base64(seal) == text else None


def _put_seals(seals: Sequence[_Seal], rest: str) -> str:
    ends = [0, *(seal.at for seal in seals)]
    pieces = [
        piece for begin, seal in zip(ends, seals, strict=False) for piece in (rest[begin : seal.at], _base64(seal))
    ]
    return "".join([*pieces, rest[ends[-1] :]])


def _base64(seal: _Seal) -> str:
    return (urlsafe_b64encode if seal.is_url else b64encode)(seal.data).decode()


def _join_line(at: int, seals: Sequence[_Seal], rest: str) -> bytes:
    """Return a line of numbers (the text's place; of each seal its place, its alphabet and its size), the seals and the
    rest."""
    numbers = [at, *(number for seal in seals for number in (seal.at, int(seal.is_url), len(seal.data)))]
    return b"".join([" ".join(map(str, numbers)).encode(), b"\n", *(seal.data for seal in seals), _bytes(rest)])


def _part_line(body: bytes) -> tuple[int, list[_Seal], str]:
    head, _, body = body.partition(b"\n")
    at, *numbers = map(int, head.split())
    found: list[_Seal] = []
    for place, is_url, size in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        found.append(_Seal(place, bool(is_url), body[:size]))
        body = body[size:]
    return at, found, body.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _unpack_old(payload: bytes, text: str) -> tuple[str, str]:
    kind, body = payload[1:].split(_MARK, 1)
    unpacker = zlib.decompressobj(-15, _bytes(text)[-_OLD_WINDOW:])
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return kind.decode().removeprefix("wire:"), raw.decode("utf-8", "surrogatepass")


def deflate(raw: bytes, more: bytes = b"") -> bytes:
    """Compress bytes. `more` is text that they have in common with something that is stored anyway."""
    words = (_WORDS + more)[-_WINDOW:]
    is_small = len(raw) + len(words) <= _SMALL
    packer = zlib.compressobj(6, zlib.DEFLATED, *((-13, 5) if is_small else (-15, 8)), zdict=words)
    return packer.compress(raw) + packer.flush()


def inflate(body: bytes, more: bytes = b"") -> bytes:
    """Return what `deflate` was given. Raises ValueError: the bytes are damaged."""
    unpacker = zlib.decompressobj(-15, (_WORDS + more)[-_WINDOW:])
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError("its end is missing")
    return raw


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
