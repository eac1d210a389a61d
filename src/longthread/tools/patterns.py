"""Matches the patterns of JSON Schemas in linear time. Python's engine may take hours for one line (`^(a+)+$`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema


def matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern. One with look-around needs Python's engine."""
    linear = _linear(pattern)
    return linear.isinstance_python(text) if linear is not None else re.search(pattern, text) is not None


def harmless(schema: Any) -> Any:
    """Removes patterns from a server's schema that need Python's engine. The server checks them itself."""
    if isinstance(schema, list):
        return [harmless(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    checked = {
        key: {name: harmless(one) for name, one in value.items()}
        if key in _NAMING and isinstance(value, Mapping)
        else value
        if key in _VALUES
        else harmless(value)
        for key, value in schema.items()
        if not (key == "pattern" and isinstance(value, str) and _linear(value) is None)
    }
    if isinstance(schema.get("patternProperties"), Mapping):  # other keywords depend on it
        dropped = ("patternProperties", "unevaluatedProperties")
        return {key: value for key, value in checked.items() if key not in dropped} | {"additionalProperties": True}
    return checked


_NAMING = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose objects have free keys."""

_VALUES = frozenset({"enum", "const", "default", "examples"})


@lru_cache(maxsize=256)
def _linear(pattern: str) -> SchemaValidator | None:
    """A linear-time matcher; None if there is none of the same meaning."""
    if _has_set(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True))
    except SchemaError:
        return None


def _has_set(pattern: str) -> bool:
    """Whether a character class has what other engines read as a nested class or operator."""
    inside = False
    for found in re.finditer(r"\\.|\[\^?\]?|\]|&&|--|~~", pattern, re.DOTALL):
        mark = found[0]
        if mark == "]":
            inside = False
        elif inside and not mark.startswith("\\"):
            return True
        elif mark.startswith("["):
            inside = True
    return False
