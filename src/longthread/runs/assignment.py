"""What a run works with."""

from __future__ import annotations

from dataclasses import dataclass, field

from longthread.llm.models import RunModels
from longthread.model.semantics import SemanticLayer
from longthread.runs.delegation_scope import DelegationScope
from longthread.tools.catalog.role import AgentRole, AgentTools
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
