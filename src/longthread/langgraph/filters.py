"""LangGraph's filters: of checkpoints by their metadata, and of items by their values. Pure.

A listing's `filter` finds what LangGraph's own savers find. PostgresSaver looks for JSON that contains the filter, and
SqliteSaver for values at keys, which may be paths with dots.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from longthread.store.checkpoints import USUAL, MetadataSearch

_MOST_ALTERNATIVES = 16
"""Alternatives that an index is asked for."""
_PLAIN = re.compile(r"[\w .:@+-]+", re.ASCII)
"""Texts that each encoder of JSON writes alike."""
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def value_at(value: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path with dots; None if there is none."""
    at: Any = value
    for part in path.split("."):
        at = at.get(part) if isinstance(at, Mapping) else None
    return at


@dataclass(frozen=True)
class MetadataFilter:
    """The filter as JSON: keys and the values that are wanted there."""

    wanted: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> MetadataFilter:
        """Read a filter. What JSON does not know is its text, as in stored metadata."""
        return cls(json.loads(json.dumps(dict(given), default=str)))

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return all(_fits(metadata, key, wanted) for key, wanted in self.wanted.items())

    @cached_property
    def search(self) -> MetadataSearch:
        """What the store is asked for: all that matches, and perhaps more."""
        texts = [text for wanted in self.wanted.values() for text in _texts(wanted)]
        step = self.wanted.get("step")
        usual = self.matches({**USUAL, "step": step if isinstance(step, int | float) else 0})
        return MetadataSearch(self._alternatives(), max(texts, key=len, default=""), usual)

    def _alternatives(self) -> Sequence[str]:
        """Return JSON objects; each match contains at least one of them."""
        each = [_spellings(key, wanted) for key, wanted in self.wanted.items() if _is_sought(key, wanted)]
        while math.prod(map(len, each)) > _MOST_ALTERNATIVES:
            each.remove(max(each, key=len))
        return [json.dumps(_merge_objects(chosen), ensure_ascii=False) for chosen in product(*each)]


def _fits(metadata: Mapping[str, Any], key: str, wanted: Any) -> bool:
    if key in metadata and _contains(metadata[key], wanted):
        return True
    there = value_at(metadata, key)
    return there is None if wanted is None else _contains(there, wanted) or _is_number(there, wanted)


def _contains(value: Any, wanted: Any) -> bool:
    """Whether JSON contains other JSON: an object these fields, a list these items in any order."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            key in value and _contains(value[key], each) for key, each in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(_contains(item, each) for item in value) for each in wanted)
    return isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)


def _is_number(value: Any, wanted: Any) -> bool:
    """Whether these are equal as numbers: to SQLite, `true` is 1."""
    return isinstance(value, int | float) and isinstance(wanted, int | float) and value == wanted


def _texts(wanted: Any) -> Iterator[str]:
    """Yield the texts of a value, as they stand in JSON."""
    if isinstance(wanted, str):
        if _PLAIN.fullmatch(wanted):
            yield wanted
    elif isinstance(wanted, dict | list):
        for each in wanted.values() if isinstance(wanted, dict) else wanted:
            yield from _texts(each)


def _is_sought(key: str, wanted: Any) -> bool:
    """Whether an index may be asked: not for what is missing, nor for what PostgreSQL's JSON cannot hold."""
    text = json.dumps({key: wanted})
    return wanted is not None and not any(sign in text for sign in ("\\u0000", "\\ud", "Infinity", "NaN", "e+"))


def _spellings(key: str, wanted: Any) -> list[dict[str, Any]]:
    """Return objects for a value at a key or path. Metadata with that value there contains one of them."""
    values = [wanted]
    if isinstance(wanted, int | float) and wanted in (0, 1):
        values = [int(wanted), bool(wanted)]
    found: list[dict[str, Any]] = [{key: value} for value in values]
    if "." in key:
        for value in values:
            for part in reversed(key.split(".")):
                value = {part: value}
            found.append(value)
    return found


def _merge_objects(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge objects as far as their fields do not differ."""
    merged: dict[str, Any] = {}
    for each in objects:
        for key, value in each.items():
            there = merged.get(key)
            if isinstance(there, dict) and isinstance(value, dict):
                merged[key] = _merge_objects([there, value])
            else:
                merged.setdefault(key, value)
    return merged


def matches_filter(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
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
