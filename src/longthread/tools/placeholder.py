"""Placeholders `{{name}}` in templates of tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import ToolInvalid
from longthread.tools.analysis.schema import close_names

_PLACE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}", re.ASCII)
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})


@dataclass(frozen=True)
class Placeholder:
    """The place of an argument."""

    name: str


TemplateParts = tuple[str | Placeholder, ...]
"""The texts and placeholders of a template, without empty texts."""


def parts_of(text: str, properties: Mapping[str, Any]) -> TemplateParts:
    """Parses a template. Raises ToolInvalid: a placeholder is malformed or unknown."""
    parts: list[str | Placeholder] = []
    for number, part in enumerate(_PLACE.split(text)):
        if number % 2:
            parts.append(_make_placeholder(part, properties))
        elif "{{" in part or (number and part.startswith("}")):
            begun = part[max(0, part.find("{{")) :][:40]
            raise ToolInvalid(problem=f"{begun!r} is not the place of an argument. Write {{{{name}}}}.")
        elif part:
            parts.append(part)
    return tuple(parts)


def names_in(text: str) -> list[str]:
    """Return the names of the placeholders in a text, each once, in their order."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def types_of(schema: Any) -> frozenset[str]:
    """The JSON types that a schema allows; empty if unknown."""
    if not isinstance(schema, Mapping):
        return frozenset()
    if "type" in schema:
        named = schema["type"]
        return frozenset(named) if isinstance(named, list) else frozenset({str(named)})
    if "const" in schema:
        return frozenset({_type(schema["const"])})
    if "enum" in schema:
        return frozenset(map(_type, schema["enum"]))
    given = [types_of(one) for key in ("anyOf", "oneOf") for one in schema.get(key, ())]
    return frozenset().union(*given) if all(given) else frozenset()


def is_scalar(types: frozenset[str]) -> bool:
    """Whether all types are scalar."""
    return bool(types) and types <= _SCALARS


def _make_placeholder(name: str, properties: Mapping[str, Any]) -> Placeholder:
    if name not in properties:
        close = close_names(name, list(properties)) or list(properties)[:8]
        hint = f"The nearest are: {', '.join(close)}." if close else "The schema has none."
        raise ToolInvalid(problem=f"{{{{{name}}}}} is the place of an argument that the schema does not have. {hint}")
    return Placeholder(name)


def _type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
