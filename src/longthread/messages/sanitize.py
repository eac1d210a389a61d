"""Text that every database can store."""

from __future__ import annotations

import re
from typing import Any

_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")


def storable(value: Any) -> Any:
    """Replace lone surrogates and NULs in a text, list or object: no database stores them as text."""
    if isinstance(value, str):
        plain = value.isascii() and "\x00" not in value
        return value if plain else _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
