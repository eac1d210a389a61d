"""Serves the gateway alone, in a process of its own, until Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from uvicorn.loops.auto import auto_loop_factory

from longthread.gateway.model_request import Counts
from longthread.gateway.rebuild import rebuild_in_background
from longthread.gateway.service import Gateway, GatewayOptions
from longthread.gateway.upstream import ANTHROPIC_URL, OPENAI_URL, Routes, Upstream
from longthread.server.gateway.door import Door
from longthread.server.gateway.router import GatewayRouter
from longthread.server.gateway.tokens import require_token
from longthread.server.http.limits import HttpLimits
from longthread.server.http.server import HttpServer, listen
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store

_EXPIRY_SECONDS = 60.0
"""How often expired conversations are deleted."""


def run(
    settings: Settings,
    options: GatewayOptions,
    *,
    anthropic_url: str = "",
    openai_url: str = "",
    on_ready: Callable[[str], None] | None = None,
) -> Counts:
    """Serve until Ctrl-C or SIGTERM; return what happened. `on_ready` gets the URL once it answers. Raises StoreError;
    ServerError: it cannot listen, others would reach it without a token, or a token or an origin is none."""
    require_token(settings)
    door = Door.of(settings)

    async def serve() -> Counts:
        async with open_store(settings.database, read_only=settings.read_only) as store:
            gateway = Gateway(store, own_routes(anthropic_url, openai_url), options)
            background: list[asyncio.Task[None]] = []
            if not settings.read_only:
                background.append(asyncio.create_task(_expire_in_background(store)))
                background.append(asyncio.create_task(rebuild_in_background(store)))
            try:
                app, limits = GatewayRouter(gateway, door, has_health=True), HttpLimits.of(settings)
                await HttpServer(app, listener, limits=limits, on_ready=on_ready, lifespan="off").serve()
            finally:
                for task in background:
                    task.cancel()
                await gateway.close()
        return gateway.counts

    # A client that tries a WebSocket first gets 426; uvicorn would advise to install a library for it.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    fast = auto_loop_factory()
    with listen(settings.host, settings.port) as listener, asyncio.Runner(loop_factory=fast) as runner:
        return runner.run(serve())


async def _expire_in_background(store: Driver) -> None:
    await asyncio.sleep(_EXPIRY_SECONDS)
    # Here and not above: the first requests do not wait for it.
    from longthread.store.maintenance.expiry import expire_states

    await expire_states(store, _EXPIRY_SECONDS)


def own_routes(anthropic_url: str = "", openai_url: str = "") -> Routes:
    """Return the vendors' own endpoints, which hold state, or others in their place. They come behind those of the
    catalog."""
    own = [
        Upstream("anthropic", anthropic_url or ANTHROPIC_URL, ["anthropic"], holds_state=not anthropic_url),
        Upstream("openai", openai_url or OPENAI_URL, ["responses", "completions"], holds_state=not openai_url),
    ]
    return Routes({upstream.name: upstream for upstream in own})
