"""What executes a run, and what it works with."""

from __future__ import annotations

from dataclasses import dataclass

from longthread.llm.models import RunModels
from longthread.runs.delegation_scope import DelegationScope
from longthread.tools.catalog.role import AgentRole, AgentTools
from longthread.tools.sources import RunSources


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role, its models, the sources that are open for it, its tools from the catalog, and where its run stands.

    `window` is the context window of its models, in tokens: that of the smaller one.
    """

    role: AgentRole
    models: RunModels
    sources: RunSources
    agent_tools: AgentTools
    standing: DelegationScope
    window: int
