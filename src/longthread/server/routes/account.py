"""Logins, and what a user sees and changes of the own account."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from longthread.access import audit, passwords, sessions, users
from longthread.access.principal import Principal, Via
from longthread.access.users import User
from longthread.errors import (
    AccountMissing,
    InvalidInput,
    LinkUnusable,
    LoginFailed,
    LoginThrottled,
    NameInUse,
    PasswordRefused,
    RoleMissing,
    UserNotFound,
)
from longthread.server.account_answers import (
    AuthView,
    LinkView,
    LoginSessionList,
    LoginView,
    MeView,
    describe_local,
    describe_me,
    describe_session,
)
from longthread.server.authentication import make_cookie
from longthread.server.fields import Name, PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.state import PrincipalDep, Served, ServedDep
from longthread.store.driver import Transaction

router = APIRouter(prefix="/api", tags=["account"])

Secret = Annotated[PlainText, Field(max_length=passwords.LONGEST + 1)]


class LoginBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[PlainText, Field(max_length=users.LONGEST_NAME)]
    password: Secret


class TokenBody(BaseModel):
    """The token of a link that works once."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[PlainText, Field(max_length=200)]


class LinkBody(TokenBody):
    """The password that a link sets. A setup link also needs the first user's name."""

    password: Secret
    name: Annotated[Name, Field(max_length=users.LONGEST_NAME)] | None = None
    display: Annotated[PlainText, Field(max_length=users.LONGEST_NAME)] = ""


class ProfileBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    display: Annotated[Name, Field(max_length=users.LONGEST_NAME)] | None = None
    email: Annotated[PlainText, Field(max_length=320)] | None = None


class PasswordBody(BaseModel):
    """A new password. `current` is the one of now, null for who has none."""

    model_config = ConfigDict(extra="forbid")

    current: Secret | None = None
    password: Secret


@router.post("/login", responses=problems(LoginFailed, LoginThrottled, body=True))
async def log_in(served: ServedDep, request: Request, response: Response, body: LoginBody) -> LoginView:
    """Log in with a name and a password. The answer sets the session's cookie."""
    if served.authentication.is_local:
        raise LoginFailed
    store, address = served.analyst.store, served.authentication.client_address(request.scope)
    try:
        account = users.normalize_name(body.name)
    except InvalidInput:
        account = ""
    async with store.writing() as tx:
        # The try counts before it is made: several at once cannot outrun the count.
        await passwords.expect_tries_left(tx, account, address)
        await passwords.note_failure(tx, account, address)
        user = await _find_user(tx, account)
    is_right, renewed = await passwords.check_password(user.password if user else None, body.password)
    if user is None or not is_right or user.status != "active":
        # A name that no user has may be a password, typed where the name goes.
        await audit.note_alone(store, "login", user.id if user is not None else "", outcome="failed")
        raise LoginFailed
    async with store.writing() as tx:
        await passwords.forget_failures(tx, account, address)
        if renewed is not None:
            user = await users.update_user(tx, user, password=renewed)
        return {"user": await begin_login(tx, served, request, response, user)}


@router.post("/logout", status_code=204, responses=problems())
async def log_out(served: ServedDep, request: Request) -> Response:
    """End this login. Without one, nothing happens."""
    authentication = served.authentication
    principal = None if authentication.is_local else await authentication.find_principal(request.scope)
    if principal is not None and principal.session is not None:
        async with served.analyst.store.writing() as tx:
            await sessions.end_session(tx, principal.session)
            await audit.note(tx, "logout", principal.user, actor=principal.user)
        authentication.forget(principal.user)
    return Response(status_code=204, headers={"Set-Cookie": make_cookie(authentication, None, 0)})


@router.post("/links/look", responses=problems(LinkUnusable, body=True))
async def look_at_link(served: ServedDep, body: TokenBody) -> LinkView:
    """What a link that works once is for. It stays usable."""
    async with served.analyst.store.reading() as tx:
        kind, user = await sessions.peek_link(tx, body.token)
    return {"kind": kind, "name": user.name if user is not None else None}


@router.post("/links", responses=problems(InvalidInput, LinkUnusable, NameInUse, PasswordRefused, body=True))
async def use_link(served: ServedDep, request: Request, response: Response, body: LinkBody) -> LoginView:
    """Set a password with a link, which stops working, and log in. Other logins of the user end."""
    if served.authentication.is_local:
        raise LinkUnusable
    async with served.analyst.store.reading() as tx:
        _, user = await sessions.peek_link(tx, body.token)
    name = users.normalize_name(body.name or "") if user is None else user.name
    passwords.validate_password(body.password, name)
    hashed = await passwords.hash_password(body.password)
    async with served.analyst.store.writing() as tx:
        _, user = await sessions.use_link(tx, body.token)
        if user is None:
            user = await _create_first(tx, served, body, hashed)
        else:
            user = await users.update_user(tx, user, password=hashed, status="active")
            await sessions.end_sessions(tx, user.id)
            await passwords.forget_failures(tx, user.name, None)
        await audit.note(tx, "link.use", user.id, actor=user.id)
        served.authentication.forget(user.id)
        return {"user": await begin_login(tx, served, request, response, user)}


@router.get("/me", responses=problems(reads=True))
async def me(served: ServedDep, principal: PrincipalDep) -> MeView:
    """Who you are to this server."""
    return await describe_caller(served, principal)


