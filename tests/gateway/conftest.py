"""A gateway on a real socket, over each store, before an emulated provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from longthread.gateway.service import Gateway, GatewayOptions
from longthread.gateway.upstream import Routes, Upstream
from longthread.server.authentication import Authentication
from longthread.server.gateway import GatewayRouter
from longthread.server.gateway_access import Door
from longthread.server.http import HttpServer, listen
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator, ProviderRules

USER = "ada"
Start = Callable[..., Awaitable[str]]
"""`await start(emulator, **options)`: the URL of a gateway before this provider."""


@pytest.fixture
def provider() -> Iterator[ProviderEmulator]:
    """A provider with the strictest rules for thinking. It repeats what was said, and calls tools when asked to."""
    with ProviderEmulator(None, rules=ProviderRules(signatures=True, binding=True)) as emulator:
        yield emulator


OPENED: list[Any] = []
"""Clients of SDKs that a test has opened."""


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """Closes the clients of a test on its loop."""
    yield
    while OPENED:
        await OPENED.pop().close()


@asynccontextmanager
async def gateway_of(
    store: Driver,
    emulator: ProviderEmulator,
    *,
    holds_state: bool = False,
    name: str = "emulated",
    door: Door | None = None,
    callers: Authentication | None = None,
    api_key: str | None = None,
    **options: Any,
) -> AsyncIterator[str]:
    """The URL of a gateway, without `/v1`."""
    dialects = ["anthropic", "responses", "completions"]
    upstream = Upstream(name, emulator.anthropic_url, dialects, api_key, holds_state=holds_state)
    gateway = Gateway(store, Routes({name: upstream}), GatewayOptions(**{"user": USER, **options}))
    with listen("127.0.0.1", 0) as listener:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = HttpServer(
            GatewayRouter(gateway, door or Door(), callers=callers, has_health=door is not None),
            listener,
            on_ready=started.set_result,
            lifespan="off",
        )
        serving = asyncio.create_task(server.serve())
        try:
            yield await started
        finally:
            server.should_exit = True
            await serving
            await gateway.close()


@pytest.fixture
async def start(store: Driver) -> AsyncIterator[Start]:
    """Starts gateways on the store, which stop with the test."""
    async with AsyncExitStack() as stack:

        async def begin(emulator: ProviderEmulator, **options: Any) -> str:
            return await stack.enter_async_context(gateway_of(store, emulator, **options))

        yield begin
