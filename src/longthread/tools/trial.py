"""Tries a tool: builds it as for a run, without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from longthread.access.grants import EVERYTHING, GrantedRights
from longthread.errors import DefinitionNotFound, InvalidInput, ToolInvalid
from longthread.model.catalog import DATA_TOOLS, Definition, ToolDefinition, tool_of
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.tools.analysis.isolation.forkserver import FORK_SERVER
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.catalog.definitions import Catalog
from longthread.tools.catalog.names import named_address
from longthread.tools.mcp import Servers
from longthread.tools.semantic.query_metric import semantic_layer, semantic_tools
from longthread.tools.sources import Opener, RunSources
from longthread.tools.tool import Tool
from longthread.tools.tool_type import ToolParts, build, find_type
from longthread.tools.types.code import Interpreters


@dataclass(frozen=True, slots=True)
class Trier:
    """Who tries a tool. `expect_source` raises NotGranted for a source, by its name or address."""

    user: str
    rights: GrantedRights = EVERYTHING
    expect_source: Callable[[str, GrantedRights], Awaitable[None]] | None = None


@asynccontextmanager
async def open_trial(
    store: Driver,
    settings: Settings,
    name: str,
    *,
    source: str | None = None,
    draft: Definition | None = None,
    trier: Trier | None = None,
) -> AsyncIterator[Tool]:
    """A tool of the catalog, ready to be called. `name` is the definition's or a model's (`files_read` of an MCP
    server), `source` that of a built-in data tool; by default the settings'. A `draft` is called in its place.
    The tool and its sources must be within the rights of the `trier`, if any.

    Raises DefinitionNotFound, ToolInvalid (also ambiguous), InvalidInput (it needs a thread or a source), SourceError.
    """
    if settings.sql_isolated:
        FORK_SERVER.start()
    catalog, opener = Catalog(store), Opener(settings)

    trier = trier or Trier(settings.user)
    user, rights = trier.user, trier.rights
    person = None if rights.principal.via in ("local", "token") else rights.principal

    async def opening(name: str) -> Source:
        found = await catalog.source(name)
        rights.expect_use("source", found.id, found.name)
        return await opener.open(await catalog.address(name), user, person)

    there = [each for each in await catalog.definitions("tool") if rights.may_use("tool", each.id, each.name)]
    definition = tool_of(draft) if draft is not None else _meant(there, name)
    if definition.type != "builtin" and source is not None:
        raise InvalidInput(reason=f"The tool {name} asks the source that its definition names. Leave --source out.")
    sources = RunSources(None, opening)
    try:
        if definition.type == "builtin":
            if definition.function not in DATA_TOOLS:
                reason = f"The tool {definition.name} works on a conversation, and can be used in one alone."
                raise InvalidInput(reason=reason)
            if not (spec := source or settings.source):
                raise InvalidInput(reason="There is no source to ask. Give one with --source, or try --source demo.")
            if trier.expect_source is not None:
                await trier.expect_source(spec, rights)
            sources.own = await opener.open(await named_address(store, spec), user, person)
            metrics = semantic_tools(sources.own, await semantic_layer(store, sources.own))
            tools = {tool.name: tool for tool in [*analysis_tools(sources.own), *metrics]}
            if definition.function not in tools:
                reason = "The source has no metrics. `longthread sources metrics SOURCE FILE` imports some."
                raise InvalidInput(reason=reason)
            yield tools[definition.function]
            return
        if not definition.is_active:
            raise ToolInvalid(tool=definition.name, problem="it is switched off: is_active is false.")
        async with Interpreters(cpython=settings.code_cpython) as interpreters, Servers() as servers:
            yield _choose_tool(
                await build(definition, ToolParts(sources.open_named, interpreters, servers)), definition, name
            )
    finally:
        await sources.close()
        await opener.close()


def _meant(definitions: Sequence[Definition], name: str) -> ToolDefinition:
    """The definition of a tool. Raises DefinitionNotFound."""
    tools = [tool_of(each) for each in definitions]
    exact = [each for each in tools if name in {each.name, each.id}]
    exact = exact or [each for each in tools if each.function == name]
    servers = [each for each in tools if _serves_tools(each) and name.startswith(f"{each.function}_")]
    found = exact or sorted(servers, key=lambda each: len(each.function), reverse=True)
    if not found:
        there = "`longthread tools list` shows those there are."
        raise DefinitionNotFound(kind="tool", name=name[:100], nearest=there)
    return found[0]


def _serves_tools(definition: ToolDefinition) -> bool:
    tool_type = find_type(definition.type)
    return tool_type is not None and tool_type.serves_tools


def _choose_tool(tools: Sequence[Tool], definition: ToolDefinition, name: str) -> Tool:
    for tool in tools:
        if tool.name == name or (len(tools) == 1 and name in {definition.name, definition.id}):
            return tool
    there = ", ".join(tool.name for tool in tools[:20])
    raise ToolInvalid(tool=name[:100], problem=f"its server has several, or none of the name. There are: {there}.")
