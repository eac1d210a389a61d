"""What a type of tools is: how its definitions are checked and shown as a form, and how its tools are built."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from longthread.tools.tool import DefinedTool, Tool

if TYPE_CHECKING:
    from longthread.tools.analysis.source import Source
    from longthread.tools.code import Interpreters
    from longthread.tools.mcp import Servers

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
