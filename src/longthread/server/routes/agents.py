"""The agents that a conversation can be with."""

from __future__ import annotations

from fastapi import APIRouter

from longthread.server.answers import AgentInfo, AgentList
from longthread.server.openapi import problems
from longthread.server.state import ServedDep
from longthread.tools.catalog.role import AgentRole, active_roles

router = APIRouter(prefix="/api", tags=["agents"])


@router.get("/agents", responses=problems(reads=True))
async def agents(served: ServedDep) -> AgentList:
    """The active agents of the catalog, the analyst first."""
    return {"agents": [_item(role) for role in await active_roles(served.analyst.store)]}


def _item(role: AgentRole) -> AgentInfo:
    """An agent. With `asks_source` it, or an agent below it, asks a source; `source` is the name of its own."""
    return {
        "id": role.agent.id,
        "name": role.agent.name,
        "description": role.agent.description or "",
        "asks_source": role.asks_data or bool(role.sub_agents),
        "source": role.source.name if role.source else None,
        "model": role.agent.config.get("model"),
    }
