"""What executes a run, and what it works with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from longthread.agent.graph import Models
from longthread.agent.standing import Standing
from longthread.tools.analysis.source import Source
from longthread.tools.catalog.role import Role
from longthread.tools.tool import Tool


class RunSources:
    """Sources that are open for one run.

    Args:
        own: the run's own source, where it has one.
        opening: opens a source of the catalog by its name.
    """

    def __init__(self, own: Source | None, opening: Callable[[str], Awaitable[Source]]) -> None:
        self.own = own
        self._opening = opening
        self._opened: dict[str, Source] = {}
        self._lock = asyncio.Lock()

    async def named(self, name: str) -> Source:
        """A source of the catalog, opened when it is first asked. Raises SourceError, DefinitionNotFound."""
        async with self._lock:
            if name not in self._opened:
                self._opened[name] = await self._opening(name)
            return self._opened[name]

    async def close(self) -> None:
        """Close them all."""
        for source in (*([self.own] if self.own is not None else []), *self._opened.values()):
            await source.close()


@dataclass(frozen=True, slots=True)
class Staff:
    """A role, its models, the sources that are open for it, its tools from the catalog, and where its run stands."""

    role: Role
    models: Models
    sources: RunSources
    tools: Sequence[Tool]
    standing: Standing
