"""Reads the definitions of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import ToolInvalid


@dataclass(frozen=True, slots=True)
class DefinedTool:
    """A definition of document 002, under the name by which a model calls the tool. `parameters` is a JSON Schema."""

    name: str
    description: str | None
    parameters: Mapping[str, Any]
    implementation: Mapping[str, Any]


class ImplementationFields:
    """Reads and checks the fields of an implementation. Raises ToolInvalid, which names the field."""

    def __init__(self, implementation: Mapping[str, Any], kind: str, known: Iterable[str]) -> None:
        self._fields = implementation
        allowed = {"type", "approve", *known}
        unknown = sorted(str(name) for name in implementation if name not in allowed)
        if unknown:
            raise ToolInvalid(
                problem=f"`{unknown[0]}` is no field of a tool of type {kind}: {', '.join(sorted(allowed))}."
            )
        if implementation.get("type", kind) != kind:
            raise ToolInvalid(problem=f"its `type` is not {kind}.")
        self.truth("approve")

    def text(self, name: str, what: str, default: str | None = None, longest: int = 10_000) -> str:
        """A text that is not empty."""
        value = self._fields.get(name, default)
        if not isinstance(value, str) or not value.strip():
            raise ToolInvalid(problem=f"`{name}` is missing: {what}.")
        if len(value) > longest:
            raise ToolInvalid(problem=f"`{name}` has more than {longest} characters.")
        return value

    def truth(self, name: str) -> bool:
        """True or false, by default false."""
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise ToolInvalid(problem=f"`{name}` is neither true nor false.")
        return value

    def whole(self, name: str, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        value = self._fields.get(name, default)
        if type(value) is not int or not 1 <= value <= most:
            raise ToolInvalid(problem=f"`{name}` is not a whole number from 1 to {most}.")
        return value

    def seconds(self, name: str, default: float, most: float) -> float:
        """A time above 0."""
        value = self._fields.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
            raise ToolInvalid(problem=f"`{name}` is not a number of seconds above 0 and at most {most:g}.")
        return float(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, by default none."""
        value = self._fields.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one.strip() for one in value):
            raise ToolInvalid(problem=f"`{name}` is not a list of texts.")
        return tuple(value)

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object of texts, by default empty."""
        value = self._fields.get(name, {})
        if not isinstance(value, Mapping) or not all(isinstance(one, str) for pair in value.items() for one in pair):
            raise ToolInvalid(problem=f"`{name}` is not an object of texts.")
        return dict(value)
