"""One session with an MCP server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from typing import Any, TypeVar

import anyio
import mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from longthread import __version__
from longthread.errors import LongthreadError, McpFailed
from longthread.tools.api.exchange import Network, silence_loggers
from longthread.tools.mcp.servers import McpEndpoint, Program, ServerTool
from longthread.tools.mcp.transports import Process, Web

_IDLE = 600.0
"""Seconds without a call after which a session ends. The next call starts another."""
_PAGES = 50
_TOOLS = 1_000
_CLOSING = 3.0
"""Time limit of closing."""
T = TypeVar("T")


class Session:
    """Starts at once, in a task of its own: the library's objects must be closed in the task that opened them. It
    supports both versions of the protocol, the newer one first."""

    def __init__(self, endpoint: McpEndpoint, network: Network) -> None:
        self._name = endpoint.name
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._way = Process(endpoint, self._stop.set) if isinstance(endpoint, Program) else Web(endpoint, network)
        self._client: Client | None = None
        self._offers: dict[str, ServerTool] = {}
        self._stale = False
        self._busy = 0
        self._used = time.monotonic()
        self._retired = False
        self._problem: Exception | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    @property
    def is_over(self) -> bool:
        """Whether a new session is needed."""
        return self._retired or self._stop.is_set() or self._task.done()

    @property
    def is_done(self) -> bool:
        """Whether its task has ended."""
        return self._task.done()

    @property
    def version(self) -> str | None:
        """The negotiated version of the protocol, once it has started."""
        return self._client.protocol_version if self._client and self._ready.is_set() else None

    async def offers(self) -> Mapping[str, ServerTool]:
        """The server's tools, by name. Raises McpFailed, ApiRefused, ApiFailed."""

        async def work(client: Client) -> Mapping[str, ServerTool]:
            if self._stale:
                await self._list(client)
            return self._offers

        return await self._working(work)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The raw result of a call. Raises McpFailed, ApiRefused, ApiFailed, KeyError: there is no such tool."""

        async def work(client: Client) -> dict[str, Any]:
            result = await client.call_tool(tool, dict(arguments))
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        return await self._working(work)

    def retire(self) -> None:
        """Ends the session after its running calls."""
        self._retired = True
        if not self._busy:
            self._finish()

    async def close(self) -> None:
        """Ends the session."""
        self._retired = True
        self._finish()
        await asyncio.wait({self._task})

    def _finish(self) -> None:
        """Ends the session within a few seconds, or at once if it has not started."""
        self._stop.set()
        self._scope.deadline = min(
            self._scope.deadline, anyio.current_time() + (_CLOSING if self._ready.is_set() else 0)
        )

    async def _run(self) -> None:
        with silence_loggers(), self._scope:
            try:
                async with Client(
                    self._way.streams(),
                    cache=None,
                    message_handler=self._on_message,
                    client_info=mcp_types.Implementation(name="longthread", version=__version__),
                ) as client:
                    self._client = client
                    await self._list(client)
                    self._ready.set()
                    await self._until_stopped()
            except Exception as error:  # noqa: BLE001 - waiting calls raise it
                self._problem = error

    async def _until_stopped(self) -> None:
        while not self._stop.is_set():
            left = _IDLE if self._busy else self._used + _IDLE - time.monotonic()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await self._stop.wait()
            except TimeoutError:
                continue

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._stale = True

    async def _list(self, client: Client) -> None:
        self._stale = False
        found: dict[str, ServerTool] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools[: _TOOLS - len(found)]:
                found[tool.name] = ServerTool(tool.name, tool.description or tool.title or "", tool.input_schema)
            cursor = page.next_cursor
            if cursor is None or len(found) >= _TOOLS:
                break
        self._offers = found

    async def _working(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Waits for the start of the session and runs `work`. Raises the reason if the session ends."""
        self._busy += 1
        try:
            with silence_loggers():
                try:
                    return await self._or_end(self._after_ready(work))
                except MCPError as error:
                    raise await self._translate_error(error) from error
                except (ValidationError, RuntimeError, ValueError) as error:
                    reason = f"its answer is not as the protocol or its own schema has it ({str(error)[:500]})."
                    raise McpFailed(server=self._name, reason=reason) from error
        finally:
            self._busy -= 1
            self._used = time.monotonic()
            if self._retired and not self._busy:
                self._finish()

    async def _after_ready(self, work: Callable[[Client], Awaitable[T]]) -> T:
        await self._ready.wait()
        assert self._client is not None
        return await work(self._client)

    async def _or_end(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise self._end()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=1)

    async def _translate_error(self, error: MCPError) -> LongthreadError:
        """Translates an error of the protocol; for a closed connection to the reason for its end."""
        if error.code == mcp_types.CONNECTION_CLOSED or self.is_over:
            self._finish()
            await asyncio.wait({self._task}, timeout=_CLOSING)
            return self._end()
        if error.message == "Session terminated":
            self.retire()
            return McpFailed(server=self._name, reason="it has ended the session.", forgotten=True)
        return McpFailed(server=self._name, reason=f"it answered with the error {error.code}: {error.message[:1000]}")

    def _end(self) -> LongthreadError:
        """The reason for the session's end."""
        if isinstance(self._way, Web) and self._way.problem is not None:
            return self._way.problem
        ours = _first(self._problem, LongthreadError)
        if isinstance(ours, LongthreadError):
            return ours
        invalid = _first(self._problem, ValidationError)
        if invalid is not None:
            reason = f"what it says of its tools is not as the protocol has it ({str(invalid)[:500]})."
        elif isinstance(self._way, Process):
            reason = self._way.last_words()
        else:
            protocol = _first(self._problem, MCPError)
            known = protocol or _first(self._problem, Exception)
            reason = f"the session broke off ({type(known).__name__ if known is not protocol else protocol})."
        return McpFailed(server=self._name, reason=f"{reason} The next call starts it anew.")


def _first(error: BaseException | None, kind: type[Exception]) -> BaseException | None:
    """The first error of a kind in nested groups."""
    if isinstance(error, BaseExceptionGroup):
        found = (_first(one, kind) for one in error.exceptions)
        return next((one for one in found if one is not None), None)
    return error if isinstance(error, kind) else None
