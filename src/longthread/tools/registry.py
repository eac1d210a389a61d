"""Finds the types of tools, and builds tools by their type."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from longthread.errors import PluginFailed, ToolInvalid
from longthread.model.catalog import ToolDefinition
from longthread.plugins import plugins
from longthread.tools.tool import DefinedTool, Observation, Tool
from longthread.tools.tool_type import ToolParts, ToolType

_logger = logging.getLogger(__name__)


def list_types() -> list[str]:
    """Return the names of the types of tools: those of the core and of plugins."""
    return [*plugins().core["tool_types"], *plugins().list_added("tool_types")]


def find_type(name: str) -> ToolType | None:
    """Return a type by its name; None: there is none, or its plugin fails. It is loaded now: its libraries take time,
    and most agents have no tool of most types."""
    offer = plugins().find("tool_types", name)
    if offer is None:
        return None
    try:
        tool_type: ToolType = offer.load()
    except PluginFailed as error:
        _logger.warning("Tools of type %s cannot be used. %s", name, error)
        return None
    return tool_type


async def build(definition: ToolDefinition, parts: ToolParts, defaults: Mapping[str, Any] | None = None) -> list[Tool]:
    """Builds the tools of a definition: one, or those of an MCP server. `defaults` are optional arguments; of several
    tools each takes its own. Raises ToolInvalid."""
    tool_type = find_type(definition.type)
    if tool_type is None:
        raise ToolInvalid(tool=definition.name, problem=f"tools of type {definition.type} are not run here.")
    try:
        description = definition.schema.get("description") or definition.description
        defined = DefinedTool(definition.function, description, definition.parameters, definition.implementation)
        tools = await tool_type.build(defined, parts)
    except ToolInvalid as error:
        raise ToolInvalid(tool=definition.name, problem=error.problem, known=error.known) from error
    approve = bool(definition.implementation.get("approve"))
    category = tool_type.category or definition.type
    tools = [replace(tool, approve=approve, definition=definition.id, category=category) for tool in tools]
    given = defaults or {}
    if len(tools) == 1:
        return [with_defaults(tools[0], given)]
    taken = [tool.parameters.get("properties", {}).keys() & given.keys() for tool in tools]
    return [
        with_defaults(tool, {name: given[name] for name in names}) for tool, names in zip(tools, taken, strict=True)
    ]


def with_defaults(tool: Tool, defaults: Mapping[str, Any]) -> Tool:
    """Makes arguments optional, with these defaults."""
    if not defaults:
        return tool
    properties = dict(tool.parameters.get("properties", {}))
    for name, value in defaults.items():
        about = properties.get(name)
        properties[name] = {**(about if isinstance(about, Mapping) else {}), "default": value}
    required = [name for name in tool.parameters.get("required", ()) if name not in defaults]

    async def call(arguments: Mapping[str, Any]) -> Observation:
        return await tool.call({**defaults, **arguments})

    return replace(tool, parameters={**tool.parameters, "properties": properties, "required": required}, call=call)
