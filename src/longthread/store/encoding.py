"""JSON as columns hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def dump(value: Any) -> str:
    """A value as JSON: keys stay in their order, which people and models read it in.

    Every mapping is an object. What JSON cannot say is its text.
    """
    return _ENCODER.encode(value)


def _told(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_told)
