"""Whether the server is up, and what it serves."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from longthread import __version__
from longthread.llm.models import DEMO, model_name
from longthread.server.state import Caller, ServedDep
from longthread.store import log

router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(served: ServedDep, user: Caller) -> dict[str, str]:
    """The store answers too; 503 when it does not."""
    async with served.analyst.store.reading() as tx:
        await log.last_thread(tx, user_id=user)
    return {"status": "ready"}


@router.get("/api/info")
async def info(served: ServedDep) -> dict[str, Any]:
    """The server as a page shows it. `sources` are those allowed: `any`, or a list."""
    settings = served.analyst.settings
    model = model_name(None, settings)
    return {
        "version": __version__,
        "model": model,
        "demo": model == DEMO,
        "source": served.sources.own,
        "sources": "any" if served.sources.open else served.sources.allowed,
        "max_steps": settings.max_steps,
        # Paths are not shown to other machines.
        "database": served.analyst.store.where if served.sources.open else None,
    }
