"""What a conversation has used."""

from __future__ import annotations

from fastapi import APIRouter

from longthread.errors import ThreadNotFound
from longthread.runs.usage import ModelUsage, usage_of
from longthread.server.answers import UsageOfModel, UsageView
from longthread.server.fields import PathSegment
from longthread.server.openapi import problems
from longthread.server.state import Caller, Served, ServedDep

router = APIRouter(prefix="/api", tags=["conversations"])


@router.get("/conversations/{thread_id}/usage", responses=problems(ThreadNotFound, reads=True))
async def usage(served: ServedDep, user: Caller, thread_id: PathSegment) -> UsageView:
    """What the runs of a conversation have used, on all branches and in the conversations below it."""
    async with served.analyst.store.reading() as tx:
        found = await usage_of(tx, thread_id, user_id=user)
    return {
        "thread_id": thread_id,
        "runs": found.runs,
        "tool_calls": found.tool_calls,
        "currency": served.analyst.settings.currency,
        "models": [_row(served, name, each) for name, each in sorted(found.models.items())]
        + [_row(served, name, each, fallback=True) for name, each in sorted(found.fallbacks.items())],
    }


def _row(served: Served, model: str, used: ModelUsage, *, fallback: bool = False) -> UsageOfModel:
    price = None if fallback else served.analyst.settings.price_of(model)
    return {
        "model": model,
        "fallback": fallback,
        "calls": used.calls,
        "uncounted": used.uncounted,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cached_tokens": used.cached_tokens,
        "cost": None if price is None else used.cost(price),
    }
