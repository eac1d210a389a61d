"""What a type of tools is, and where it is found: definitions are checked and shown by it, and tools built."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from longthread.errors import LongthreadError, PluginFailed, ToolInvalid
from longthread.errors.base import convert_errors
from longthread.model.catalog import ToolDefinition
from longthread.plugins import describe_error, expect_fields, plugins
from longthread.tools.tool import DefinedTool, Observation, Tool

if TYPE_CHECKING:
    from longthread.tools.analysis.source import Source
    from longthread.tools.mcp import Servers
    from longthread.tools.types.code import Interpreters

SourcesByName = Callable[[str], Awaitable["Source"]]
"""Opens a source of the catalog by its name; the one who provides it closes the source. Raises SourceError."""
Power = Literal["code", "program", "secret", "private"]
"""What a tool can do with the rights of the server's user: run code, start a program, send a secret to a server, or ask
addresses inside the network."""
FieldInput = Literal["text", "code", "sql", "choice", "source"]
"""How a form shows a field: as a line of text or code, as SQL, as a choice, or as the sources of the catalog."""


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What tools need: sources, interpreters, MCP servers."""

    sources: SourcesByName
    interpreters: Interpreters
    servers: Servers


class Bilingual(NamedTuple):
    """A text for people, in both languages."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of an implementation that a form shows. A source is required. `none` is what an empty choice says."""

    name: str
    input: FieldInput
    title: Bilingual
    hint: Bilingual | None = None
    options: tuple[str, ...] = ()
    none: Bilingual | None = None

    def __post_init__(self) -> None:
        """Raise TypeError for a field of another type, and ValueError for an unknown `input`."""
        texts = {"title": Bilingual, "hint": Bilingual | None, "none": Bilingual | None}
        expect_fields(self, {"name": str, "input": str, "options": tuple, **texts})
        _expect_texts(self.title, self.hint, self.none)
        if self.input not in get_args(FieldInput):
            raise ValueError(f"a field has the input {self.input}: it must be one of {', '.join(get_args(FieldInput))}")
        for each in self.options:
            if not isinstance(each, str):
                raise TypeError(f"an option of a field is of the type {type(each).__name__}: all options must be str")


def _expect_texts(*words: Bilingual | None) -> None:
    for each in words:
        if each is not None:
            expect_fields(each, {"en": str, "zh": str})


def find_power(implementation: Mapping[str, Any]) -> Power | None:
    """Return what a tool that asks a server or a source can do; None: nothing."""
    if implementation.get("secrets") or "${" in json.dumps(implementation, default=str):
        return "secret"
    return "private" if implementation.get("allow_private") else None


@dataclass(frozen=True, slots=True)
class ToolType:
    """A type of tools, in a module of `tools/types` that has its name.

    `check` gets an implementation and the parameters of its schema, and raises ToolInvalid. `build` makes the tools of
    a definition. `power` says what a tool of an implementation can do that only the command line may define.

    `about` says in a form what it does; a type without it is made on the command line alone. `fields` are shown there,
    and `more` gives examples of the other fields. `category` is the one of its threads, by default its name. One that
    `serves_tools` may have several for a definition, whose schemas it knows itself.
    """

    title: Bilingual
    check: Callable[[Mapping[str, Any], Mapping[str, Any]], None]
    build: Callable[[DefinedTool, ToolParts], Awaitable[Sequence[Tool]]]
    power: Callable[[Mapping[str, Any]], Power | None] = find_power
    about: Bilingual | None = None
    fields: tuple[FormField, ...] = ()
    more: Bilingual | None = None
    category: str = ""
    serves_tools: bool = False

    def __post_init__(self) -> None:
        """Raise TypeError for a field of another type: its plugin is then named, and the type left out."""
        texts = {"title": Bilingual, "about": Bilingual | None, "more": Bilingual | None}
        work = {"check": Callable, "build": Callable, "power": Callable}
        expect_fields(self, {**texts, **work, "fields": tuple, "category": str, "serves_tools": bool})
        _expect_texts(self.title, self.about, self.more)
        for each in self.fields:
            if not isinstance(each, FormField):
                raise TypeError(f"a field of its form is of the type {type(each).__name__}: it must be FormField")


_logger = logging.getLogger(__name__)
_TOOL_FIELDS = {"name": str, "description": str, "parameters": Mapping, "call": Callable}
"""What a type builds must have."""


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


def type_errors(name: str, work: str, *, keep: type[LongthreadError] = ToolInvalid) -> AbstractContextManager[None]:
    """Raise ToolInvalid for whatever the code of a type raises, which may be a plugin's: the other tools are checked,
    listed and built. Errors of the class `keep` pass. `work` says what the type cannot do."""

    def convert(error: Exception) -> ToolInvalid:
        return ToolInvalid(problem=f"its type {name} cannot {work}: {describe_error(error)}")

    return convert_errors(convert, keep=keep)


async def build(definition: ToolDefinition, parts: ToolParts, defaults: Mapping[str, Any] | None = None) -> list[Tool]:
    """Builds the tools of a definition: one, or those of an MCP server. `defaults` are optional arguments; of several
    tools each takes its own. Raises ToolInvalid."""
    tool_type = find_type(definition.type)
    if tool_type is None:
        raise ToolInvalid(tool=definition.name, problem=f"tools of type {definition.type} are not run here.")
    try:
        description = definition.schema.get("description") or definition.description
        defined = DefinedTool(definition.function, description, definition.parameters, definition.implementation)
        approve = bool(definition.implementation.get("approve"))
        category = tool_type.category or definition.type
        with type_errors(definition.type, "build it", keep=LongthreadError):
            built = await tool_type.build(defined, parts)
            for tool in built:
                expect_fields(tool, _TOOL_FIELDS)
            tools = [replace(tool, approve=approve, definition=definition.id, category=category) for tool in built]
    except ToolInvalid as error:
        raise ToolInvalid(tool=definition.name, problem=error.problem, known=error.known) from error
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
