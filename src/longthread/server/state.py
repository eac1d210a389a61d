"""The state that the routes of one app share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from longthread.runs.analyst import Analyst
from longthread.server.sources import AskableSources


@dataclass(slots=True)
class Served:
    """The analyst of a server. Setting `closing` ends its streams."""

    analyst: Analyst
    sources: AskableSources
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def close(self) -> None:
        """Stop the runs of this process, whose streams still send their end, then end all other streams."""
        await self.analyst.close()
        self.closing.set()


def _served(request: Request) -> Served:
    return cast(Served, request.app.state.served)


ServedDep = Annotated[Served, Depends(_served)]


def caller(served: ServedDep) -> str:
    """The user of a request. The server has no login yet: everyone is the user of its settings."""
    return served.analyst.settings.user


Caller = Annotated[str, Depends(caller)]
