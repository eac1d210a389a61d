"""A tool that clients are offered: its schema and its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

ReportProgress = Callable[[str], Awaitable[None]]
"""Reports a call's progress to the client."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A call's result: data of the tool's `output` schema, and the same as text."""

    data: Mapping[str, Any]
    text: str
    failed: bool = False


ToolHandler = Callable[[Mapping[str, Any], ReportProgress], Coroutine[Any, Any, ToolAnswer]]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool. `call` gets arguments that fit `parameters`, defaults filled in; it raises LongthreadError.

    The last four fields are the protocol's hints: read-only, destructive, idempotent and open-world.
    """

    name: str
    title: str
    description: str
    parameters: Mapping[str, Any]
    output: Mapping[str, Any]
    call: ToolHandler = field(repr=False)
    reads: bool = True
    destroys: bool = False
    same_again: bool = True
    reaches_out: bool = False


def schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """The JSON Schema of an object."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def text(description: str, **more: Any) -> dict[str, Any]:
    """The schema of a text."""
    return {"type": "string", "description": description, **more}


def whole(description: str, *, least: int, most: int, default: int | None = None) -> dict[str, Any]:
    """The schema of a whole number."""
    number = {"type": "integer", "minimum": least, "maximum": most, "description": description}
    return number if default is None else number | {"default": default}


def each(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """The schema of a list of objects."""
    return {"type": "array", "items": schema(properties, *required)}


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
TRUTH = {"type": "boolean"}
THREAD = text("The id of a conversation, as list_threads tells it.", minLength=1, maxLength=1000)
