"""Which agent answers on a thread, and what its run works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from longthread.errors import AgentOfThread, DefinitionNotFound
from longthread.llm.models import RunModels
from longthread.model.memory import ANALYST
from longthread.model.semantics import SemanticLayer
from longthread.model.thread import Thread
from longthread.runs.delegation_scope import DelegationScope
from longthread.store.driver import Driver
from longthread.tools.catalog.role import ANALYST_ROLE, AgentRole, AgentTools, role_named
from longthread.tools.sources import RunSources


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a run works with. `window` is the smaller context window of its models, in tokens; `metrics` are
    those of its source."""

    role: AgentRole
    models: RunModels
    sources: RunSources
    agent_tools: AgentTools
    scope: DelegationScope
    window: int
    metrics: SemanticLayer = field(default_factory=SemanticLayer)


async def role_for(store: Driver, agent: str | None, thread: Thread | None) -> AgentRole:
    """Return the role of the agent with this name or id; by default the thread's agent, else the analyst.

    Raises:
        DefinitionNotFound: there is no such agent.
        AgentOfThread: the thread is with another agent.
    """
    if agent is None:
        return await _role_of(store, thread) if thread and thread.agent_id else ANALYST_ROLE
    role = await role_named(store, agent)
    if thread is not None and thread.entry_count and (thread.agent_id or ANALYST) != role.agent.id:
        owner = await _role_of(store, thread)
        raise AgentOfThread(thread=thread.id, name=owner.agent.name)
    return ANALYST_ROLE if role.is_analyst else role


async def _role_of(store: Driver, thread: Thread) -> AgentRole:
    try:
        return await role_named(store, thread.agent_id or ANALYST)
    except DefinitionNotFound as error:
        if error.kind != "agent":
            raise
        there = "The conversation is with it: apply its definition, with this as its `id`."
        raise DefinitionNotFound(kind="agent", name=thread.agent_id or ANALYST, nearest=there) from error
