"""The offered tools as a server of the Model Context Protocol: over standard streams to one client, or over HTTP.

The SDK handles both versions of the protocol. Over HTTP, `RequestGuard` checks `Host` and the body. Then every request
of another origin is refused, as the protocol asks, and every one without the configured token. Without a token only the
owner may ask. Requests end when the server closes.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

import anyio
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel.server import Server as ProtocolServer
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longthread import __version__
from longthread.access.principal import Principal
from longthread.errors import LoginNeeded, LongthreadError, ScopeMissing, ServerError, SeveralKeys, TooManyRequests
from longthread.llm.connections import ModelFactory
from longthread.llm.models import resolve_model
from longthread.model.lru import LRU
from longthread.model.run import RunAsker
from longthread.runs.analyst import Analyst
from longthread.runs.rights import asker_of
from longthread.server.app import Server
from longthread.server.authentication import PRINCIPAL, Authentication, StreamWatch
from longthread.server.http import HttpLimits, listen
from longthread.server.mcp import stdio
from longthread.server.mcp.ask_tools import AskTools
from longthread.server.mcp.memory_tools import MemoryTools, RecallTool
from longthread.server.mcp.offer import OfferedTool
from longthread.server.mcp.thread_tools import MEDIA_TYPE, TEMPLATE, ThreadTools, Transcripts, ViewTool, uri_of
from longthread.server.problems import Problem, for_clients, status_of
from longthread.server.requests import is_loopback, is_owner, is_same_origin
from longthread.server.security import RequestGuard
from longthread.settings import Settings
from longthread.tools.arguments import Arguments

T = TypeVar("T")
_INSTRUCTIONS = (
    "Longthread answers questions about databases in conversations that are kept, and remembers them. `ask` puts a "
    "question; give the `thread` of its answer to go on. `recall` finds what was said in any earlier conversation."
)


def offers(
    analyst: Analyst,
    user: str,
    *,
    agent: str | None = None,
    any_source: bool = False,
    read_only: bool = False,
    asker: RunAsker | None = None,
) -> list[OfferedTool]:
    """Return all tools of one user; with `read_only`, only the tools that change nothing. `asker` is whose rights runs
    have, where users are known by API keys."""
    store = analyst.store
    every = [
        *AskTools(analyst, user, agent=agent, any_source=any_source, asker=asker).offers(),
        *ThreadTools(store, user).offers(),
        RecallTool(analyst, user, asker=asker).offer(),
        *MemoryTools(analyst, user, agent=agent).offers(),
        ViewTool(store, user).offer(),
    ]
    return [offer for offer in every if offer.reads or not read_only]


class UserTools:
    """What one user is offered: tools, and conversations as resources."""

    def __init__(self, offered: Sequence[OfferedTool], transcripts: Transcripts) -> None:
        self.offers = {offer.name: offer for offer in offered}
        self.arguments = {offer.name: Arguments(offer.parameters, tool=offer.name) for offer in offered}
        self.transcripts = transcripts


FindTools = Callable[[Any], UserTools]
"""Returns what the sender of a request is offered, by the protocol's context."""


def protocol_server(find_tools: FindTools) -> ProtocolServer[Any]:
    """The server of these tools, and of conversations as resources."""
    tools = _Tools(find_tools)
    resources = _Resources(find_tools)
    return ProtocolServer(
        "longthread",
        title="Longthread",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
    )


class _Tools:
    def __init__(self, find_tools: FindTools) -> None:
        self._find_tools = find_tools

    async def list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(offer) for offer in self._find_tools(context).offers.values()])

    async def call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        own = self._find_tools(context)
        offer = own.offers.get(params.name)
        if offer is None:
            known = ", ".join(own.offers)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:100]}. There are: {known}.")
        steps = 0

        async def progress(message: str) -> None:
            nonlocal steps
            steps += 1
            await context.session.report_progress(steps, None, message)

        try:
            arguments = own.arguments[offer.name].validate(params.arguments or {})
            answer = await _alone(offer.call(arguments, progress))
        except LongthreadError as error:
            return types.CallToolResult(content=[types.TextContent(text=for_clients(str(error)))], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(text=answer.text)], structured_content=dict(answer.data), is_error=answer.failed
        )


