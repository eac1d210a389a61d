"""The role of an agent in a run: its instructions, the tools of its skills, and their sources."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from longthread.errors import AgentOff, DefinitionNotFound, NotGranted, ToolInvalid
from longthread.model.catalog import (
    BUILTIN,
    CHART,
    DATA_TOOLS,
    LOAD_SKILL,
    MEMORY_TOOLS,
    RUN_SQL,
    Agent,
    Definition,
    Kind,
    Skill,
    SourceDefinition,
    ToolDefinition,
    Version,
    agent_of,
    references,
    skill_of,
    source_of,
    tool_of,
)
from longthread.model.memory import ANALYST
from longthread.model.run import AgentRun
from longthread.store import catalog as catalog_store
from longthread.store.catalog import StoredDefinition
from longthread.store.driver import Driver, Transaction
from longthread.tools.catalog import address
from longthread.tools.catalog.fields import without_key
from longthread.tools.catalog.names import Names
from longthread.tools.skills import Disclosure, disclose, select_triggered
from longthread.tools.tool import Tool
from longthread.tools.tool_type import ToolParts, build, with_defaults

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentFunction:
    """A tool that an agent has from a skill."""

    tool: ToolDefinition
    required: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentTools:
    """The tools of an agent that are not built in, and the reason for each missing one."""

    tools: Sequence[Tool] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AgentRole:
    """An agent that is about to run. `run` is stored with the run; `functions` are the tools of its skills, in their
    order; `source` is its own source, if any; `sub_agents` are the agents that it may delegate to."""

    agent: Agent
    run: AgentRun
    skills: Sequence[Skill]
    functions: Sequence[AgentFunction]
    source: SourceDefinition | None = None
    sub_agents: Sequence[Agent] = ()

    @property
    def is_analyst(self) -> bool:
        return self.agent.id == ANALYST

    @property
    def builtins(self) -> frozenset[str]:
        """The names of its built-in tools."""
        names = {each.tool.function for each in self.functions if each.tool.type == "builtin"}
        taken = any(each.tool.function == CHART for each in self.functions)  # a tool that was so called before ours
        return frozenset(names | {CHART} if RUN_SQL in names and not taken else names)

    def built_in(self, tools: Iterable[Tool]) -> list[Tool]:
        """Its built-in tools among `tools`, with the default arguments of its skills."""
        defaults = {each.tool.function: each.defaults for each in self.functions if each.tool.type == "builtin"}
        found = [(tool, defaults.get(tool.name)) for tool in tools if tool.name in self.builtins]
        return [with_defaults(tool, given) if given else tool for tool, given in found]

    def make_run(self, question: str) -> AgentRun:
        """What the run for a question stores: it opens the skills whose keywords the question has."""
        return self.run.opening(select_triggered(self.skills, question))

    def disclose(self, run: AgentRun | None, *, window: int) -> Disclosure:
        """Its prompt with its skills, for a model with a context window of `window` tokens."""
        opened = run.opened_skills if run is not None else ()
        return disclose(self.agent.system_prompt.strip(), self.skills, opened, window=window)

    @property
    def asks_data(self) -> bool:
        """Whether it has a tool for its own source."""
        return not self.builtins.isdisjoint(DATA_TOOLS)

    @property
    def remembers(self) -> bool:
        """Whether it has a memory tool."""
        return not self.builtins.isdisjoint(MEMORY_TOOLS)

    async def tools(self, parts: ToolParts) -> AgentTools:
        """Builds its tools that are not built in, without optional ones that fail. Raises ToolInvalid for others."""
        wanted = [each for each in self.functions if each.tool.type != "builtin"]
        # Concurrently: each MCP server may take a while.
        found = await asyncio.gather(*(self._built(each, parts) for each in wanted))
        taken = self.builtins | {LOAD_SKILL} | {each.tool.function for each in wanted}
        made: dict[str, Tool] = {}
        missing = [str(each) for each in found if isinstance(each, ToolInvalid)]
        for each, tools in zip(wanted, found, strict=True):
            for tool in () if isinstance(tools, ToolInvalid) else tools:
                if tool.name in made or (tool.name in taken and tool.name != each.tool.function):
                    _logger.warning("The agent %s goes without a second tool named %s.", self.agent.name, tool.name)
                else:
                    made[tool.name] = tool
        return AgentTools(list(made.values()), missing)

    async def _built(self, each: AgentFunction, parts: ToolParts) -> list[Tool] | ToolInvalid:
        try:
            if not each.tool.is_active:
                raise ToolInvalid(tool=each.tool.name, problem="it is switched off: is_active is false.")
            return await build(each.tool, parts, each.defaults)
        except NotGranted as error:  # of its source
            if each.required:
                raise
            return ToolInvalid(tool=each.tool.name, problem=str(error))
        except ToolInvalid as error:
            if each.required:
                raise
            if not error.known:  # logged once for each time a server breaks
                _logger.warning("The agent %s goes without a tool. %s", self.agent.name, error)
            return error


async def role_named(store: Driver, name: str) -> AgentRole:
    """The role of an agent as it is now. Unrecorded versions of its definitions are recorded.

    Raises DefinitionNotFound (also for its source), DefinitionAmbiguous, AgentOff.
    """
    async with store.reading() as tx:
        stored = await _about(tx, name)
    names = Names(each.definition for each in stored)
    role = _role(names, names, names.one("agent", name))
    if not role.agent.is_active:
        raise AgentOff(name=role.agent.name)
    unknown = [each for each in stored if not each.recorded and _belongs(role, each)]
    if unknown:
        async with store.writing() as tx:
            await catalog_store.lock(tx)
            await note(tx, unknown)
    return role


async def active_roles(store: Driver) -> list[AgentRole]:
    """The roles of the active agents, the built-in ones first. An agent whose source is missing is left out."""
    async with store.reading() as tx:
        names = Names(each.definition for each in await catalog_store.definitions(tx))
    found = [each for each in names.by_key.values() if each.kind == "agent" and agent_of(each).is_active]
    roles: list[AgentRole] = []
    for each in sorted(found, key=lambda each: (not each.is_builtin, each.id != ANALYST, each.name)):
        with suppress(DefinitionNotFound):
            roles.append(_role(names, names, each))
    return roles


async def _about(tx: Transaction, name: str) -> list[StoredDefinition]:
    """An agent and the definitions that it refers to, not the whole large catalog. Raises DefinitionNotFound."""
    agents = await catalog_store.some(tx, "agent", ids=[name.lower()], names=[name])
    if not agents:
        Names(each.definition for each in await catalog_store.definitions(tx)).one(
            "agent", name
        )  # its error lists the agents
    skills = await catalog_store.some(tx, "skill", ids=_collect_references(agents, "skill"))
    tools = await catalog_store.some(tx, "tool", ids=_collect_references(skills, "tool"))
    asked = {*_collect_references(agents, "source"), *_collect_references(tools, "source")}
    others = await catalog_store.some(
        tx, "agent", ids=_collect_references(agents, "agent") - {each.definition.id for each in agents}
    )
    return [*agents, *skills, *tools, *await catalog_store.some(tx, "source", names=asked), *others]


def _collect_references(stored: Sequence[StoredDefinition], kind: Kind) -> set[str]:
    """The ids (of sources: the names) of a kind that definitions refer to."""
    found = (references(each.definition.kind, each.definition.body) for each in stored)
    return {ref if to == "source" else ref.lower() for each in found for to, ref in each if to == kind}


async def role_of_run(tx: Transaction, run: AgentRun | None) -> AgentRole:
    """The role of a stored run, from the versions of that time. Its sources are as they are now."""
    if run is None or run.id == ANALYST:
        return ANALYST_ROLE
    now = Names([each.definition for each in await _about(tx, run.id)])
    parts: list[tuple[Kind, str, int]] = [("agent", run.id, run.version)]
    kinds: tuple[Kind, ...] = ("skill", "tool", "agent")
    parts += [(kind, id_, number) for kind in kinds for id_, number in run.parts.get(kind, {}).items()]
    then = dict(BUILTIN)
    for kind, id_, number in parts:
        version = await catalog_store.version(tx, kind, id_, number)
        if version is not None and version.body is not None:
            then[kind, id_] = Definition(kind, id_, version.name, version.body, version=number)
        elif (kind, id_) in now.by_key:
            then[kind, id_] = now.by_key[kind, id_]
    names = Names(then.values())
    asked = {ref for each in then.values() for kind, ref in references(each.kind, each.body) if kind == "source"}
    sources = Names(each.definition for each in await catalog_store.some(tx, "source", names=asked))
    return replace(_role(names, sources, names.one("agent", run.id)), run=run)


async def note(tx: Transaction, stored: Sequence[StoredDefinition]) -> None:
    """Records the versions of definitions that another program has changed. The caller holds the catalog's lock."""
    for each in stored:
        for found in await catalog_store.some(tx, each.definition.kind, ids=[each.definition.id]):
            if not found.recorded:
                await catalog_store.record(tx, version_of(found.definition))


