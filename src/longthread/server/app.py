"""The web application: its routes and errors, and how it is served on a socket, until Ctrl-C.

A line of its log has a fixed text, and of the values in it only numbers, ids and the classes of errors. Questions, SQL,
answers and what a provider or a database said stay out, in every logger's lines.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import re
import signal
import socket
import sys
import traceback
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from uvicorn.loops.auto import auto_loop_factory

from longthread import __version__
from longthread.access import audit, sessions, users
from longthread.errors import ServerError
from longthread.gateway.stored_calls import rebuild_in_background
from longthread.llm.connections import ModelFactory
from longthread.llm.models import resolve_model
from longthread.runs.analyst import Analyst
from longthread.server import openapi, page, problems
from longthread.server.access_table import protect
from longthread.server.authentication import expect_login
from longthread.server.fields import EncodedPaths
from longthread.server.gateway_access import Door
from longthread.server.http import HTTP_LIMITS, HttpLimits, HttpServer, listen
from longthread.server.requests import CountedRequests, is_loopback
from longthread.server.routes import (
    account,
    administration,
    agui,
    audit_log,
    boards,
    calls,
    chat,
    conversations,
    definitions,
    events,
    grants,
    health,
    keys,
    memories,
    messages,
    oidc,
    personal_data,
    projects,
    recall,
    shares,
    waiting,
)
from longthread.server.routes import models as model_routes
from longthread.server.routes import sources as source_routes
from longthread.server.security import RequestGuard
from longthread.server.state import Served, to_gateway
from longthread.settings import Settings
from longthread.store.driver import Driver

GATEWAY = "/v1"
"""Where the endpoints of providers are."""
LARGEST_INPUT = 32 * 2**20
"""Bytes of an AG-UI input."""


def create_app(settings: Settings, *, models: ModelFactory = resolve_model, analyst: Analyst | None = None) -> FastAPI:
    """The application on the store that `settings` name, opened with the app and closed with it.

    A given `analyst` is used instead and stays open when the app ends. Its runs are stopped either way, and can be
    resumed. Raises ServerError: a token or an origin of the gateway's is none.
    """
    door = Door.of(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with nullcontext(analyst) if analyst is not None else Analyst.open(settings, models=models) as opened:
            await expect_no_users(settings, opened.store)
            app.state.served = served = Served(opened, door)
            app.state.setup_token = await _make_setup_token(settings, opened.store)
            if not settings.read_only:
                opened.claims.start()
                if settings.titles:
                    opened.titles.start()
            working = [served.warm_up(), rebuild_in_background(opened.store)]
            if settings.auth != "local" and not settings.read_only:
                working.append(audit.delete_old_rows_hourly(opened.store, settings.audit_days))
            background = [asyncio.create_task(each) for each in working]
            try:
                yield
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, return_exceptions=True)  # they may hold a source's worker
                await served.close()
                await served.gateway.close()  # after its last request

    app = FastAPI(
        title="Longthread",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        # Their pages load scripts from a CDN.
        docs_url=None,
        redoc_url=None,
    )
    problems.install(app)
    openapi.install(app)
    for router in (
        health.router,
        definitions.agents_router,
        conversations.router,
        projects.router,
        messages.router,
        chat.router,
        waiting.queue_router,
        messages.branches_router,
        calls.router,
        chat.results_router,
        messages.feedback_router,
        calls.usage_router,
        model_routes.router,
        memories.router,
        recall.router,
        source_routes.router,
        definitions.terms_router,
        shares.router,
        boards.router,
        definitions.router,
        waiting.approvals_router,
        events.router,
        agui.router,
        account.router,
        oidc.router,
        administration.router,
        audit_log.router,
        keys.router,
        grants.router,
        personal_data.router,
    ):
        app.router.routes.extend(router.routes)

    app.mount("/assets", page.assets, name="assets")
    app.mount(GATEWAY, to_gateway, name="gateway")
    app.router.routes.extend(page.router.routes)
    app.router.routes[:] = protect(app.router.routes)
    app.add_middleware(EncodedPaths)
    # A character is up to four bytes, and JSON may write it as twelve (two escaped surrogates).
    limit = 12 * settings.max_question + 65_536
    # AG-UI's clients send the whole conversation.
    # A little more than a file may have: the route itself says that one is too large.
    limits = {"/ag-ui/": max(limit, LARGEST_INPUT), "/api/uploads": (settings.max_upload_mb + 1) * 2**20}
    app.add_middleware(
        RequestGuard,
        host=settings.host,
        public_url=settings.public_url,
        limit=limit,
        limits=limits,
        unguarded=f"{GATEWAY}/",
    )
    app.add_middleware(CountedRequests)
    return app


async def expect_no_users(settings: Settings, store: Driver) -> None:
    """Raise ServerError: everyone who reaches the server would act as one of the users whom its store has."""
    if settings.auth != "local" or not settings.no_login:
        return
    async with store.reading() as tx:
        if not await users.count_users(tx):
            return
    reason = "its store has users who log in, and `--no-login` would let everyone who reaches it act as one of them. "
    raise ServerError(reason=f"{reason}Set LONGTHREAD_AUTH=login or proxy, or give another store.")


async def _make_setup_token(settings: Settings, store: Driver) -> str | None:
    """Return the token of a link that makes the first user; None: there is one, or another server has made the link."""
    if settings.auth == "local" or settings.read_only:
        return None
    async with store.writing() as tx:
        return None if await users.count_users(tx) else await sessions.create_setup_link(tx)


_TRIM_THRESHOLD, _ARENA_MAX = -1, -8
"""Names of settings, as in malloc.h."""
_ARENAS = 2
_FREE_BYTES = 128 * 1024


def give_back_freed_memory() -> None:
    """Let glibc give freed memory back to the system; elsewhere, do nothing.

    It has up to eight arenas a processor, each fragmented by the threads that use it, and learns to keep more and more
    for later. Threads of ours hold Python's lock when they allocate: two arenas are enough.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_ARENA_MAX, _ARENAS)
            mallopt(_TRIM_THRESHOLD, _FREE_BYTES)


