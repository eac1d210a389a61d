"""What a conversation has used."""

from __future__ import annotations

from fastapi import APIRouter

from longthread.errors import ThreadNotFound
from longthread.runs.usage import usage_of
from longthread.server.answers import UsageView
from longthread.server.openapi import problems
from longthread.server.paths import PathSegment
from longthread.server.state import Caller, ServedDep

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
        "models": [
            {
                "model": name,
                "calls": each.calls,
                "uncounted": each.uncounted,
                "input_tokens": each.input_tokens,
                "output_tokens": each.output_tokens,
            }
            for name, each in sorted(found.models.items())
        ],
    }
