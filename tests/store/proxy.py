"""A proxy before a PostgreSQL server that cuts the connection around a COMMIT."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

COMMIT = b"COMMIT\x00"


@dataclass
class Proxy:
    """Listens on `port`. `cut` says when the next COMMIT's connection is cut: `before` the server has it, or `after`
    the server has answered it and before the client learns of that; None: never."""

    socket: str
    port: int = 0
    cut: str | None = None
    cuts: int = 0
    connections: set[asyncio.Task[Any]] = field(default_factory=set)

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Pass one connection on until either side closes it, or it is cut."""
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        with closing(to_client):
            server, to_server = await asyncio.open_unix_connection(self.socket)
            with closing(to_server):
                await self._pass_both_ways(client, to_client, server, to_server)

    async def _pass_both_ways(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        answers = asyncio.create_task(_pass(server, to_client))
        requests = asyncio.create_task(self._pass_requests(client, server, to_server, answers))
        try:
            await asyncio.wait({answers, requests}, return_when=asyncio.FIRST_COMPLETED)
            if not requests.done() and answers.cancelled():
                await requests
        finally:
            answers.cancel()
            requests.cancel()
            await asyncio.gather(answers, requests, return_exceptions=True)

    async def _pass_requests(
        self,
        client: asyncio.StreamReader,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        answers: asyncio.Task[None],
    ) -> None:
        while data := await client.read(65_536):
            if COMMIT in data and self.cut is not None:
                when, self.cut = self.cut, None
                self.cuts += 1
                if when == "after":
                    answers.cancel()
                    await asyncio.gather(answers, return_exceptions=True)
                    to_server.write(data)
                    await server.read(1)
                return
            to_server.write(data)
            await to_server.drain()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        target.write(data)
        await target.drain()


@asynccontextmanager
async def proxy_to(socket: str) -> AsyncIterator[Proxy]:
    """A proxy on a free port of 127.0.0.1 to the server behind a Unix socket."""
    proxy = Proxy(socket)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()
        for connection in proxy.connections:
            connection.cancel()
        await asyncio.gather(*proxy.connections, return_exceptions=True)
