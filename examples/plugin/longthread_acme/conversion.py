"""A type of tools: `type: conversion` in the catalog, which converts an amount by a factor."""

from collections.abc import Mapping
from typing import Any

from longthread.errors import ToolInvalid
from longthread.tools.arguments import Arguments
from longthread.tools.tool import DefinedTool, Tool, as_observation
from longthread.tools.tool_type import Bilingual, FormField, ToolParts, ToolType


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Check a definition when it is applied. What is raised names the field, and what it should be."""
    if not isinstance(implementation.get("unit"), str):
        raise ToolInvalid(problem="`unit` is missing: the name of what comes out.")
    read_factor(implementation)
    if "amount" not in parameters.get("properties", {}):
        raise ToolInvalid(problem="its schema has no parameter `amount`.")


def read_factor(implementation: Mapping[str, Any]) -> float:
    try:
        return float(implementation["factor"])
    except (KeyError, TypeError, ValueError):
        raise ToolInvalid(problem="`factor` is no number.") from None


async def build(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    """Make the tool of a definition when a run begins."""
    factor, unit = read_factor(definition.implementation), definition.implementation["unit"]
    arguments = Arguments(definition.parameters, tool=definition.name)

    async def convert(given: Mapping[str, Any]) -> Mapping[str, Any]:
        amount = arguments.validate(given)["amount"]
        return {"amount": round(amount * factor, 2), "unit": unit}

    # It changes nothing outside, so a call that a crash broke off may be made again.
    call = as_observation(convert)
    return [Tool(definition.name, definition.description or "", definition.parameters, call, retry_safe=True)]


TYPE = ToolType(
    Bilingual("Conversion", "换算"),
    check,
    build,
    about=Bilingual("Converts an amount by a factor.", "按系数换算数量。"),
    fields=(
        FormField("factor", "text", Bilingual("Factor", "系数")),
        FormField("unit", "text", Bilingual("Unit of the result", "结果的单位")),
    ),
)
