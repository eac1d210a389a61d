"""A value of a database as a JSON value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any


def json_cell(value: Any, limit: int) -> tuple[Any, bool]:
    """`value` as JSON can hold it, with text cut to `limit` characters, and whether something was cut."""
    safe = _safe(value, limit)
    if isinstance(safe, str) and len(safe) > limit:
        return cut(safe, limit), True
    if isinstance(safe, list | dict):
        text = json.dumps(safe, ensure_ascii=False)
        if len(text) > limit:
            return cut(text, limit), True
    return safe, False


def cut(text: str, limit: int) -> str:
    """The first `limit` characters, saying how many there were."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _safe(value: Any, limit: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return _valid(value) if len(value) <= limit else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _safe(item, limit) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(item, limit) for item in value]
    return str(value)


def _valid(text: str) -> str:
    """Text that UTF-8 can carry: a lone surrogate, which some drivers let through, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _number(value: Decimal) -> int | float | str | None:
    """A decimal as a number where a JSON number says exactly the same, else as text."""
    if not value.is_finite():
        return None
    if value == value.to_integral_value() and abs(value) < 10**15:
        return int(value)
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else str(value)