LEFT_OUT = "…"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|call_\w{1,64}")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": at, "level": record.levelname.lower(), "logger": record.name}
        line["event"] = _event(record)
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False, default=lambda value: type(value).__name__)


def log_as_json() -> None:
    """Write the logs of this process to standard error as JSON: what Longthread tells, and others' warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("longthread").setLevel(logging.INFO)
    logging.captureWarnings(capture=True)


def _event(record: logging.LogRecord) -> str:
    """Return the fixed text with the values that are no contents."""
    values = record.args if isinstance(record.args, tuple) else ()
    try:
        return str(record.msg) % tuple(_harmless(value) for value in values) if values else str(record.msg)
    except (TypeError, ValueError):  # `%d` of what is left out
        return str(record.msg)


def _harmless(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    if isinstance(value, BaseException):
        return type(value).__name__
    return value if isinstance(value, str) and _ID.fullmatch(value) else LEFT_OUT


_log = logging.getLogger(__name__)


class Server(HttpServer):
    """Ends runs and their streams before it waits for requests. SIGTERM leaves the runs to other servers, and a second
    signal ends the steps under way. Ctrl-C stops the runs."""

    def __init__(
        self,
        app: Starlette,
        listener: socket.socket,
        *,
        limits: HttpLimits = HTTP_LIMITS,
        on_ready: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(app, listener, limits=limits, on_ready=on_ready)
        self._app = app
        self._drains = False
        self._hurry = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and self._loop is not None:
            self._loop.call_soon_threadsafe(self._hurry.set)
        else:
            self._drains = sig == signal.SIGTERM
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leave or stop the runs first: their streams end with them."""
        served: Served = self._app.state.served
        if self._drains:
            await served.drain(self._hurry)
        await served.close()
        await super().shutdown(sockets or [self.listener])


def run(
    settings: Settings,
    *,
    open_browser: bool = False,
    on_ready: Callable[[str], None] | None = None,
    on_setup: Callable[[str], None] | None = None,
    models: ModelFactory = resolve_model,
) -> None:
    """Serve until Ctrl-C, then stop the runs under way, which can be resumed; or until SIGTERM, then leave them to
    other servers.

    `on_ready` gets the URL once the server answers, `on_setup` the address at which the first user is made, if there is
    none. Raises PortInUse, AddressUnavailable, StoreError, or ServerError: others reach a server without login.
    """

    expect_login(settings)
    give_back_freed_memory()
    if settings.log == "json":
        log_as_json()

    app = Starlette()

    def ready(url: str) -> None:
        if settings.no_login and settings.auth == "local" and not is_loopback(settings.host):
            _log.warning("Anyone who reaches %s can read and ask: --no-login says so.", url)
        if on_ready is not None:
            on_ready(url)
        if on_setup is not None and (token := app.state.setup_token) is not None:
            on_setup(f"{settings.public_url or url}{sessions.link_path(token)}")
        if open_browser:
            webbrowser.open(url)

    with listen(settings.host, settings.port) as listener:

        async def serve() -> None:
            nonlocal app
            async with Analyst.open(settings, models=models) as analyst:
                await expect_no_users(settings, analyst.store)
                app, limits = create_app(settings, analyst=analyst), HttpLimits.of(settings)
                await Server(app, listener, limits=limits, on_ready=ready).serve()

        with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
            runner.run(serve())
