"""The server of an implementation of type `mcp`, and the sessions of this process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from longthread.errors import ExtraMissing, McpFailed, SecretUnusable, ToolInvalid
from longthread.tools.secrets import Secrets, secret_names
from longthread.tools.tool import ImplementationFields

if TYPE_CHECKING:
    from longthread.tools.api_exchange import Network
    from longthread.tools.mcp_session import Session

FIELDS = (
    "server", "transport", "command", "args", "env", "cwd", "url", "headers", "tool_name", "tools", "exclude",
    "secrets", "allow_private", "retry_safe", "timeout_ms", "max_bytes",
)  # fmt: skip
_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable_http": "http", "streamable-http": "http"}
_OF = {"stdio": ("command", "args", "env", "cwd"), "http": ("url", "headers", "allow_private")}
"""Fields of one transport only."""
_MILLISECONDS, _MOST_MILLISECONDS = 30_000, 300_000
_BYTES, _MOST_BYTES = 4_000_000, 20_000_000
_URL = re.compile(r"(https?://[^/?#\s]+)([^#\s]*)", re.I)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PROTOCOLS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect",
     "accept", "accept-encoding", "mcp-session-id", "mcp-protocol-version", "last-event-id"}
)  # fmt: skip
"""Headers that the protocol itself sets."""
_SECRET = "${"


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server describes it. None of it is trusted."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    """A server program with its secrets. `env` is its whole environment."""

    name: str
    command: str
    args: tuple[str, ...] = field(repr=False)
    env: tuple[tuple[str, str], ...] = field(repr=False)
    cwd: str | None
    most: int


@dataclass(frozen=True)
class ServerUrl:
    """A server at a URL, with its secrets."""

    name: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    allow_private: bool
    most: int


McpEndpoint = Program | ServerUrl
"""A server. Equal ones share a session. `most` is the limit of a message in bytes."""


class Implementation:
    """A parsed implementation. Raises ToolInvalid."""

    def __init__(self, implementation: Mapping[str, Any]) -> None:
        fields = ImplementationFields(implementation, "mcp", FIELDS)
        self._transport = _transport(fields, implementation)
        self.seconds = fields.whole("timeout_ms", _MILLISECONDS, _MOST_MILLISECONDS) / 1_000
        self.retry_safe = fields.truth("retry_safe")
        self._most = fields.whole("max_bytes", _BYTES, _MOST_BYTES)
        self._private = fields.truth("allow_private")
        self._args = fields.texts("args")
        self._env = fields.texts_by_name("env")
        self._headers = fields.texts_by_name("headers")
        self._cwd = fields.text("cwd", "a folder") if "cwd" in implementation else None
        if self._transport == "stdio":
            self._place = fields.text("command", "the program that is the server, such as npx")
            self._check_program()
            own = Path(self._place).name
        else:
            self._place = fields.text("url", "an http:// or https:// URL").strip()
            own = self._checked_host()
        self._server = fields.text("server", "a name", default=own[:100] or "its", longest=100)
        self.tool_name = fields.text("tool_name", "one of the server's") if "tool_name" in implementation else None
        self._tools = fields.texts("tools") or ("*",)
        self._exclude = fields.texts("exclude")
        if self.tool_name is not None and not implementation.keys().isdisjoint(("tools", "exclude")):
            raise ToolInvalid(
                problem="`tools` and `exclude` choose from all tools; `tool_name` has chosen one already."
            )
        used = [*self._env.values(), *self._headers.values(), self._place]
        self.secrets = secret_names(implementation, used)

    def wants(self, tool: str) -> bool:
        """Whether `tools` and `exclude` choose a tool of the server."""
        chosen = any(fnmatchcase(tool, pattern) for pattern in self._tools)
        return chosen and not any(fnmatchcase(tool, pattern) for pattern in self._exclude)

    def endpoint(self, secrets: Secrets) -> McpEndpoint:
        """The server. Raises SecretUnusable."""
        if self._transport == "stdio":
            env = tuple(sorted((name, secrets.fill(value)) for name, value in self._env.items()))
            return Program(self._server, self._place, self._args, env, self._cwd, self._most)
        url = secrets.filled_in_url(self._place)
        headers = tuple(sorted((name, secrets.fill(value)) for name, value in self._headers.items()))
        if other := next((name for name, value in headers if not value.isascii()), None):
            raise SecretUnusable(name=other, problem="goes into a header, which takes ASCII.")
        return ServerUrl(self._server, url, headers, self._private, self._most)

    def _check_program(self) -> None:
        if any(_SECRET in one for one in (self._place, *self._args, self._cwd or "")):
            raise ToolInvalid(problem="a secret in `args` could be read by every user of the machine. Put it in `env`.")
        for name, value in self._env.items():
            if not _VARIABLE.fullmatch(name):
                raise ToolInvalid(problem=f"`env` has {name[:50]!r}, which is no name of a variable.")
            if "\0" in value:
                raise ToolInvalid(problem=f"`env` has a NUL in {name}.")
        if any("\0" in one for one in (self._place, *self._args, self._cwd or "")):
            raise ToolInvalid(problem="there is a NUL in `command`, `args` or `cwd`.")

    def _checked_host(self) -> str:
        import httpx  # it takes time to load, and most agents have no such server

        from longthread.tools.api_request import port_of

        found = _URL.fullmatch(self._place)
        try:
            url = httpx.URL(found[1] if found else "")
            usable = bool(url.host) and not url.userinfo and port_of(url) > 0
        except (httpx.InvalidURL, ValueError, KeyError):
            usable = False
        if found is None or not usable or _SECRET in found[1]:
            raise ToolInvalid(
                problem="`url` is not an http:// or https:// URL, with a host that is written out and no password."
            )
        for name, value in self._headers.items():
            if not _HEADER.fullmatch(name) or name.lower() in _PROTOCOLS:
                raise ToolInvalid(problem=f"`headers` has {name[:50]!r}, which is none that a tool may set.")
            if not value.isascii() or not value.isprintable():
                raise ToolInvalid(problem=f"`headers` has a value for {name} that is not ASCII in one line.")
        return url.host


def _transport(fields: ImplementationFields, implementation: Mapping[str, Any]) -> str:
    default = "stdio" if "command" in implementation else "http"
    given = fields.text("transport", "stdio or streamable_http", default=default)
    if given not in _TRANSPORTS:
        raise ToolInvalid(problem=f"`transport` is {given[:40]!r}: stdio or streamable_http.")
    transport = _TRANSPORTS[given]
    if implementation.keys().isdisjoint(("command", "url")):
        raise ToolInvalid(problem="`command`, for stdio, or `url`, for streamable_http, is missing.")
    other = "http" if transport == "stdio" else "stdio"
    wrong = [name for name in _OF[other] if name in implementation]
    if wrong:
        raise ToolInvalid(problem=f"`{wrong[0]}` is no field of the transport {given}.")
    return transport


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
    from longthread.tools.api_exchange import Network

    try:
        from longthread.tools.mcp_session import Session
    except ImportError as error:
        raise ExtraMissing(what="A tool of type mcp", package="mcp", extra="mcp") from error
    return Session(endpoint, network or Network())
