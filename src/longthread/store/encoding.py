"""JSON in columns, and patterns for texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def dump(value: Any) -> str:
    """Return a value as JSON. Keys keep their order, mappings become objects, other types their text."""
    return _ENCODER.encode(value)


def like_pattern(text: str) -> str:
    """Return the pattern of LIKE for what contains a text, with the escape character `\\`."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _told(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_told)
