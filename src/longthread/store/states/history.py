"""A client's messages (document 003) as entries, and back value for value.

An entry's columns and `content` hold most messages. Of another one, the payload of its first entry holds all, in a list
below `client_messages`. Its other entries have an empty list there, and are shown only where retention has deleted the
first one. The relation `conversation_state` reads it too.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from longthread.model.entry import Draft, Entry
from longthread.store.imports.foreign_rows import storable
from longthread.store.imports.messages import drafts_of, payload_of, role_of, text_of
from longthread.store.rows import dump

CLIENT_MESSAGES = "client_messages"
_NAMESPACE = uuid.UUID("6c6f6e67-7468-5265-8164-686973746f72")
_TITLE = 50
"""Length of a title made from the first question, in characters."""


def drafts_of_message(message: Any, id_: str) -> list[Draft]:
    """Return the entries of any JSON value that a client sent as a message."""
    try:
        drafts = drafts_of(message, id_)
    except ValueError:  # it is no message of a known form; only the user can have said it
        drafts = [Draft(id=id_, role=role_of(message) or "user", text=storable(text_of(message)))]
    if len(drafts) == 1 and not drafts[0].tool_calls and same(_shown(drafts[0], _fields(drafts[0])), message):
        return drafts
    return [_with_messages(draft, [] if place else [message]) for place, draft in enumerate(drafts)]


def drafts_after(messages: Sequence[Any], parent_id: str) -> list[Draft]:
    """Return the entries of messages after an entry ("": none). Equal messages after one entry have equal ids, so that
    a client that returns to an earlier branch writes nothing."""
    found: list[Draft] = []
    for message in messages:
        parent_id = str(uuid.uuid5(_NAMESPACE, f"{parent_id}\n{_canonical(message)}"))
        found += drafts_of_message(message, parent_id)
    return found


def history_of(entries: Sequence[Entry]) -> list[tuple[Any, Entry]]:
    """Return the messages of a branch, each with its last entry."""
    found: list[tuple[Any, Entry]] = []
    for entry in entries:
        fields = _fields(entry)
        whole = fields.get(CLIENT_MESSAGES)
        if isinstance(whole, list) and (whole or found):
            found.append((whole[0] if whole else found.pop()[0], entry))
        else:
            found.append((_shown(entry, fields), entry))
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: other than in Python, 1, 1.0 and true differ."""
    return one == other and (repr(one) == repr(other) or _canonical(one) == _canonical(other))


def title_of(entries: Sequence[Draft]) -> str | None:
    """Return the beginning of the first question."""
    asked = next((entry.text for entry in entries if entry.role == "user"), "")
    return " ".join(asked.split())[:_TITLE] or None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _with_messages(draft: Draft, messages: list[Any]) -> Draft:
    return replace(draft, payload=payload_of(_fields(draft) | {CLIENT_MESSAGES: messages}))


def _fields(entry: Draft) -> dict[str, Any]:
    """Return an unpacked payload's fields; none for another payload."""
    if not (entry.payload or b"").startswith(b"{"):
        return {}
    try:
        fields = json.loads((entry.payload or b"").decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _shown(entry: Draft, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the message of an entry that holds no client's, as the relation shows it."""
    content = fields.get("content")
    message: dict[str, Any] = {"role": entry.role, "content": entry.text}
    if isinstance(content, str | list):
        message["content"] = content
    if entry.tool_calls:
        functions = [(call.id, {"name": call.name, "arguments": dump(call.args)}) for call in entry.tool_calls]
        message["tool_calls"] = [{"id": id_, "type": "function", "function": function} for id_, function in functions]
    if entry.tool_call_id is not None:
        message["tool_call_id"] = entry.tool_call_id
    if entry.name is not None:
        message["name"] = entry.name
    return message
