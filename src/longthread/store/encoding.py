"""JSON in columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def dump(value: Any) -> str:
    """Return a value as JSON. Keys keep their order, mappings become objects, other types their text."""
    return _ENCODER.encode(value)


def _told(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_told)
