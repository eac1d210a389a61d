"""Regular expressions of JSON Schemas, matched in a time that grows with the text alone.

Python's own engine may take hours for a line (`^(a+)+$`), in which nothing else goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text. One that looks ahead or back needs Python's engine."""
    linear = _linear(pattern)
    return linear.isinstance_python(text) if linear is not None else re.search(pattern, text) is not None


def harmless(schema: Any) -> Any:
    """A stranger's schema without the patterns that only Python's engine could match: whose they are, judges them."""
    if isinstance(schema, list):
        return [harmless(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {
        key: {name: harmless(one) for name, one in value.items()}
        if key in _NAMING and isinstance(value, Mapping)
        else value
        if key in _VALUES
        else harmless(value)
        for key, value in schema.items()
        if not (key == "pattern" and isinstance(value, str) and _linear(value) is None)
    }
    if isinstance(schema.get("patternProperties"), Mapping):  # others look at it too
        dropped = ("patternProperties", "unevaluatedProperties")
        return {key: value for key, value in kept.items() if key not in dropped} | {"additionalProperties": True}
    return kept


_NAMING = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords with objects in which the keys are anybody's."""

_VALUES = frozenset({"enum", "const", "default", "examples"})


@lru_cache(maxsize=256)
def _linear(pattern: str) -> SchemaValidator | None:
    """What matches it in linear time; None where that cannot be done, or would mean something else."""
    if _has_set(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True))
    except SchemaError:
        return None


def _has_set(pattern: str) -> bool:
    """Whether a class of characters holds what Python reads as characters, and others as a class or its operator."""
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
