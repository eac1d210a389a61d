"""How an MCP server is reached: at a URL, or as a program on this machine.

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
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import httpx
import httpx2
import mcp_types
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from longthread.errors import ApiRefused, LongthreadError, McpFailed
from longthread.tools.api.address import addresses_of, host_of, port_of
from longthread.tools.api.exchange import Network
from longthread.tools.mcp.servers import Program, ServerUrl

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
