"""Whether the server is up, and what it serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from longthread import __version__, metrics
from longthread.errors import StoreError, StoreReadOnly
from longthread.llm.models import DEMO, model_name
from longthread.server.account_answers import Info, VisitorInfo
from longthread.server.answers import Health, NotReady, Ready
from longthread.server.openapi import RouteResponses, problems
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.account import describe_auth
from longthread.server.state import CallerRights, Served, ServedDep, VisitorDep
from longthread.store import leases, listing

STREAMED = 3
STREAM_SECONDS = 0.25

_READY = problems(reads=True)
_READY[503]["model"] = NotReady
_SENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
_NUMBERS: RouteResponses = {200: {"description": "Three numbers", "content": {EVENT_STREAM: {"schema": _SENT}}}}

router = APIRouter(tags=["health"])


@router.get("/health", responses=problems(reads=True))
async def health() -> Health:
    """The process answers."""
    return {"status": "ok"}


@router.get("/ready", response_model=Ready, responses=_READY)
async def ready(served: ServedDep) -> JSONResponse:
    """Whether to send questions here: the store can be written, and a first question waits for nothing else.

    503 while the server warms up or ends its runs, and when the store does not answer or takes no writes.
    """
    ends = served.draining or served.closing.is_set()
    if ends or not served.warm:
        return JSONResponse({"status": "draining" if ends else "warming"}, status_code=503)
    async with served.analyst.store.reading() as tx:
        await listing.last_thread(tx, user_id=served.analyst.settings.user)
    try:
        await served.writes.expect()
    except StoreError as error:
        status = "read_only" if isinstance(error, StoreReadOnly) else "unwritable"
        return JSONResponse({"status": status, "detail": str(error)}, status_code=503)
    return JSONResponse({"status": "ready"})


@router.get("/health/stream", response_class=StreamingResponse, responses=problems(reads=True) | _NUMBERS)
async def stream() -> StreamingResponse:
    """Three events, a quarter of a second apart: together they show that something in between buffers."""

    async def events() -> AsyncIterator[str]:
        for number in range(STREAMED):
            yield f"data: {number}\n\n"
            await asyncio.sleep(STREAM_SECONDS)

    return StreamingResponse(events(), media_type=EVENT_STREAM, headers=NO_STORE)


@router.get("/metrics", response_class=PlainTextResponse, responses=problems(reads=True))
async def metrics_text(served: ServedDep) -> PlainTextResponse:
    """This process' counters and gauges, as Prometheus reads them. Nothing that a user wrote is in them."""
    live = metrics.gauge("longthread_live_runs", "Runs that this process executes.", served.analyst.runs.live)
    shared = await _measure_shared(served)
    return PlainTextResponse(metrics.text() + live + shared, media_type="text/plain; version=0.0.4")


async def _measure_shared(served: Served) -> str:
    """Return what is known of all processes on the store; nothing while it does not answer."""
    try:
        async with served.analyst.store.reading() as tx:
            work = await leases.look_for_work(tx)
    except StoreError:
        return ""
    living = metrics.gauge("longthread_workers", "Processes that live and execute runs.", len(work.workers))
    waiting = metrics.gauge("longthread_runs_wait", "Whether runs wait for a process.", int(work.runs))
    queue = metrics.gauge("longthread_queued_questions", "Questions that wait for their turn.", work.questions)
    return living + waiting + queue


@router.get("/api/info", responses=problems(reads=True))
async def info(served: ServedDep, principal: VisitorDep) -> Info | VisitorInfo:
    """The server as a page shows it. `sources` are those allowed: `any`, or a list. Before a login, only how to log
    in."""
    auth = await describe_auth(served, principal)
    if principal is None:
        return {"auth": auth}
    settings, rights = served.analyst.settings, CallerRights(principal, served.analyst.settings)
    model = model_name(None, settings)
    return {
        "version": __version__,
        "model": model,
        "demo": model == DEMO,
        "source": rights.own_source,
        "sources": "any" if rights.owner else rights.sources,
        "max_steps": settings.max_steps,
        "user": principal.user,
        # Paths are shown to the user of the machine only.
        "database": served.analyst.store.where if principal.is_local else None,
        "auth": auth,
    }
