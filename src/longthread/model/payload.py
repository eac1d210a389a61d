"""What is in nearly every payload, told in short: what an entry's other columns say is not said once more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

NOTE = "longthread"
"""Key of `additional_kwargs` under which we keep what an entry's metadata says."""
SENT_ID = "message_id"
"""Key of an entry's metadata for the id that its sender gave it, where that is not the entry's own."""
SHORT = ""
"""Key of a payload, always its first, for what is told in short: `n` says that there is a note, which is the metadata
with `[place, latency]` or `[place, [before, after]]` put in, the latter for a raw text around the entry's; `u` are the
numbers of the usage."""

_MARK = b'{"":'
_KWARGS = "additional_kwargs"
_USAGE = "usage_metadata"
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_TOLD = {"n": _KWARGS, "u": _USAGE}
_LATENCY = "latency_ms"
_RAW = "raw"

PayloadFields = dict[str, Any]


def is_short(payload: bytes | None) -> bool:
    """Whether something of a payload is told in short."""
    return payload is not None and payload.startswith(_MARK)


def note_in(fields: Mapping[str, Any]) -> PayloadFields:
    """The note among a message's fields; empty where there is none."""
    kwargs = fields.get(_KWARGS)
    note = kwargs.get(NOTE) if isinstance(kwargs, dict) else None
    return note if isinstance(note, dict) else {}


def shortened(fields: PayloadFields, text: str, metadata: Mapping[str, Any]) -> tuple[PayloadFields, PayloadFields]:
    """The fields of a payload with what can be told in short, and what the metadata is then.

    Args:
        text: the entry's text.
        metadata: what of the note is to be metadata, as the store keeps it.
    """
    rest, short = dict(fields), PayloadFields()
    kept = dict(metadata)
    if (inserts := _inserts(fields, text, kept)) is not None:
        kwargs = {key: value for key, value in rest.pop(_KWARGS).items() if key != NOTE}
        rest |= {_KWARGS: kwargs} if kwargs else {}
        short["n"] = inserts
        if any(type(value) is list for _, value in inserts):
            del kept[_RAW]
    usage = rest.get(_USAGE)
    if type(usage) is dict and tuple(usage) == _COUNTS and all(type(count) is int for count in usage.values()):
        short["u"] = list(rest.pop(_USAGE).values())
    return ({SHORT: short} | rest if short else rest), kept


def whole(fields: PayloadFields, text: str, metadata: Mapping[str, Any] | str | None) -> PayloadFields:
    """The fields of a payload, with nothing told in short; `metadata` may be JSON."""
    rest = dict(fields)
    short = rest.pop(SHORT, None)
    if short is None:
        return rest
    if "n" in short:
        told = json.loads(metadata) if isinstance(metadata, str) else metadata or {}
        note = [(key, value) for key, value in told.items() if key != SENT_ID]
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
    """A payload with nothing told in short: what two messages are compared by."""
    if payload is None or not is_short(payload):
        return payload
    try:
        fields = whole(json.loads(payload.decode("utf-8", "surrogatepass")), text, metadata)
    except (ValueError, TypeError, AttributeError):
        return payload  # somebody else's bytes, that only begin like ours
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _inserts(fields: Mapping[str, Any], text: str, metadata: Mapping[str, Any]) -> Sequence[Any] | None:
    """What must be put into the metadata for it to be the note, with the places where; None when that is not enough."""
    kwargs = fields.get(_KWARGS)
    if not isinstance(kwargs, dict) or not kwargs or next(reversed(kwargs)) != NOTE or type(kwargs[NOTE]) is not dict:
        return None
    note: PayloadFields = kwargs[NOTE]
    inserts: list[list[Any]] = []
    kept: PayloadFields = {}
    for place, (key, value) in enumerate(note.items()):
        if key == _LATENCY and type(value) is int:
            inserts.append([place, value])
        elif key == _RAW and type(value) is str and text and text in value:
            before, _, after = value.partition(text)
            inserts.append([place, [before, after]])
            kept[key] = metadata.get(key)
        else:
            kept[key] = value
    return inserts if kept.items() == metadata.items() and list(kept) == list(metadata) else None
