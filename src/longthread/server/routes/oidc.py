"""Logins at a provider of OpenID Connect: a browser is sent there, comes back, and has a session."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from longthread.access import audit, sessions
from longthread.access.identities import AdmissionRules, Identity, admit, expect_active
from longthread.access.login_state import LASTS, LoginState, login_key, new_login, seal_login, unseal_login
from longthread.access.oidc import LoginProvider
from longthread.access.users import User
from longthread.errors import (
    AccountDisabled,
    AccountPending,
    DomainRefused,
    IssuerAnswerRefused,
    IssuerNotFound,
    IssuerUnreachable,
    LoginDenied,
    LoginExpired,
    SignupRefused,
)
from longthread.server.fields import PathSegment
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.routes.account import begin_login
from longthread.server.state import Served, ServedDep

router = APIRouter(prefix="/api/oidc", tags=["account"])

_COOKIE = "longthread-login"
_LONGEST_SESSION = timedelta(days=14)
"""A person whom the provider shuts out is out here, too, after so long."""
_OF_PEOPLE = (AccountDisabled, AccountPending, DomainRefused, SignupRefused)
"""Who came is known, and may not come in."""
_REFUSALS = (
    *_OF_PEOPLE,
    *(IssuerAnswerRefused, IssuerUnreachable, LoginDenied, LoginExpired),
)
"""What the login page explains by the code of the error, and never by words of the provider."""
_LEADS: dict[str, Any] = {
    "status_code": 303,
    "response_class": Response,
    "response_description": "Leads on, or to the login page with the code of an error.",
}

_log = logging.getLogger(__name__)


@router.get("/{issuer}/start", **_LEADS, responses=problems(IssuerNotFound))
async def start_login(
    served: ServedDep, issuer: PathSegment, path: Annotated[str, Query(alias="next")] = "/"
) -> Response:
    """Send a browser to a login provider. `next` is the page of this server that it gets to in the end."""
    provider = _find_provider(served, issuer)
    login = new_login(issuer, path)
    try:
        address = await provider.begin(login)
    except _REFUSALS as error:
        return _explain(served, provider, error)
    sealed = seal_login(await login_key(served.analyst.store, served.analyst.settings), login)
    response = _lead(address)
    response.headers.append("Set-Cookie", _make_cookie(served, sealed))
    return response


@router.get("/{issuer}/callback", **_LEADS, responses=problems(IssuerNotFound))
async def finish_login(served: ServedDep, request: Request, issuer: PathSegment) -> Response:
    """Where a login provider sends a browser back to, with `code` and `state`. The answer sets the session's cookie."""
    provider = _find_provider(served, issuer)
    try:
        login = await _read_login(served, request)
        identity = await provider.finish(login, dict(request.query_params))
        response = _lead(login.path)
        user = await _admit(served, request, response, provider, identity)
        expect_active(user)
    except _REFUSALS as error:
        if isinstance(error, _OF_PEOPLE):
            store = served.analyst.store
            await audit.note_alone(store, "login", outcome="failed", issuer=issuer, error=error.code)
        return _explain(served, provider, error)
    response.headers.append("Set-Cookie", _make_cookie(served, None))
    return response


@router.get("/{issuer}/logout", **_LEADS, responses=problems(IssuerNotFound))
async def leave_provider(served: ServedDep, issuer: PathSegment) -> Response:
    """Send a browser to where the login provider ends its own login. The session here is not ended: `POST /api/logout`
    does that before."""
    provider = _find_provider(served, issuer)
    back = f"{served.analyst.settings.public_url}/login"
    try:
        address = await provider.find_logout(back)
    except (IssuerAnswerRefused, IssuerUnreachable):
        address = None
    return _lead(address or "/login")


def _find_provider(served: Served, issuer: str) -> LoginProvider:
    provider = served.providers.get(issuer)
    if provider is None:
        raise IssuerNotFound(issuer=issuer)
    return provider


async def _read_login(served: Served, request: Request) -> LoginState:
    """Return the login that a browser carries. Raises LoginExpired."""
    sealed = request.cookies.get(_cookie_name(served), "")
    key = await login_key(served.analyst.store, served.analyst.settings)
    login = unseal_login(key, sealed)
    if login is None:
        raise LoginExpired
    return login


async def _admit(
    served: Served, request: Request, response: Response, provider: LoginProvider, identity: Identity
) -> User:
    """Let a person in. A user who is not active gets no session; a session that the browser had ends."""
    rules = AdmissionRules.of_issuer(provider.of, served.analyst.settings, served.analyst.sources.named_users)
    authentication = served.authentication
    former = await authentication.find_principal(request.scope)
    async with served.analyst.store.writing() as tx:
        user = await admit(tx, identity, rules)
        if user.status == "active":
            if former is not None and former.session is not None:
                await sessions.end_session(tx, former.session)
            await begin_login(tx, served, request, response, user, longest=_LONGEST_SESSION, issuer=provider.of.id)
    for changed in {user.id, *([former.user] if former is not None else [])}:
        authentication.forget(changed)
    return user


def _explain(served: Served, provider: LoginProvider, error: Exception) -> Response:
    """Lead to the login page, which says what went wrong."""
    refusal = cast(LoginDenied, error)
    _log.warning("A login at the provider %s was refused: %s", provider.of.id, refusal)
    response = _lead(f"/login?{urlencode({'error': refusal.code})}")
    response.headers.append("Set-Cookie", _make_cookie(served, None))
    return response


def _lead(address: str) -> Response:
    return RedirectResponse(address, 303, NO_STORE)


def _cookie_name(served: Served) -> str:
    return f"__Host-{_COOKIE}" if served.authentication.is_secure else _COOKIE


def _make_cookie(served: Served, sealed: str | None) -> str:
    """Return a Set-Cookie header that gives a browser a login under way, or takes it away."""
    parts = [f"{_cookie_name(served)}={sealed or ''}", "Path=/", "HttpOnly", "SameSite=Lax"]
    parts.append(f"Max-Age={int(LASTS.total_seconds()) if sealed else 0}")
    return "; ".join([*parts, "Secure"] if served.authentication.is_secure else parts)
