"""Paths into JSON, as LangGraph's filters write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value_at(value: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path with dots; None if there is none."""
    at: Any = value
    for part in path.split("."):
        at = at.get(part) if isinstance(at, Mapping) else None
    return at
