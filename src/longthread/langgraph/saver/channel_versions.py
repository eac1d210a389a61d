"""Versions of channels, which count up."""

from __future__ import annotations

import random
from typing import Any


def next_version(current: Any) -> Any:
    """Return the next version, of the same kind: a number, or a text as LangGraph's own savers write it."""
    if current is None:
        return 1
    if not isinstance(current, str):
        return current + 1
    count, point, _ = current.partition(".")
    counted = f"{int(count) + 1:0{len(count)}}"
    return f"{counted}.{random.random():016}" if point else counted
