"""Tools by their type: what a definition may say, and the tool that it makes."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread.errors import ToolInvalid
from longthread.model.catalog import ToolDefinition
from longthread.tools.analysis.source import Source
from longthread.tools.code import Interpreters
from longthread.tools.definition import DefinedTool
from longthread.tools.mcp import Servers
from longthread.tools.tool import Observation, Tool

SourcesByName = Callable[[str], Awaitable[Source]]
"""Opens a source of the catalog by its name; whoever gives this closes it."""
Check = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Raises ToolInvalid where an implementation does not do, for these parameters."""


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What tools are built with: where their sources come from, what runs their code, and the MCP servers."""

    sources: SourcesByName
    interpreters: Interpreters
    servers: Servers


Build = Callable[[DefinedTool, ToolParts], Awaitable[Sequence[Tool]]]


@dataclass(frozen=True, slots=True)
class _Type:
    check: Check
    build: Build


def check(type_: str, name: str, implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Make sure that a tool can be built. One of a type that this Longthread does not run may be kept all the same.

    Raises:
        ToolInvalid: it cannot; the message names the field.
    """
    if type_ in _TYPES:
        _TYPES[type_].check(implementation, parameters)


async def build(definition: ToolDefinition, parts: ToolParts, defaults: Mapping[str, Any] | None = None) -> list[Tool]:
    """The tools that a definition makes: one, or those that an MCP server offers.

    Args:
        defaults: arguments that a call need not give. Of several tools, each takes those that it has.

    Raises:
        ToolInvalid: it cannot be used.
    """
    if definition.type not in _TYPES:
        raise ToolInvalid(tool=definition.name, problem=f"tools of type {definition.type} are not run here.")
    try:
        tools = await _TYPES[definition.type].build(_defined(definition), parts)
    except ToolInvalid as error:
        raise ToolInvalid(tool=definition.name, problem=error.problem, known=error.known) from error
    approve = bool(definition.implementation.get("approve"))
    category = _CATEGORIES.get(definition.type, definition.type)
    tools = [replace(tool, approve=approve, definition=definition.id, category=category) for tool in tools]
    if len(tools) == 1:
        return [with_defaults(tool, defaults or {}) for tool in tools]
    return [with_defaults(tool, _own(tool, defaults or {})) for tool in tools]


_CATEGORIES = {"query": "database"}
"""What conversations say that they used, where it is not the type."""


def _defined(tool: ToolDefinition) -> DefinedTool:
    description = tool.schema.get("description") or tool.description
    return DefinedTool(tool.function, description, tool.parameters, tool.implementation)


def _own(tool: Tool, defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in defaults.items() if name in tool.parameters.get("properties", {})}


def with_defaults(tool: Tool, defaults: Mapping[str, Any]) -> Tool:
    """A tool whose model is told that it need not give these arguments, and what they are then."""
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


def _check(type_: str) -> Check:
    def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        importlib.import_module(f"longthread.tools.{type_}.tool").check(implementation, parameters)

    return check


async def _api(definition: DefinedTool, _: ToolParts) -> list[Tool]:
    from longthread.tools.api.tool import build

    return [build(definition)]


async def _code(definition: DefinedTool, workshop: ToolParts) -> list[Tool]:
    from longthread.tools.code.tool import build

    return [build(definition, workshop.interpreters)]


async def _query(definition: DefinedTool, workshop: ToolParts) -> list[Tool]:
    from longthread.tools.query.tool import build

    return [build(definition, workshop.sources)]


async def _mcp(definition: DefinedTool, workshop: ToolParts) -> list[Tool]:
    from longthread.tools.mcp.tool import build

    return await build(definition, workshop.servers)


_TYPES: Mapping[str, _Type] = {
    "api": _Type(_check("api"), _api),
    "code": _Type(_check("code"), _code),
    "query": _Type(_check("query"), _query),
    "mcp": _Type(_check("mcp"), _mcp),
}