def version_of(definition: Definition) -> Version:
    """The present version of a definition, without a password that another program wrote into an address."""
    body = definition.body
    if definition.kind == "source":
        body = {**body, "address": address.public(str(body["address"]))}
    elif definition.kind == "upstream":
        body = without_key(body)
    at = definition.updated_at if definition.is_builtin and definition.updated_at else datetime.now(UTC)
    return Version(definition.kind, definition.id, definition.version, definition.name, body, at, definition.by)


def _role(names: Names, sources: Names, definition: Definition) -> AgentRole:
    agent = agent_of(definition)
    skills = [skill_of(each) for id_ in agent.skills if (each := names.by_key.get(("skill", id_))) is not None]
    functions: dict[str, AgentFunction] = {}
    for skill in skills:
        for item in skill.tools:
            found = names.by_key.get(("tool", item.tool_id))
            if found is None:
                _logger.warning("The skill %s names a tool that is not there: %s", skill.name, item.tool_id)
                continue
            made = AgentFunction(tool_of(found), item.required, item.default_params)
            functions.setdefault(made.tool.function, made)
    asked = _find_sources(agent, list(functions.values()), sources)
    others = _others(agent, names)
    parts = {
        "skill": {skill.id: skill.version for skill in skills},
        "tool": {each.tool.id: each.tool.version for each in functions.values() if each.tool.type != "builtin"},
        "source": {each.id: each.version for each in asked.values()},
        "agent": {each.id: each.version for each in others},
    }
    return AgentRole(
        agent=agent,
        run=AgentRun(agent.id, agent.version, {kind: ids for kind, ids in parts.items() if ids}),
        skills=tuple(skills),
        functions=tuple(functions.values()),
        source=asked.get(str(agent.config.get("source"))),
        sub_agents=others,
    )


