"""What a model said, as every database can store it."""

from __future__ import annotations

import re
from typing import Any

_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")


def storable(value: Any) -> Any:
    """A text, list or object with halves of surrogate pairs and NULs replaced: no database takes them as text."""
    if isinstance(value, str):
        plain = value.isascii() and "\x00" not in value
        return value if plain else _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
