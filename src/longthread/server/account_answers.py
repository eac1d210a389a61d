"""Users, groups and logins, as the API answers with them."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from longthread.access.principal import Principal, UserRole, Via
from longthread.access.sessions import LoginSession
from longthread.access.users import Group, GroupOrigin, Period, SpendingUnit, User, UserStatus
from longthread.server.answers import Timestamp
from longthread.settings import AuthMode, Sharing


class BudgetView(TypedDict):
    """What may be spent in each period, in tokens or in the server's currency."""

    amount: float
    unit: SpendingUnit
    period: Period


class MeView(TypedDict):
    """A user, as the user sees it. `via` says how the caller was recognized. `issuer` is the login provider where the
    session began: after `POST /api/logout`, `/api/oidc/{issuer}/logout` ends the login there."""

    id: str
    name: str
    display: str
    email: str | None
    role: UserRole
    groups: list[str]
    via: Via
    issuer: str | None
    has_password: bool
    created_at: Timestamp | None
    budget: BudgetView | None


class IssuerView(TypedDict):
    """An issuer at which users log in: `id` goes into `/api/oidc/{issuer}/start`."""

    id: str
    label: str


class AuthView(TypedDict):
    """How callers are recognized, and who this one is; null: no user is logged in. `setup`: there is no user yet, and
    the server's log has the link that makes the first one."""

    mode: AuthMode
    user: MeView | None
    setup: bool
    issuers: list[IssuerView]
    share: Sharing


class Info(TypedDict):
    """What a server serves, and as which user. `sources` are those that callers may name: `any`, or a list."""

    version: str
    model: str
    demo: bool
    source: str | None
    sources: Literal["any"] | list[str]
    max_steps: int
    user: str
    database: str | None
    auth: AuthView


class VisitorInfo(TypedDict):
    """What a server tells before a login."""

    auth: AuthView


class LoginView(TypedDict):
    user: MeView


class LinkView(TypedDict):
    """What a link that works once is for, and for whom; null: it makes the first user."""

    kind: Literal["setup", "invitation", "reset"]
    name: str | None


class LoginSessionView(TypedDict):
    """A login. `agent` is what the browser calls itself; `current`: this request has it."""

    id: str
    made_at: Timestamp
    seen_at: Timestamp
    ends_at: Timestamp
    address: str
    agent: str
    via: Via
    current: bool


class LoginSessionList(TypedDict):
    sessions: list[LoginSessionView]


class AccountView(TypedDict):
    """A user, as an administrator sees it."""

    id: str
    name: str
    display: str
    email: str | None
    role: UserRole
    status: UserStatus
    groups: list[str]
    has_password: bool
    created_at: Timestamp
    seen_at: Timestamp | None
    budget: BudgetView | None


class AccountList(TypedDict):
    users: list[AccountView]


class OneTimeLink(TypedDict):
    """Where a person sets a password, once, until `expires_at`. It is given this once."""

    path: str
    expires_at: Timestamp


class NewAccountView(AccountView):
    link: OneTimeLink


class GroupView(TypedDict):
    """A group. Those of an issuer or a proxy (`origin`) get their members at each login."""

    id: str
    name: str
    origin: GroupOrigin
    members: int


class GroupList(TypedDict):
    groups: list[GroupView]


def describe_local(principal: Principal) -> MeView:
    """Return the user of a server without login."""
    return {
        "id": principal.user,
        "name": principal.name,
        "display": principal.name,
        "email": None,
        "role": principal.role,
        "groups": [],
        "via": "local",
        "issuer": None,
        "has_password": False,
        "created_at": None,
        "budget": None,
    }


def describe_me(user: User, principal: Principal) -> MeView:
    return {
        "id": user.id,
        "name": user.name,
        "display": user.display,
        "email": user.email,
        "role": user.role,
        "groups": sorted(principal.group_names),
        "via": principal.via,
        "issuer": principal.issuer,
        "has_password": user.password is not None,
        "created_at": user.created_at.isoformat(),
        "budget": describe_budget(user),
    }


def describe_user(user: User, groups: list[Group]) -> AccountView:
    return {
        "id": user.id,
        "name": user.name,
        "display": user.display,
        "email": user.email,
        "role": user.role,
        "status": user.status,
        "groups": [each.name for each in groups],
        "has_password": user.password is not None,
        "created_at": user.created_at.isoformat(),
        "seen_at": user.seen_at.isoformat() if user.seen_at is not None else None,
        "budget": describe_budget(user),
    }


def describe_budget(user: User) -> BudgetView | None:
    if user.budget is None:
        return None
    return {"amount": user.budget.amount, "unit": user.budget.unit, "period": user.budget.period}


def describe_session(session: LoginSession, principal: Principal) -> LoginSessionView:
    return {
        "id": session.id,
        "made_at": session.made_at.isoformat(),
        "seen_at": session.seen_at.isoformat(),
        "ends_at": session.ends_at.isoformat(),
        "address": session.address,
        "agent": session.agent,
        "via": session.via,
        "current": session.id == principal.session,
    }
