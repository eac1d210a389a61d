"""An entry: one immutable message of a thread. Its payload leaves out what the other columns imply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, cast

from longthread.model.content import extra_text
from longthread.model.language import is_chinese

Role = Literal["system", "user", "assistant", "tool"]
MessageKind = Literal["question", "answer", "summary", "interrupted", "chunk", "malformed", "observation", "digest"]
"""What a message is, beyond its role. Its JSON is the same in an entry's metadata and in a message's note."""
NOTE = "longthread"
"""Key of `additional_kwargs` for our copy of an entry's metadata."""
SENT_ID = "message_id"
"""Key of an entry's metadata for the sender's id, if that differs."""
SHORT_PAYLOAD = ""
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
INTERRUPTED: Final = "interrupted"
"""The kind of an entry whose run ended while it was written."""
SHOWN_KINDS: frozenset[MessageKind] = frozenset({"question", "answer", "summary", INTERRUPTED})
"""The kinds of entries that a page shows as messages."""
_MARKS = {
    False: "[Interrupted here. Asked to go on, continue from this point.]",
    True: "[回复在此中断。若要求继续，请从这里接着写。]",
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run one tool. `args` is the decoded argument object."""

    id: str
    name: str
    args: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "args": dict(self.args)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCall:
        return cls(id=data["id"], name=data["name"], args=data["args"])


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that is not in the log yet.

    `payload` holds what the other fields lack of the raw message, so that both restore it exactly; None if that is
    nothing.
    """

    id: str
    role: Role
    text: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    name: str | None = None
    payload: bytes | None = None
    tokens: int | None = None
    latency_ms: int | None = None
    run_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def full_payload(self) -> bytes | None:
        """The payload with its shortened parts restored."""
        return whole_payload(self.payload, self.text, self.metadata)

    @property
    def shown_text(self) -> str:
        """The text for people; where only an application's serializer can read it, a note that says so."""
        sealed = not self.text and self.payload is not None and self.payload.startswith(SEALED_PAYLOAD)
        return SEALED_NOTE if sealed else self.text

    @property
    def extra_text(self) -> str:
        """The searchable text of the message in addition to its text and its calls."""
        return extra_text(self.payload, self.text)


@dataclass(frozen=True, slots=True)
class Entry(Draft):
    """An entry of the log.

    `seq` counts the thread's entries from 1, over all branches. `parent_seq` is the entry before it on its branch, or
    0. `replaces` is the entry whose place this later version of a message takes, or 0. A branch shows the newest
    version under the `seq` and `parent_seq` of that place.
    """

    thread_id: str = ""
    seq: int = 0
    parent_seq: int = 0
    created_at: datetime = field(default_factory=lambda: datetime.min)
    replaces: int = 0

    @property
    def kind(self) -> MessageKind | None:
        """What the entry is, beyond its role."""
        return kind_in(self.metadata)

    @property
    def is_imported_memory(self) -> bool:
        """Whether an import took it from another program's memory of the thread. It is on a branch of its own, but
        took the place of nothing."""
        return self.role == "system" and self.kind in ("chunk", "summary")

    def says_the_same_as(self, draft: Draft) -> bool:
        """Whether storing `draft` here would store nothing new."""
        same = all(getattr(self, name) == getattr(draft, name) for name in _CONTENT)
        return same and self.full_payload == draft.full_payload and tuple(self.tool_calls) == tuple(draft.tool_calls)


_CONTENT = ("role", "text", "tool_call_id", "name")


def kind_in(note: Mapping[str, Any]) -> MessageKind | None:
    """Return the kind in a message's note or in an entry's metadata."""
    value = note.get("kind")
    return cast(MessageKind, str(value)) if value is not None else None


def note_in(fields: Mapping[str, Any]) -> PayloadFields:
    """The note in a message's fields; empty if there is none."""
    kwargs = fields.get(_KWARGS)
    note = kwargs.get(NOTE) if isinstance(kwargs, dict) else None
    return note if isinstance(note, dict) else {}


def shorten_fields(
    fields: PayloadFields, text: str, metadata: Mapping[str, Any]
) -> tuple[PayloadFields, PayloadFields]:
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
    return ({SHORT_PAYLOAD: short} | rest if short else rest), remaining


def whole(fields: PayloadFields, text: str, metadata: Mapping[str, Any] | str | None) -> PayloadFields:
    """Restores the fields of a short payload. `metadata` may be JSON text."""
    rest = dict(fields)
    short = rest.pop(SHORT_PAYLOAD, None)
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


def with_mark(text: str) -> str:
    """The text as a model sees it: that its end is no end."""
    return f"{text.rstrip()}\n\n{_MARKS[is_chinese(text)]}"
