"""Cursors: where a listing goes on, as text that means nothing to its reader."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from longthread.errors import InvalidInput

_LARGEST = 2**63 - 1
"""The largest number that a store holds."""


def encode_cursor(*values: str | int) -> str:
    """A cursor that holds `values`."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type[Any]) -> list[Any]:
    """The values of a cursor, which are of `kinds`.

    Raises:
        InvalidInput: no listing of this kind gave this cursor.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or [type(value) for value in values] != list(kinds) or not all(map(_sane, values)):
        raise InvalidInput(reason="This cursor is not one that was given out. Leave it out to begin at the start.")
    return values


def _sane(value: Any) -> bool:
    """Whether a store can look for a value: cursors come from outside."""
    if isinstance(value, int):
        return 0 <= value <= _LARGEST
    return not any("\ud800" <= character <= "\udfff" for character in value)
