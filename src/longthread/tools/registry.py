"""Tools by their type: what a definition may say, and the tool that it makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from longthread.errors import ToolInvalid
from longthread.model.catalog import ToolDefinition
from longthread.tools import api, code, query
from longthread.tools.analysis.source import Source
from longthread.tools.definition import Definition
from longthread.tools.tool import Observation, Tool

Sources = Callable[[str], Awaitable[Source]]
"""Opens a source of the catalog by its name; whoever gives this closes it."""
Check = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Raises ToolInvalid where an implementation does not do, for these parameters."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What tools are built with: where their sources come from, and what runs their code."""

    sources: Sources
    interpreters: code.Interpreters


Build = Callable[[Definition, Workshop], Tool]


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


def build(definition: ToolDefinition, workshop: Workshop, defaults: Mapping[str, Any] | None = None) -> Tool:
    """The tool that a definition makes.

    Args:
        defaults: arguments that a call need not give.

    Raises:
        ToolInvalid: it cannot be used.
    """
    if definition.type not in _TYPES:
        raise ToolInvalid(tool=definition.name, problem=f"tools of type {definition.type} are not run here.")
    if definition.implementation.get("approve"):
        problem = "it says `approve`, and nobody can be asked to approve a call here."
        raise ToolInvalid(tool=definition.name, problem=problem)
    try:
        tool = _TYPES[definition.type].build(_Function(definition), workshop)
    except ToolInvalid as error:
        raise ToolInvalid(tool=definition.name, problem=error.details.get("problem", str(error))) from error
    return with_defaults(tool, defaults) if defaults else tool


@dataclass(frozen=True, slots=True)
class _Function:
    """A definition as the types of tools read it: under the name by which a model calls it."""

    of: ToolDefinition

    @property
    def name(self) -> str:
        return self.of.function

    @property
    def description(self) -> str | None:
        return self.of.schema.get("description") or self.of.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.of.parameters

    @property
    def implementation(self) -> Mapping[str, Any]:
        return self.of.implementation


def with_defaults(tool: Tool, defaults: Mapping[str, Any]) -> Tool:
    """A tool whose model is told that it need not give these arguments, and what they are then."""
    properties = dict(tool.parameters.get("properties", {}))
    for name, value in defaults.items():
        about = properties.get(name)
        properties[name] = {**(about if isinstance(about, Mapping) else {}), "default": value}
    required = [name for name in tool.parameters.get("required", ()) if name not in defaults]

    async def call(arguments: Mapping[str, Any]) -> Observation:
        return await tool.call({**defaults, **arguments})

    return replace(tool, parameters={**tool.parameters, "properties": properties, "required": required}, call=call)


_TYPES: Mapping[str, _Type] = {
    "api": _Type(api.check, lambda definition, _: api.build(definition)),
    "code": _Type(code.check, lambda definition, workshop: code.build(definition, workshop.interpreters)),
    "query": _Type(query.check, lambda definition, workshop: query.build(definition, workshop.sources)),
}
