"""The state that the routes of one app share, and what the caller of a request may do.

The owner may do all that the command line does, others what the operator chose.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, cast
from urllib.parse import unquote

from fastapi import Depends, Query, Request
from starlette.types import Receive, Scope, Send

from longthread.access import projects
from longthread.access.grants import GrantedRights
from longthread.access.oidc import LoginProvider, make_providers
from longthread.access.principal import PROJECT, Principal, UserRole
from longthread.errors import (
    InvalidInput,
    ModelNotAllowed,
    ProjectNotFound,
    RoleMissing,
    SettingsNotAllowed,
    SourceNotAllowed,
    StoreError,
    ThreadNotFound,
)
from longthread.gateway.service import Gateway, GatewayOptions
from longthread.llm.models import DEMO as DEMO_MODEL
from longthread.model.run import RunAsker
from longthread.runs.analyst import Analyst
from longthread.runs.rights import asker_of
from longthread.server.authentication import PRINCIPAL, Authentication
from longthread.server.gateway import GatewayRouter, own_routes
from longthread.server.gateway_access import Door
from longthread.server.page import LANGUAGES, PageLanguage
from longthread.server.stream import Encoders, UserLists
from longthread.settings import Settings
from longthread.store import log
from longthread.store.maintenance.space import WriteCheck
from longthread.tools.analysis.address import redact_spec
from longthread.tools.catalog.names import may_be_name
from longthread.tools.uploads import Uploads

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class CallerRights:
    """The rights of one request's caller.

    The `owner` is the user of the server's own machine, or an administrator, except with an API key that is limited to
    some agents, models or sources. Others make the server open no file or
    database of their choice, and reach no servers on this machine: they name the configured source and models, the
    demo, or nothing, for a thread has its own source.
    """

    principal: Principal
    settings: Settings

    @property
    def owner(self) -> bool:
        return self.principal.has_role("admin") and not self._is_limited

    @property
    def _is_limited(self) -> bool:
        key = self.principal.key
        return key is not None and (key.agents, key.models, key.sources) != (None, None, None)

    def expect_known(self) -> None:
        """Raise SettingsNotAllowed for whom a server without a login lets in, and who is not its owner."""
        if not self.owner and self.principal.via == "local":
            raise SettingsNotAllowed

    def expect_owner(self) -> None:
        """Raise SettingsNotAllowed or, where users log in, RoleMissing for anybody else."""
        if not self.owner and self.principal.via == "local":
            raise SettingsNotAllowed
        self.expect_role("admin")

    def expect_role(self, role: UserRole) -> None:
        """Raise RoleMissing: the caller has a lower role, or a key with limits to some agents, models or sources, and
        what the caller would make or open is outside of them."""
        self.principal.expect_role(role)
        if self._is_limited:
            raise RoleMissing(needed="API keys without limits to agents, models and sources")

    @property
    def own_source(self) -> str | None:
        """The configured source without its password, as callers see and name it."""
        return None if self.settings.source is None else redact_spec(self.settings.source)

    @property
    def sources(self) -> list[str]:
        """What callers other than the owner may name."""
        return sorted({DEMO, *filter(None, [self.own_source])})

    def source(self, name: str | None) -> str | None:
        """The source that a caller named; None is the thread's or the configured one. Where users log in, whether it is
        granted is checked where it is opened. Raises SourceNotAllowed."""
        if name is not None and name in (self.settings.source, self.own_source):
            return self.settings.source
        if name is None or self.owner or name == DEMO:
            return name
        if self.principal.via != "local" and may_be_name(name):
            return name
        raise SourceNotAllowed(source=redact_spec(name), allowed=", ".join(self.sources))

    def model(self, name: str | None) -> str | None:
        """The model that a caller named; None is the thread's or the configured one. Where users log in, whether it is
        granted is checked where its run begins. Raises ModelNotAllowed."""
        allowed = sorted({DEMO_MODEL, *filter(None, (self.settings.model, self.settings.fallback_model))})
        if name is None or self.owner or name in allowed or self.principal.via != "local":
            return name
        raise ModelNotAllowed(model=name, allowed=", ".join(allowed))


DRAIN_SECONDS = 20.0
"""How long a step may take to end when the server drains."""
_AGAIN_SECONDS = 1.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Served:
    """The analyst and the gateway of a server. Setting `closing` ends the analyst's streams. It is `warm` when a first
    question waits for nothing that later ones do not, and `draining` when it takes no more."""

    analyst: Analyst
    door: Door
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    warm: bool = False
    draining: bool = False
    encoders: Mapping[PageLanguage, Encoders] = field(
        default_factory=lambda: {each: Encoders(each) for each in LANGUAGES}
    )
    lists: UserLists = field(init=False)
    uploads: Uploads = field(init=False)
    writes: WriteCheck = field(init=False)
    authentication: Authentication = field(init=False)
    providers: Mapping[str, LoginProvider] = field(init=False)
    gateway: Gateway = field(init=False)
    gateway_routes: GatewayRouter = field(init=False)

    def __post_init__(self) -> None:
        settings = self.analyst.settings
        self.authentication = Authentication(settings, self.analyst.store)
        self.providers = {} if self.authentication.is_local else make_providers(settings)
        self.uploads = Uploads.of(settings)
        self.writes = WriteCheck(self.analyst.store)
        self.lists = UserLists(self.analyst.store, self.analyst.hub)
        gateway_options = GatewayOptions(settings.user, reply_limit=settings.max_reply_mb << 20, settings=settings)
        callers = self.authentication if self.door.has_users else None
        self.gateway = Gateway(self.analyst.store, own_routes(), gateway_options)
        self.gateway_routes = GatewayRouter(self.gateway, self.door, callers=callers)

    async def warm_up(self) -> None:
        """Load what a first question needs. A store that does not answer is asked again."""
        while not self.warm:
            try:
                await self.analyst.warm()
                self.warm = True
            except StoreError as error:
                _log.warning("The store does not answer yet; trying again: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def drain(self, hurry: asyncio.Event) -> None:
        """Give the runs of this process back to others. `hurry` breaks off the steps under way."""
        self.draining = True
        await self.analyst.drain(DRAIN_SECONDS, hurry)

    async def close(self) -> None:
        """Stop the runs of this process, whose streams still send their end, then end all other streams."""
        await self.analyst.close()
        self.closing.set()
        self.analyst.hub.ring()


async def _get_served(request: Request) -> Served:
    # FastAPI would run a function that is not async in a thread, for each request.
    return cast(Served, request.app.state.served)


async def to_gateway(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for an endpoint of a provider. The gateway itself checks from where it comes, and its size."""
    served: Served = scope["app"].state.served
    await served.gateway_routes(scope, receive, send)


