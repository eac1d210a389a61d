"""Short payloads: the parts that an entry's other columns imply are left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

NOTE = "longthread"
"""Key of `additional_kwargs` for our copy of an entry's metadata."""
SENT_ID = "message_id"
"""Key of an entry's metadata for the sender's id, if that differs."""
SHORT = ""
"""First key of a short payload. `n`: the note is the metadata with these insertions, `[place, latency]` or, for a raw
text around the entry's, `[place, [before, after]]`; `u`: the counts of the usage."""

SEALED_PAYLOAD = b"\x00sealed:"
"""What a payload begins with that only an application's own serializer can read."""
SEALED_NOTE = "(stored through the application's own serializer: only a program that has it can read this)"

_MARK = b'{"":'
_KWARGS = "additional_kwargs"
_USAGE = "usage_metadata"
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_LATENCY = "latency_ms"
_RAW = "raw"

PayloadFields = dict[str, Any]


def note_in(fields: Mapping[str, Any]) -> PayloadFields:
    """The note in a message's fields; empty if there is none."""
    kwargs = fields.get(_KWARGS)
    note = kwargs.get(NOTE) if isinstance(kwargs, dict) else None
    return note if isinstance(note, dict) else {}


def shortened(fields: PayloadFields, text: str, metadata: Mapping[str, Any]) -> tuple[PayloadFields, PayloadFields]:
    """The short form of a payload's fields, and its metadata. `text` is the entry's, `metadata` the note's part."""
    rest, short = dict(fields), PayloadFields()
    remaining = dict(metadata)
    if (inserts := _inserts(fields, text, remaining)) is not None:
        kwargs = {key: value for key, value in rest.pop(_KWARGS).items() if key != NOTE}
        rest |= {_KWARGS: kwargs} if kwargs else {}
        short["n"] = inserts
        if any(type(value) is list for _, value in inserts):
            del remaining[_RAW]
    usage = rest.get(_USAGE)
    if type(usage) is dict and tuple(usage) == _COUNTS and all(type(count) is int for count in usage.values()):
        short["u"] = list(rest.pop(_USAGE).values())
    return ({SHORT: short} | rest if short else rest), remaining


def whole(fields: PayloadFields, text: str, metadata: Mapping[str, Any] | str | None) -> PayloadFields:
    """Restores the fields of a short payload. `metadata` may be JSON text."""
    rest = dict(fields)
    short = rest.pop(SHORT, None)
    if short is None:
        return rest
    if "n" in short:
        plain = json.loads(metadata) if isinstance(metadata, str) else metadata or {}
        note = [(key, value) for key, value in plain.items() if key != SENT_ID]
        for place, value in short["n"]:
            around = type(value) is list
            note.insert(place, (_RAW, text.join(value)) if around else (_LATENCY, value))
        kwargs = {**rest.pop(_KWARGS, {}), NOTE: dict(note)}
        content = {"content": rest.pop("content")} if "content" in rest else {}
        rest = content | {_KWARGS: kwargs} | rest
    if "u" in short:
        rest[_USAGE] = dict(zip(_COUNTS, short["u"], strict=True))
    return rest


def whole_payload(payload: bytes | None, text: str, metadata: Mapping[str, Any]) -> bytes | None:
    """Restores a short payload, for comparisons."""
    if payload is None or not payload.startswith(_MARK):
        return payload
    try:
        fields = whole(json.loads(payload.decode("utf-8", "surrogatepass")), text, metadata)
    except (ValueError, TypeError, AttributeError):
        return payload  # not ours
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _inserts(fields: Mapping[str, Any], text: str, metadata: Mapping[str, Any]) -> Sequence[Any] | None:
    """The insertions that turn the metadata into the note; None if these do not suffice."""
    kwargs = fields.get(_KWARGS)
    if not isinstance(kwargs, dict) or not kwargs or next(reversed(kwargs)) != NOTE or type(kwargs[NOTE]) is not dict:
        return None
    note: PayloadFields = kwargs[NOTE]
    inserts: list[list[Any]] = []
    remaining: PayloadFields = {}
    for place, (key, value) in enumerate(note.items()):
        if key == _LATENCY and type(value) is int:
            inserts.append([place, value])
        elif key == _RAW and type(value) is str and text and text in value:
            before, _, after = value.partition(text)
            inserts.append([place, [before, after]])
            remaining[key] = metadata.get(key)
        else:
            remaining[key] = value
    return inserts if remaining.items() == metadata.items() and list(remaining) == list(metadata) else None