def _find_sources(agent: Agent, functions: Sequence[AgentFunction], sources: Names) -> dict[str, SourceDefinition]:
    """The sources of an agent and its query tools, by name."""
    found: dict[str, SourceDefinition] = {}
    wanted = [agent.config["source"]] if "source" in agent.config else []
    wanted += [each.tool.implementation["database"] for each in functions if "database" in each.tool.implementation]
    for name in wanted:
        definition = sources.target("source", str(name))
        if definition is None:
            raise DefinitionNotFound(kind="source", name=name, nearest=f"The agent {agent.name} asks it.")
        found[str(name)] = source_of(definition)
    return found


def _others(agent: Agent, names: Names) -> tuple[Agent, ...]:
    """The active agents that an agent may delegate to, in its order."""
    found: dict[str, Agent] = {}
    for id_ in agent.sub_agents:
        definition = names.by_key.get(("agent", id_.lower()))
        if definition is None or not definition.is_active:
            _logger.warning("The agent %s goes without an agent that is switched off or not there: %s", agent.name, id_)
        else:
            found[definition.id] = agent_of(definition)
    return tuple(found.values())


def _belongs(role: AgentRole, stored: StoredDefinition) -> bool:
    definition = stored.definition
    return definition.id == role.agent.id or definition.id in role.run.parts.get(definition.kind, {})


def _analyst() -> AgentRole:
    names, definition = Names(BUILTIN.values()), BUILTIN["agent", ANALYST]
    return replace(_role(names, names, definition), run=AgentRun(ANALYST, definition.version))


ANALYST_ROLE = _analyst()
"""The built-in analyst. It is read without the catalog."""
