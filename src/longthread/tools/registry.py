"""Tools by their type: what a definition may say, and the tool that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from longthread.errors import ToolInvalid

Check = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Raises ToolInvalid where an implementation does not do, for these parameters."""


def check(type_: str, name: str, implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Make sure that a tool can be built.

    Raises:
        ToolInvalid: it cannot; the message names the field.
    """
    found = _CHECKS.get(type_)
    if found is None:
        raise ToolInvalid(tool=name, problem=f"there are no tools of type {type_}.")
    found(implementation, parameters)


def _needs(*fields: str) -> Check:
    def check_(implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        for field in fields:
            value = implementation.get(field)
            if not isinstance(value, str) or not value.strip():
                raise ToolInvalid(problem=f"`{field}` is missing: it must be a text.")

    return check_


_CHECKS: Mapping[str, Check] = {
    "api": _needs("endpoint"),
    "code": _needs("code"),
    "query": _needs("database", "sql_template"),
    "mcp": _needs(),
}
