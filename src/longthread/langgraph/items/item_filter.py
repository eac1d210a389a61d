from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from longthread.langgraph.json_paths import value_at

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether each filtered field has the wanted value.

    Raises:
        ValueError: an operator is none of $eq, $ne, $gt, $gte, $lt and $lte.
    """
    return all(_agrees(_at(value, name), each) for name, each in (wanted or {}).items())


def _at(value: Mapping[str, Any], name: str) -> Any:
    """Return the field of this name, else the value at this path with dots."""
    if name in value or "." not in name:
        return value.get(name)
    return value_at(value, name)


def _agrees(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_holds(value, name, each) for name, each in wanted.items())
        return isinstance(value, Mapping) and all(_agrees(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        alike = isinstance(value, list | tuple) and len(value) == len(wanted)
        return alike and all(_agrees(one, other) for one, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _holds(value: Any, name: str, wanted: Any) -> bool:
    if name == "$eq":
        return bool(value == wanted)
    if name == "$ne":
        return bool(value != wanted)
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    one, other = _number(value), _number(wanted)
    if one is not None and other is not None:
        return _ORDERS[name](one, other)
    # What is not there, or no number, is neither above nor below; texts, such as dates, are compared as such.
    return isinstance(value, str) and isinstance(wanted, str) and _ORDERS[name](value, wanted)


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | float):
        return value  # a large one is no float, or another one
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
