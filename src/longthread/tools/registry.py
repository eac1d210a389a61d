"""Checks and builds tools by their type."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread.errors import ToolInvalid
from longthread.model.catalog import ToolDefinition
from longthread.tools.analysis.source import Source
from longthread.tools.code import Interpreters
from longthread.tools.mcp import Servers
from longthread.tools.tool import DefinedTool, Observation, Tool

SourcesByName = Callable[[str], Awaitable[Source]]
"""Opens a source of the catalog by its name; the one who provides it closes the source."""


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What tools need: sources, interpreters, MCP servers."""

    sources: SourcesByName
    interpreters: Interpreters
    servers: Servers


Build = Callable[[DefinedTool, ToolParts], Awaitable[Sequence[Tool]]]


def check(type_: str, name: str, implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Checks a tool; an unknown type is accepted. Raises ToolInvalid."""
    if type_ in _BUILDS:
        importlib.import_module(_MODULES[type_]).check(implementation, parameters)


async def build(definition: ToolDefinition, parts: ToolParts, defaults: Mapping[str, Any] | None = None) -> list[Tool]:
    """Builds the tools of a definition: one, or those of an MCP server. `defaults` are optional arguments; of several
    tools each takes its own. Raises ToolInvalid."""
    if definition.type not in _BUILDS:
        raise ToolInvalid(tool=definition.name, problem=f"tools of type {definition.type} are not run here.")
    try:
        description = definition.schema.get("description") or definition.description
        defined = DefinedTool(definition.function, description, definition.parameters, definition.implementation)
        tools = await _BUILDS[definition.type](defined, parts)
    except ToolInvalid as error:
        raise ToolInvalid(tool=definition.name, problem=error.problem, known=error.known) from error
    approve = bool(definition.implementation.get("approve"))
    category = _CATEGORIES.get(definition.type, definition.type)
    tools = [replace(tool, approve=approve, definition=definition.id, category=category) for tool in tools]
    given = defaults or {}
    if len(tools) == 1:
        return [with_defaults(tools[0], given)]
    taken = [tool.parameters.get("properties", {}).keys() & given.keys() for tool in tools]
    return [
        with_defaults(tool, {name: given[name] for name in names}) for tool, names in zip(tools, taken, strict=True)
    ]


_CATEGORIES = {"query": "database"}
"""The category of a thread, where it is not the type."""


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


# A type is loaded when a tool is of it: its libraries take time, and most agents have none of most types.


async def _api(definition: DefinedTool, _: ToolParts) -> list[Tool]:
    from longthread.tools.types.api import build

    return [build(definition)]


async def _code(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    from longthread.tools.types.code import build

    return [build(definition, parts.interpreters)]


async def _query(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    from longthread.tools.types.query import build

    return [build(definition, parts.sources)]


async def _mcp(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    from longthread.tools.types.mcp import build

    return await build(definition, parts.servers)


_BUILDS: Mapping[str, Build] = {"api": _api, "code": _code, "query": _query, "mcp": _mcp}
_MODULES = {
    "api": "longthread.tools.types.api",
    "code": "longthread.tools.types.code",
    "query": "longthread.tools.types.query",
    "mcp": "longthread.tools.types.mcp",
}
"""Where the tools of a type are checked."""
