"""What a run works with."""

from __future__ import annotations

from dataclasses import dataclass

from longthread.llm.models import RunModels
from longthread.runs.delegation_scope import DelegationScope
from longthread.tools.catalog.role import AgentRole, AgentTools
from longthread.tools.sources import RunSources


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role, its models, the sources that are open for it, its tools from the catalog, and the scope of its run.

    `window` is the context window of its models, in tokens: that of the smaller one.
    """

    role: AgentRole
    models: RunModels
    sources: RunSources
    agent_tools: AgentTools
    scope: DelegationScope
    window: int