ServedDep = Annotated[Served, Depends(_get_served)]


async def _find_principal(request: Request) -> Principal:
    principal: Principal | None = request.scope.get(PRINCIPAL)
    assert principal is not None, f"{request.url.path} is for those who are known, and `ACCESS` lets others in"
    return principal


PrincipalDep = Annotated[Principal, Depends(_find_principal)]
"""The caller of a request, as `GuardedRoute` found it."""


async def _find_visitor(request: Request) -> Principal | None:
    found: Principal | None = request.scope.get(PRINCIPAL)
    return found


VisitorDep = Annotated[Principal | None, Depends(_find_visitor)]
"""The caller of a request that others may send, too; None: no user is logged in."""


async def _rights(principal: PrincipalDep, served: ServedDep) -> CallerRights:
    return CallerRights(principal, served.analyst.settings)


Rights = Annotated[CallerRights, Depends(_rights)]
"""What the caller of a request may do."""


async def _expect_owner(rights: Rights) -> None:
    rights.expect_owner()


OWNER_ONLY = Depends(_expect_owner)
"""A route with this dependency answers the owner alone."""


async def _expect_builder(rights: Rights) -> None:
    rights.expect_known()
    rights.expect_role("builder")


async def _expect_known(rights: Rights) -> None:
    rights.expect_known()


BUILDER_ONLY = Depends(_expect_builder)
"""A route with this dependency answers the owner, and builders who have logged in."""
KNOWN_ONLY = Depends(_expect_known)
"""A route with this dependency answers the owner, and users who have logged in."""


async def acting_user(served: Served, principal: Principal, thread_id: str | None, project: str | None = None) -> str:
    """Return whose conversations and memories a request is about: the caller's own, or those of a project. A thread in
    a project of the caller's is the project's. Where that is not so, it is looked for among the caller's own, where it
    is as unknown as any other. Raises ProjectNotFound: the caller is no member of `project`."""
    if thread_id is None and project is None:
        return principal.user
    own = await served.authentication.projects_of(principal)
    if project is not None:
        if project not in own:
            raise ProjectNotFound(project=project)
        return f"{PROJECT}{project}"
    if not own or thread_id is None:
        return principal.user
    async with served.analyst.store.reading() as tx:
        return await projects.find_place(tx, thread_id, own) or principal.user


async def caller(request: Request, principal: PrincipalDep, served: ServedDep) -> str:
    """The user of a request: whose conversations and memories it is about."""
    named = request.path_params.get("thread_id")
    return await acting_user(served, principal, unquote(named) if named else request.query_params.get("thread_id"))


Caller = Annotated[str, Depends(caller)]


async def project_caller(
    request: Request,
    principal: PrincipalDep,
    served: ServedDep,
    project: Annotated[str | None, Query(max_length=100)] = None,
) -> str:
    """The user of a request that may name a project: whose conversations and memories it is about."""
    query = request.query_params
    return await acting_user(served, principal, query.get("thread_id", query.get("parent")), project)


ProjectCaller = Annotated[str, Depends(project_caller)]
"""As `Caller`; with `project`, the conversations and memories of that project."""


async def _load_granted(principal: PrincipalDep, served: ServedDep, user: Caller) -> GrantedRights:
    return await served.analyst.runs.rights.of_caller(principal, user_id=user)


Granted = Annotated[GrantedRights, Depends(_load_granted)]
"""What was granted to the caller of a request."""


async def _find_asker(principal: PrincipalDep) -> RunAsker | None:
    return asker_of(principal)


AskerDep = Annotated[RunAsker | None, Depends(_find_asker)]
"""Who asks, as runs store it; None on a server without a login."""


async def expect_client_id(served: Served, user: str, thread_id: str | None) -> None:
    """Raise InvalidInput for a conversation's id that a client may not choose where users log in: it is neither a UUID
    nor the id of a conversation of the user's. Ids that can be guessed would tell which of them others have."""
    if thread_id is None or served.authentication.is_local or _UUID.fullmatch(thread_id):
        return
    async with served.analyst.store.reading() as tx:
        try:
            await log.find_thread(tx, thread_id, user_id=user)
        except ThreadNotFound:
            reason = f"{thread_id!r:.80} is no id for a new conversation. Give a UUID, or leave the id out."
            raise InvalidInput(reason=reason) from None


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
