"""The MCP sessions of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from longthread.errors import ExtraMissing, McpFailed

if TYPE_CHECKING:
    from longthread.tools.api.exchange import Network
    from longthread.tools.mcp.endpoint import McpEndpoint, ServerTool
    from longthread.tools.mcp.session import Session

T = TypeVar("T")


class Servers:
    """The sessions with servers, one for all tools of a server, started on demand. Use one per process, as `async
    with`."""

    def __init__(self, network: Network | None = None) -> None:
        self._network = network
        self._sessions: dict[McpEndpoint, Session] = {}
        self._ending: set[Session] = set()
        self._broken: set[McpEndpoint] = set()

    async def __aenter__(self) -> Servers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def offers(self, endpoint: McpEndpoint, seconds: float) -> Mapping[str, ServerTool]:
        """A server's tools, by name. Raises McpFailed, ApiRefused, ApiFailed, ExtraMissing."""
        offers = await self._within(seconds, endpoint, lambda session: session.offers())
        self._broken.discard(endpoint)
        return offers

    def breaks(self, endpoint: McpEndpoint) -> bool:
        """Marks a server as broken. Returns False if it was already."""
        known = endpoint in self._broken
        self._broken.add(endpoint)
        return not known

    async def call(
        self, endpoint: McpEndpoint, tool: str, arguments: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        """The raw result of a call. Raises McpFailed, ApiRefused, ApiFailed, ExtraMissing."""
        return await self._within(seconds, endpoint, lambda session: session.call(tool, arguments))

    async def close(self) -> None:
        """Ends all sessions and their programs."""
        sessions = [*self._sessions.values(), *self._ending]
        self._sessions.clear()
        self._ending.clear()
        await asyncio.gather(*(session.close() for session in sessions))

    async def _within(self, seconds: float, endpoint: McpEndpoint, work: Callable[[Session], Awaitable[T]]) -> T:
        session = self._session(endpoint)
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await work(session)
                except McpFailed as error:
                    if not error.forgotten:
                        raise
                session = self._session(endpoint)  # the server has restarted and did nothing
                return await work(session)
        except TimeoutError as error:
            self._retire(endpoint, session)
            reason = f"it did not answer within {seconds:g} s. The next call starts it anew."
            raise McpFailed(server=endpoint.name, reason=reason) from error

    def _session(self, endpoint: McpEndpoint) -> Session:
        known = self._sessions.get(endpoint)
        if known is not None and not known.is_over:
            return known
        if known is not None:
            self._retire(endpoint, known)
        session = self._sessions[endpoint] = _new_session(endpoint, self._network)
        return session

    def _retire(self, endpoint: McpEndpoint, session: Session) -> None:
        session.retire()
        self._ending = {each for each in self._ending if not each.is_done}
        self._ending.add(session)
        if self._sessions.get(endpoint) is session:
            del self._sessions[endpoint]


def _new_session(endpoint: McpEndpoint, network: Network | None) -> Session:
    """A session. The MCP library, an extra that is slow to load, is imported here."""
    from longthread.tools.api.exchange import Network

    try:
        from longthread.tools.mcp.session import Session
    except ImportError as error:
        raise ExtraMissing(what="A tool of type mcp", package="mcp", extra="mcp") from error
    return Session(endpoint, network or Network())
