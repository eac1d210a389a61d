"""The protocol's own client, and the server that it speaks to in the same loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from longthread.runs.analyst import Analyst
from longthread.server.app import Server
from longthread.server.http import listen
from longthread.server.mcp.serve import PATH, ClientRights, UserTools, create_app, offers, protocol_server
from longthread.server.mcp.thread_tools import Transcripts

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How a client begins, and the version that is then spoken."""


@asynccontextmanager
async def listening(analyst: Analyst, choice: ClientRights | None = None) -> AsyncIterator[tuple[str, Server]]:
    """The server on a socket of this machine, with its URL."""
    app: Starlette = create_app(analyst.settings, analyst, choice or ClientRights())
    ready: asyncio.Queue[str] = asyncio.Queue()
    with listen("127.0.0.1", 0) as listener:
        server = Server(app, listener, on_ready=ready.put_nowait)
        task = asyncio.create_task(server.serve())
        try:
            async with asyncio.timeout(120):
                url = await ready.get() + PATH
            yield url, server
        finally:
            server.should_exit = True
            async with asyncio.timeout(120):
                await task


@asynccontextmanager
async def over_http(url: str, era: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client of a URL."""
    async with (
        httpx2.AsyncClient(trust_env=False, verify=False, headers=headers, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


@asynccontextmanager
async def directly(analyst: Analyst, user: str | None = None, **choice: Any) -> AsyncIterator[Client]:
    """A client of a server in the same process, which serves the settings' user unless another is named."""
    user = user or analyst.settings.user
    own = UserTools(offers(analyst, user, **choice), Transcripts(analyst.store, user))
    server = protocol_server(lambda context: own)
    async with Client(server) as client:
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """What a call gives, as data. It must not fail."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, said(result)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """What a call is refused with."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, said(result)
    return said(result)


def said(result: mcp_types.CallToolResult) -> str:
    """The text of a result."""
    [content] = result.content
    assert isinstance(content, mcp_types.TextContent)
    return content.text
