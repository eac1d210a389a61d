"""The web application: routes, errors, the request guard and the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from fastapi import FastAPI

from longthread import __version__
from longthread.gateway.stored_calls import rebuild_in_background
from longthread.llm.connections import ModelFactory
from longthread.llm.models import resolve_model
from longthread.runs.analyst import Analyst
from longthread.server import openapi, page, problems
from longthread.server.fields import EncodedPaths
from longthread.server.gateway_access import Door
from longthread.server.requests import CountedRequests
from longthread.server.routes import (
    agui,
    boards,
    branches,
    calls,
    chat,
    conversations,
    definitions,
    events,
    health,
    memories,
    messages,
    results,
    shares,
    terms,
    waiting,
)
from longthread.server.routes import models as model_routes
from longthread.server.routes import sources as source_routes
from longthread.server.security import RequestGuard
from longthread.server.state import Served, to_gateway
from longthread.settings import Settings

GATEWAY = "/v1"
"""Where the endpoints of providers are."""
LARGEST_INPUT = 32 * 2**20
"""Bytes of an AG-UI input."""


def create_app(settings: Settings, *, models: ModelFactory = resolve_model, analyst: Analyst | None = None) -> FastAPI:
    """The application on the store that `settings` name, opened with the app and closed with it.

    A given `analyst` is used instead and stays open when the app ends. Its runs are stopped either way, and can be
    resumed. Raises ServerError: a token or an origin of the gateway's is none.
    """
    door = Door.of(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with nullcontext(analyst) if analyst is not None else Analyst.open(settings, models=models) as opened:
            app.state.served = served = Served(opened, door)
            if not settings.read_only:
                opened.claims.start()
                if settings.titles:
                    opened.titles.start()
            background = [asyncio.create_task(each) for each in (served.warm_up(), rebuild_in_background(opened.store))]
            try:
                yield
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, return_exceptions=True)  # they may hold a source's worker
                await served.close()
                await served.gateway.close()  # after its last request

    app = FastAPI(
        title="Longthread",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        # Their pages load scripts from a CDN.
        docs_url=None,
        redoc_url=None,
    )
    problems.install(app)
    openapi.install(app)
    for router in (
        health.router,
        definitions.agents_router,
        conversations.router,
        messages.router,
        chat.router,
        waiting.queue_router,
        branches.router,
        calls.router,
        results.router,
        messages.feedback_router,
        calls.usage_router,
        model_routes.router,
        memories.router,
        source_routes.router,
        terms.router,
        shares.router,
        boards.router,
        definitions.router,
        waiting.approvals_router,
        events.router,
        agui.router,
    ):
        app.router.routes.extend(router.routes)

    app.mount("/assets", page.assets, name="assets")
    app.mount(GATEWAY, to_gateway, name="gateway")
    app.router.routes.extend(page.router.routes)
    app.add_middleware(EncodedPaths)
    # A character is up to four bytes, and JSON may write it as twelve (two escaped surrogates).
    limit = 12 * settings.max_question + 65_536
    # AG-UI's clients send the whole conversation.
    # A little more than a file may have: the route itself says that one is too large.
    limits = {"/ag-ui/": max(limit, LARGEST_INPUT), "/api/uploads": (settings.max_upload_mb + 1) * 2**20}
    app.add_middleware(RequestGuard, host=settings.host, limit=limit, limits=limits, unguarded=f"{GATEWAY}/")
    app.add_middleware(CountedRequests)
    return app
