"""One session with an MCP server, and how it is reached: at a URL, or as a program on this machine.

Each request to a URL goes to a checked address, like those of API tools. A program is started with only the listed
environment, and ended together with its own child processes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from typing import Any, TypeVar

import anyio
import httpx
import httpx2
import mcp_types
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from longthread import __version__
from longthread.errors import ApiRefused, LongthreadError, McpFailed
from longthread.tools.api_exchange import Network, silence_loggers
from longthread.tools.api_request import addresses_of, host_of, port_of
from longthread.tools.mcp import McpEndpoint, Program, ServerTool, ServerUrl

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 300.0
"""Seconds of silence after which a connection ends. Calls have their own limit."""


class Web:
    """The connection to one server. `problem` is the error of a request, which the MCP library does not pass on."""

    def __init__(self, address: ServerUrl, network: Network) -> None:
        self._address = address
        self._network = network
        self.problem: LongthreadError | None = None

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The streams for the MCP library."""
        timeout = httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
        client = httpx2.AsyncClient(
            transport=_Checked(self, self._address, self._network),
            headers={**dict(self._address.headers), "Accept-Encoding": "identity"},
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
        )
        async with (
            client,
            streamable_http_client(
                self._address.url, http_client=client, max_sse_event_size=self._address.most
            ) as streams,
        ):
            yield streams

    async def check_addresses(self, url: httpx.URL) -> list[str]:
        """The checked addresses of the server. Raises ApiRefused, ApiFailed."""
        own = httpx.URL(self._address.url)
        if (url.scheme, host_of(url), port_of(url)) != (own.scheme, host_of(own), port_of(own)):
            raise ApiRefused(reason=f"it leads to another server, {host_of(url)[:100]}:{port_of(url)}.")
        return await addresses_of(
            host_of(url), port_of(url), self._network.resolve, allow_private=self._address.allow_private
        )


class _Checked(httpx2.AsyncBaseTransport):
    """Connects to checked addresses, and limits the size of answers."""

    def __init__(self, web: Web, address: ServerUrl, network: Network) -> None:
        self._web = web
        self._most = address.most
        self._name = address.name
        tls = network.tls or httpx2.create_ssl_context(trust_env=False)
        limits = httpx2.Limits(keepalive_expiry=5)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, http2=False, retries=0, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            addresses = await self._web.check_addresses(httpx.URL(str(request.url)))
        except LongthreadError as error:
            self._web.problem = error
            raise httpx2.ConnectError("refused") from error
        for address in addresses:
            sent = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # with the name as their host
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
            try:
                return self._limit_response(await self._inner.handle_async_request(sent))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                self._web.problem = McpFailed(
                    server=self._name, reason=f"there is no connection to {request.url.host[:100]}."
                )
                if address == addresses[-1]:
                    raise
                del error
        raise httpx2.ConnectError("no address")

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _limit_response(self, response: httpx2.Response) -> httpx2.Response:
        self._web.problem = None
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("it is packed, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Bounded(self._web, self._name, response.stream, self._most),
            extensions=response.extensions,
        )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, web: Web, name: str, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._web = web
        self._name = name
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                reason = f"it sent an answer of more than {self._most} bytes."
                self._web.problem = McpFailed(server=self._name, reason=reason)
                raise httpx2.ReadError("too large")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


_GRACE = 1.0
"""Seconds that a program has to end after its input is closed, and again after SIGTERM."""
_LOOK = 0.01
_ERROR_BYTES = 2_000
"""Last bytes of standard error that are stored."""
_LONGEST = 300
"""Characters of its last line in an error."""


class Process:
    """One run of a program. It calls `on_end` at the end of its output."""

    def __init__(self, program: Program, on_end: Callable[[], None]) -> None:
        self._program = program
        self._on_end = on_end
        self._process: asyncio.subprocess.Process | None = None
        self._errors: deque[int] = deque(maxlen=_ERROR_BYTES)
        self._too_large = False

    def last_words(self) -> str:
        """How it ended, with its last line on standard error."""
        if self._too_large:
            return f"it sent a message of more than {self._program.most} bytes."
        code = self._process.returncode if self._process else None
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        last = lines[-1].strip()[:_LONGEST] if lines else ""
        how = "it ended" if code is None else f"it ended with code {code}"
        return f"{how}. It said last: {last.rstrip('.')}." if last else f"{how}."

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The streams for the MCP library. Raises McpFailed: it cannot be started."""
        process = self._process = await self._start_process()
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

        async def read() -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async with incoming:
                    await self._read(process, incoming.send)
            self._on_end()

        async def write() -> None:
            assert process.stdin is not None
            with suppress(OSError, anyio.ClosedResourceError):
                async for message in outgoing:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(f"{text}\n".encode())
                    await process.stdin.drain()

        tasks = [asyncio.create_task(work) for work in (read(), write(), self._listen(process))]
        try:
            yield received, sent
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(process, tasks)
            for stream in (incoming, received, sent, outgoing):
                stream.close()

    async def _start_process(self) -> asyncio.subprocess.Process:
        program = self._program
        env = dict(program.env)
        command = shutil.which(program.command, path=env.get("PATH", os.environ.get("PATH")))
        if command is None:
            raise McpFailed(server=program.name, reason=f"there is no program {program.command[:100]}.")
        try:
            return await asyncio.create_subprocess_exec(
                command,
                *program.args,
                env=env,
                cwd=program.cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=program.most,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = f"{program.command[:100]} cannot be started ({type(error).__name__})."
            raise McpFailed(server=program.name, reason=reason) from error

    async def _read(self, process: asyncio.subprocess.Process, deliver: Callable[[SessionMessage], object]) -> None:
        """Reads one message per line, and skips other output."""
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than the limit
                self._too_large = True
                return
            if not line:
                return
            with suppress(ValueError):
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await deliver(SessionMessage(message))  # type: ignore[misc]

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while piece := await process.stderr.read(4_096):
            self._errors.extend(piece)

    async def _end(self, process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
        assert process.stdin is not None
        process.stdin.close()
        for sign in (None, signal.SIGTERM):
            if sign is not None:
                _signal(process, sign)
            if await _has_ended(process):
                break
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # with its children
        await _has_ended(process)
        # A detached child may hold its streams open.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
        _, left = await asyncio.wait(tasks, timeout=_GRACE)
        for task in left:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Whether it ends in time. `wait` would also wait for children that hold its streams."""
    deadline = time.monotonic() + _GRACE
    while process.returncode is None and time.monotonic() < deadline:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_LOOK)
    return process.returncode is not None


def _signal(process: asyncio.subprocess.Process, sign: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, sign)


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
