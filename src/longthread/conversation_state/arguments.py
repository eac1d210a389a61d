"""Checks of what callers of the conversation states give."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from longthread.errors import InvalidInput
from longthread.store.states.states import CLIENT_TYPES

DEEPEST = 200
"""Levels of nested lists and objects in a history."""


def checked_signature(signature: Any) -> str | None:
    if signature is not None and not isinstance(signature, str):
        raise InvalidInput(reason=f"signature is of type {type(signature).__name__}; give a text, or None.")
    return signature


def messages_of(history: Any) -> list[Any]:
    """Return the messages of a history. Raises `InvalidInput`: it is not the text of a JSON list."""
    if not isinstance(history, str):
        raise InvalidInput(reason=f"history is of type {type(history).__name__}; give JSON text: json.dumps(messages).")
    try:
        messages = json.loads(history)
        json.dumps(messages, allow_nan=False)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(reason=f"history is no JSON: {reason}.") from error
    if not isinstance(messages, list):
        raise InvalidInput(reason=f"history is JSON, but no list: {history[:40]}.")
    if _depth(messages) > DEEPEST:
        raise InvalidInput(reason=f"history is nested deeper than {DEEPEST} levels.")
    return messages


def _depth(value: Any) -> int:
    levels, found = 0, [value]
    while found:
        levels += 1
        found = [item for each in found if isinstance(each, list | dict) for item in _items(each)]
    return levels


def _items(value: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def checked_scid(scid: Any) -> str:
    if not isinstance(scid, str) or not scid:
        raise InvalidInput(reason=f"scid is {scid!r}; give the conversation's id, a text that is not empty.")
    return scid


def checked_ttl(ttl_seconds: Any) -> float | None:
    if ttl_seconds is None or (isinstance(ttl_seconds, int | float) and not isinstance(ttl_seconds, bool)):
        return ttl_seconds
    raise InvalidInput(reason=f"ttl_seconds is {ttl_seconds!r}; give a number of seconds, or None.")


def checked_client(client_type: Any) -> str:
    if client_type not in CLIENT_TYPES:
        raise InvalidInput(reason=f"client_type is {client_type!r}; allowed is {', '.join(CLIENT_TYPES)}.")
    return str(client_type)