async def _alone(work: Coroutine[Any, Any, T]) -> T:
    """The result of work in its own task, which is cancelled once: the SDK would cancel it again at every step of its
    cleanup."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            task.cancel()
            await asyncio.wait({task})
        raise
    return task.result()


def _tool(offer: OfferedTool) -> types.Tool:
    return types.Tool(
        name=offer.name,
        title=offer.title,
        description=offer.description,
        input_schema=dict(offer.parameters),
        output_schema=dict(offer.output),
        annotations=types.ToolAnnotations(
            title=offer.title,
            read_only_hint=offer.reads,
            destructive_hint=offer.destroys,
            idempotent_hint=offer.same_again,
            open_world_hint=offer.reaches_out,
        ),
    )


class _Resources:
    def __init__(self, find_tools: FindTools) -> None:
        self._find_tools = find_tools

    async def list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        try:
            threads, cursor = await self._find_tools(context).transcripts.page(params.cursor if params else None)
        except LongthreadError as error:
            raise MCPError(types.INVALID_PARAMS, for_clients(str(error))) from error
        found = [
            types.Resource(
                uri=uri_of(each), name=each.title or each.id, mime_type=MEDIA_TYPE, description="A conversation"
            )
            for each in threads
        ]
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def templates(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        about = "A conversation, as list_threads names it"
        template = types.ResourceTemplate(uri_template=TEMPLATE, name="thread", description=about, mime_type=MEDIA_TYPE)
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            text = await self._find_tools(context).transcripts.read(params.uri)
        except LongthreadError as error:
            raise MCPError(types.INVALID_PARAMS, for_clients(str(error)), {"uri": params.uri[:1_000]}) from error
        contents = types.TextResourceContents(uri=params.uri, mime_type=MEDIA_TYPE, text=text)
        return types.ReadResourceResult(contents=[contents])


_GRACE = 2.0
"""Seconds for sending answers when the server closes."""
_BEARER = "bearer "


class OpenRequests:
    """The requests under way."""

    def __init__(self) -> None:
        self._answers: dict[anyio.CancelScope, asyncio.Event] = {}
        self._streams: set[anyio.CancelScope] = set()

    def enter(self, cancel: anyio.CancelScope, method: str) -> None:
        """Add a request. A GET is a stream that ends only with the session."""
        if method == "GET":
            self._streams.add(cancel)
        else:
            self._answers[cancel] = asyncio.Event()

    def leave(self, cancel: anyio.CancelScope) -> None:
        """Remove an answered request."""
        self._streams.discard(cancel)
        if cancel in self._answers:
            self._answers.pop(cancel).set()

    async def close(self) -> None:
        """Cancel streams at once, and other requests that are not answered in time."""
        for stream in list(self._streams):
            stream.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                for done in list(self._answers.values()):
                    await done.wait()
        for answer in list(self._answers):
            answer.cancel()


class Authenticator:
    """ASGI middleware. Where users are known, every request needs an API key with the scope `mcp`, which `callers`
    finds. Else it needs the `token`: `Authorization: Bearer` or `X-Api-Key`; without one, it is the owner's."""

    def __init__(
        self, app: ASGIApp, *, token: str | None, requests: OpenRequests, callers: Authentication | None = None
    ) -> None:
        self._app = app
        self._token = token
        self._callers = callers
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope) or await self._identify(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        sender = _Sender(send)
        with anyio.CancelScope() as cancel:
            self._requests.enter(cancel, scope["method"])
            try:
                await self._watch(scope)(scope, receive, sender.send)
            finally:
                self._requests.leave(cancel)
        if cancel.cancelled_caught:
            await sender.finish(scope, receive)

    def _watch(self, scope: Scope) -> ASGIApp:
        """Return what answers a request, and ends a stream when its caller's key ends."""
        callers, principal = self._callers, cast(Principal | None, scope.get(PRINCIPAL))
        if callers is None or principal is None:
            return self._app
        return partial(StreamWatch(lambda: callers.find_by_key(scope), principal).run, self._app)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        if not is_same_origin(headers, headers.get("host", "")):
            detail = "A page of another origin sent this request. Use a program, which sends no Origin."
            return Problem(403, "cross_origin", detail, path=scope["path"])
        if self._callers is not None:
            return None
        if self._token is None and not is_owner(scope):
            detail = "This server has no token, and answers only the user of its own machine, without a proxy. Others "
            detail += "need a token: its operator sets LONGTHREAD_MCP_TOKEN."
            return Problem(403, "not_local", detail, path=scope["path"])
        if self._token is None or _is(self._token, headers):
            return None
        detail = "Send the token of this server: `Authorization: Bearer TOKEN`, as LONGTHREAD_MCP_TOKEN says it."
        problem = Problem(401, "token_wrong", detail, path=scope["path"])
        problem.headers["WWW-Authenticate"] = "Bearer"
        return problem

    async def _identify(self, scope: Scope) -> Problem | None:
        """Note in a request's scope whose key it carries; the library lets a session be used by its key alone. Return
        the refusal of a request without such a key."""
        if self._callers is None:
            return None
        try:
            principal = await self._callers.find_by_key(scope)
            if principal is None or principal.key is None:
                raise LoginNeeded
            principal.expect_scope("mcp")
            self._callers.count_request(principal)
        except (LoginNeeded, ScopeMissing, SeveralKeys, TooManyRequests) as error:
            problem = Problem(status_of(type(error)), error.code, str(error), path=scope["path"])
            if problem.status_code == 401:
                problem.headers["WWW-Authenticate"] = "Bearer"
            if isinstance(error, TooManyRequests):
                problem.headers["Retry-After"] = str(error.seconds)
            return problem
        about = AccessToken(token="", client_id=principal.key.id, scopes=[], subject=principal.user)
        cast(dict[str, Any], scope).update({PRINCIPAL: principal, "user": AuthenticatedUser(about)})
        return None


def _is(token: str, headers: Headers) -> bool:
    header = headers.get("authorization", "")
    given = header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else headers.get("x-api-key", "")
    return hmac.compare_digest(given.encode(), token.encode())


class _Sender:
    """Follows what was sent of an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._over = False

    async def send(self, message: Message) -> None:
        self._begun = True
        self._over = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self, scope: Scope, receive: Receive) -> None:
        """End a cancelled answer."""
        if not self._begun:
            problem = Problem(503, "closing", "This server is closing. Try again later.", path=scope["path"])
            await problem(scope, receive, self._send)
        elif not self._over:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


PATH = "/mcp"
_SHORTEST_TOKEN = 16
_REMEMBERED = 1_000
"""Users whose tools are kept."""


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
            await stdio.serve(protocol_server(_offer_all(analyst, choice)), reading, writing, most=_most(settings))

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
    has_users = settings.auth != "local"
    if settings.mcp_token is None and not has_users and not is_loopback(settings.host):
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
    has_users = settings.auth != "local"
    find_tools = _offer_to_callers(analyst, choice) if has_users else _offer_all(analyst, choice)
    manager = StreamableHTTPSessionManager(protocol_server(find_tools), max_request_body_size=most)
    callers = Authentication(settings, analyst.store) if has_users else None
    requests = OpenRequests()
    token = settings.mcp_token.get_secret_value() if settings.mcp_token else None
    app = Starlette(
        routes=[Route(PATH, endpoint=StreamableHTTPASGIApp(manager))],
        middleware=[
            Middleware(RequestGuard, host=settings.host, limit=most, public_url=settings.public_url),
            Middleware(Authenticator, token=token, requests=requests, callers=callers),
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


def _offer_all(analyst: Analyst, choice: ClientRights) -> FindTools:
    """Offer the tools of the settings' user to every client: a server's token is one user's."""
    own = _make_tools(analyst, choice, analyst.settings.user, None)
    return lambda context: own


def _offer_to_callers(analyst: Analyst, choice: ClientRights) -> FindTools:
    """Offer each client the tools of the user whose key it sends."""
    known: LRU[tuple[str, RunAsker | None], UserTools] = LRU(_REMEMBERED)

    def find_tools(context: Any) -> UserTools:
        principal: Principal = context.request.scope[PRINCIPAL]
        who = principal.user, asker_of(principal)
        own = known.get(who)
        if own is None:
            own = _make_tools(analyst, choice, *who)
            known.put(who, own)
        return own

    return find_tools


def _make_tools(analyst: Analyst, choice: ClientRights, user: str, asker: RunAsker | None) -> UserTools:
    offered = offers(
        analyst, user, agent=choice.agent, any_source=choice.any_source, read_only=choice.read_only, asker=asker
    )
    return UserTools(offered, Transcripts(analyst.store, user))


def _most(settings: Settings) -> int:
    """Bytes of a message: a character of a question may be written as twelve."""
    return 12 * settings.max_question + 65_536
