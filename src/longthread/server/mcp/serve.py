"""Serves the protocol over standard streams to one client, or over HTTP to many, all of one user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.lowlevel.server import Server as ProtocolServer
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from longthread.errors import ServerError
from longthread.llm.connections import ModelFactory
from longthread.llm.models import resolve_model
from longthread.runs.analyst import Analyst
from longthread.server.http.limits import HttpLimits
from longthread.server.http.server import listen
from longthread.server.mcp import stdio
from longthread.server.mcp.auth import Authenticator, OpenRequests
from longthread.server.mcp.protocol import offers, protocol_server
from longthread.server.mcp.transcripts import Transcripts
from longthread.server.origin import is_loopback
from longthread.server.security import RequestGuard
from longthread.server.serve import Server
from longthread.settings import Settings

PATH = "/mcp"
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class ClientRights:
    """What clients may do; see `AskTools` and `offers`."""

    agent: str | None = None
    any_source: bool = False
    read_only: bool = False


def run_stdio(settings: Settings, choice: ClientRights, *, models: ModelFactory = resolve_model) -> None:
    """Serve one client over standard streams, until it closes them or SIGTERM, then stop the runs under way.

    Raises StoreError: the conversation store cannot be opened.
    """
    reading, writing = stdio.take_standard_streams()

    async def serve() -> None:
        async with Analyst.open(settings, models=models) as analyst:
            await stdio.serve(_server(analyst, choice), reading, writing, most=_most(settings))

    asyncio.run(serve())


def run_http(
    settings: Settings,
    choice: ClientRights,
    *,
    on_ready: Callable[[str], None] | None = None,
    models: ModelFactory = resolve_model,
) -> None:
    """Serve over streamable HTTP until Ctrl-C or SIGTERM. `on_ready` gets the URL once the server answers.

    Raises:
        ServerError: a server that other machines reach has no token or a short one, or it cannot listen.
        StoreError: the conversation store cannot be opened.
    """
    if settings.mcp_token is None and not is_loopback(settings.host):
        reason = f"others can reach {settings.host}, and LONGTHREAD_MCP_TOKEN is not set: anyone could read and ask."
        raise ServerError(reason=reason)
    if settings.mcp_token is not None and len(settings.mcp_token.get_secret_value()) < _SHORTEST_TOKEN:
        raise ServerError(reason=f"LONGTHREAD_MCP_TOKEN is short. Give it {_SHORTEST_TOKEN} characters or more.")
    with listen(settings.host, settings.port) as listener:

        async def serve() -> None:
            async with Analyst.open(settings, models=models) as analyst:
                app, limits = create_app(settings, analyst, choice), HttpLimits.of(settings)
                await Server(app, listener, limits=limits, on_ready=on_ready).serve()

        asyncio.run(serve())


def create_app(settings: Settings, analyst: Analyst, choice: ClientRights) -> Starlette:
    """The application, with the protocol under /mcp."""
    most = _most(settings)
    manager = StreamableHTTPSessionManager(_server(analyst, choice), max_request_body_size=most)
    requests = OpenRequests()
    token = settings.mcp_token.get_secret_value() if settings.mcp_token else None
    app = Starlette(
        routes=[Route(PATH, endpoint=StreamableHTTPASGIApp(manager))],
        middleware=[
            Middleware(RequestGuard, host=settings.host, limit=most),
            Middleware(Authenticator, token=token, requests=requests),
        ],
        lifespan=lambda app: _life(manager),
    )
    app.state.served = _Served(analyst, requests)
    return app


@asynccontextmanager
async def _life(manager: StreamableHTTPSessionManager) -> AsyncIterator[None]:
    # By default streams break off as soon as the server stops; here they get their answers first.
    AppStatus.enable_automatic_graceful_drain = False
    try:
        async with manager.run():
            yield
    finally:
        AppStatus.enable_automatic_graceful_drain = True


@dataclass(frozen=True, slots=True)
class _Served:
    """Closes with the server."""

    analyst: Analyst
    requests: OpenRequests = field(default_factory=OpenRequests)

    async def close(self) -> None:
        """Stop the runs, whose callers then get their answers, and close all requests."""
        await self.analyst.close()
        await self.requests.close()


def _server(analyst: Analyst, choice: ClientRights) -> ProtocolServer[Any]:
    user = analyst.settings.user  # a server's token is one user's
    chosen = offers(analyst, user, agent=choice.agent, any_source=choice.any_source, read_only=choice.read_only)
    return protocol_server(chosen, Transcripts(analyst.store, user))


def _most(settings: Settings) -> int:
    """Bytes of a message: a character of a question may be written as twelve."""
    return 12 * settings.max_question + 65_536
