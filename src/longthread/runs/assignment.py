"""Which agent answers on a thread, and what its run works with.

A run that an agent asks for has limits: its depth, its caller, and the model calls left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from longthread.errors import AgentOfThread, DefinitionNotFound
from longthread.llm.models import RunModels
from longthread.model.memory import ANALYST
from longthread.model.run import Protocol, Run
from longthread.model.semantics import SemanticLayer
from longthread.model.thread import Thread
from longthread.settings import Settings
from longthread.store import listing, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease
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


class Allowance:
    """Model calls that all runs below one share, in any thread and at any depth."""

    def __init__(self, size: int, used: int = 0) -> None:
        self.size = size
        self.left = max(0, size - used)

    def take(self) -> bool:
        """Take one call; False when none is left."""
        if not self.left:
            return False
        self.left -= 1
        return True


@dataclass(frozen=True, slots=True)
class DelegatingCall:
    lease: Lease
    call_id: str


@dataclass(frozen=True, slots=True)
class DelegationScope:
    """The limits of a run. `depth` is how many threads its thread is below. `own` pays for its model calls (None:
    only its own steps count), `below` for those of its sub-agents. `source`, `model` and `protocol` are the
    caller's, for an agent that names none."""

    depth: int
    below: Allowance
    own: Allowance | None = None
    caller: DelegatingCall | None = None
    source: str | None = None
    model: str | None = None
    protocol: Protocol = "auto"

    def for_call(self, caller: DelegatingCall) -> DelegationScope:
        return replace(self, caller=caller)

    def for_sub_agents(self, run: Run, source: str | None) -> DelegationScope:
        """Return the scope of this run's sub-agents; `source` is the run's own, without its password."""
        return DelegationScope(self.depth + 1, self.below, self.below, None, source, run.model, run.protocol)


async def scope_of(
    store: Driver, settings: Settings, thread: Thread | None, goes_on: Run | None = None
) -> DelegationScope:
    """Return the scope of a run that no agent asked for; `goes_on` is one that has begun already."""
    depth, used = 0, 0
    if thread is not None and (thread.parent_id is not None or goes_on is not None):
        async with store.reading() as tx:
            depth = await listing.depth(tx, thread.id)
            if goes_on is not None:
                used = await used_below(tx, thread.id, goes_on.id, levels=settings.max_delegation_depth)
    return DelegationScope(depth, Allowance(settings.max_delegated_steps, used))


async def used_below(tx: Transaction, thread_id: str, run_id: str, *, levels: int) -> int:
    """Count the model calls of the runs below a run, at most `levels` deep."""
    if not levels:
        return 0
    used = 0
    for run in await runs.answers(tx, thread_id, run_id):
        used += sum(step.kind == "model" for step in await runs.steps_of(tx, run))
        used += await used_below(tx, run.thread_id, run.id, levels=levels - 1)
    return used
