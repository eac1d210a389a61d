"""What executes a run, and what it works with."""

from __future__ import annotations

from dataclasses import dataclass

from longthread.llm.models import Models
from longthread.runs.delegation_scope import Standing
from longthread.tools.catalog.role import Equipment, Role
from longthread.tools.sources import RunSources


@dataclass(frozen=True, slots=True)
class Staff:
    """A role, its models, the sources that are open for it, its tools from the catalog, and where its run stands.

    `window` is the context window of its models, in tokens: that of the smaller one.
    """

    role: Role
    models: Models
    sources: RunSources
    equipment: Equipment
    standing: Standing
    window: int