@router.patch("/me", responses=problems(AccountMissing, InvalidInput, RoleMissing, UserNotFound, body=True))
async def change_me(served: ServedDep, principal: PrincipalDep, body: ProfileBody) -> MeView:
    """Change how you are called, or your address: where that leads to an account, an administrator must do it."""
    if body.email is not None and any(each.of.link_by_email for each in served.providers.values()):
        principal.expect_role("admin")
    async with served.analyst.store.writing() as tx:
        user = await users.find_user(tx, principal.user)
        user = await users.update_user(tx, user, **body.model_dump(exclude_unset=True, exclude_none=True))
        await audit.note(tx, "user.change", user.id)
    return describe_me(user, principal)


@router.put(
    "/me/password",
    status_code=204,
    responses=problems(AccountMissing, LoginFailed, PasswordRefused, UserNotFound, body=True),
)
async def change_password(served: ServedDep, principal: PrincipalDep, body: PasswordBody) -> Response:
    """Change your password. Your other logins end. Who logs in elsewhere has none here, and gets one by an
    administrator's link alone."""
    async with served.analyst.store.writing() as tx:
        user = await users.find_user(tx, principal.user)
        if user.password is None:
            raise PasswordRefused(reason="You log in elsewhere. An administrator can give you a link that sets one.")
        await passwords.expect_tries_left(tx, user.name, "")
        await passwords.note_failure(tx, user.name, "")
    is_right, _ = await passwords.check_password(user.password, body.current or "")
    if not is_right:
        await audit.note_alone(served.analyst.store, "password.change", user.id, outcome="failed")
        raise LoginFailed
    passwords.validate_password(body.password, user.name)
    hashed = await passwords.hash_password(body.password)
    async with served.analyst.store.writing() as tx:
        await passwords.forget_failures(tx, user.name, "")
        await users.update_user(tx, await users.find_user(tx, user.id), password=hashed)
        await sessions.end_sessions(tx, user.id, kept=principal.session or "")
        await audit.note(tx, "password.change", user.id)
    served.authentication.forget(user.id)
    return Response(status_code=204)


@router.get("/me/sessions", responses=problems(AccountMissing, reads=True))
async def list_sessions(served: ServedDep, principal: PrincipalDep) -> LoginSessionList:
    """Your logins that have not ended, the last used first."""
    async with served.analyst.store.reading() as tx:
        return {
            "sessions": [describe_session(each, principal) for each in await sessions.list_sessions(tx, principal.user)]
        }


@router.delete("/me/sessions", status_code=204, responses=problems(AccountMissing))
async def end_sessions(served: ServedDep, principal: PrincipalDep) -> Response:
    """Log out everywhere, here too."""
    async with served.analyst.store.writing() as tx:
        await sessions.end_sessions(tx, principal.user)
        await audit.note(tx, "session.end", principal.user)
    served.authentication.forget(principal.user)
    return Response(status_code=204, headers={"Set-Cookie": make_cookie(served.authentication, None, 0)})


@router.delete("/me/sessions/{session_id}", status_code=204, responses=problems(AccountMissing))
async def end_session(served: ServedDep, principal: PrincipalDep, session_id: PathSegment) -> Response:
    """End one of your logins."""
    async with served.analyst.store.writing() as tx:
        if any(each.id == session_id for each in await sessions.list_sessions(tx, principal.user)):
            await sessions.end_session(tx, session_id)
            await audit.note(tx, "session.end", principal.user)
    served.authentication.forget(principal.user)
    return Response(status_code=204)


async def describe_auth(served: Served, principal: Principal | None) -> AuthView:
    """Return how callers are recognized, and who this one is."""
    settings = served.analyst.settings
    is_new = False
    if not served.authentication.is_local and principal is None:
        async with served.analyst.store.reading() as tx:
            is_new = await users.count_users(tx) == 0
    return {
        "mode": settings.auth,
        "user": await describe_caller(served, principal) if principal is not None else None,
        "setup": is_new,
        "issuers": [{"id": each.of.id, "label": each.of.shown} for each in served.providers.values()],
        "share": settings.shares_with,
    }


async def describe_caller(served: Served, principal: Principal) -> MeView:
    if principal.via == "local":
        return describe_local(principal)
    async with served.analyst.store.reading() as tx:
        return describe_me(await users.find_user(tx, principal.user), principal)


async def begin_login(
    tx: Transaction,
    served: Served,
    request: Request,
    response: Response,
    user: User,
    *,
    via: Via = "session",
    issuer: str | None = None,
    longest: timedelta = timedelta.max,
) -> MeView:
    """Begin a session of a user, and give its cookie to the browser. `issuer` is the login provider where it began."""
    authentication = served.authentication
    lasts = min(timedelta(hours=served.analyst.settings.session_hours), longest)
    token = await sessions.begin_session(
        tx,
        user,
        via=via,
        address=authentication.client_address(request.scope),
        agent=request.headers.get("user-agent", ""),
        issuer=issuer,
        lasts=lasts,
    )
    await audit.note(tx, "login", user.id, actor=user.id)
    response.headers["Set-Cookie"] = make_cookie(authentication, token, int(lasts.total_seconds()))
    return describe_me(user, await users.load_principal(tx, user, via, issuer=issuer))


async def _find_user(tx: Transaction, account: str) -> User | None:
    try:
        return await users.find_user_by_name(tx, account)
    except (InvalidInput, UserNotFound):
        return None


async def _create_first(tx: Transaction, served: Served, body: LinkBody, hashed: str) -> User:
    """Add the first administrator, who takes over what the server kept before it had users. Raises LinkUnusable:
    somebody else was first."""
    if await users.count_users(tx):
        raise LinkUnusable
    return await users.create_user(
        tx,
        body.name or "",
        role="admin",
        display=body.display,
        password=hashed,
        user_id=served.analyst.settings.user,
    )
