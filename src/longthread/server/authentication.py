"""Finds out who sends a request: by the machine it comes from, a session's cookie, or an API key.

A session or a key is looked up once in a few seconds for each process, so what an administrator takes away is gone
within `FRESH_SECONDS`.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longthread.access import keys, projects, sessions, users
from longthread.access.audit import Acting, acting, acting_as
from longthread.access.identities import expect_active
from longthread.access.keys import find_credential
from longthread.access.oidc import make_providers
from longthread.access.principal import Principal, local_principal
from longthread.access.proxy import ProxyIdentity, find_client, find_proxy_user, read_proxy_identity
from longthread.access.request_rates import RequestRates
from longthread.errors import (
    ExtraMissing,
    LoginNeeded,
    LongthreadError,
    NotLocal,
    ServerError,
    ShareNotFound,
    StoreError,
    UserNotFound,
)
from longthread.model.lru import LRU
from longthread.server.requests import EVENT_STREAM, is_loopback, is_owner
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.share_links import hash_token

PRINCIPAL = "longthread.principal"
"""Where a request's scope has its caller."""
FRESH_SECONDS = 5.0
"""How long a process trusts what it read of a session or a key."""
WATCH_SECONDS = 5.0
"""How often a stream's caller is looked up again."""
TOUCH_SECONDS = 300.0
"""How often a process writes that a key is in use."""
SESSION_COOKIE = "longthread"
READ_USER = "x-longthread-user"
"""The header by which an administrator reads a user's conversations; a name that is not ASCII is percent-encoded."""
_REMEMBERED = 10_000
_log = logging.getLogger(__name__)
_BEARER = "bearer "


def expect_login(settings: Settings) -> None:
    """Raise ServerError: others can reach the server, and nothing says who they are; or a login could not work. Raise
    ExtraMissing: what logins need is not installed."""
    if settings.auth == "proxy" and (settings.auth_header is None or not settings.trusted_proxies):
        reason = "with LONGTHREAD_AUTH=proxy, a proxy names the users. Set LONGTHREAD_AUTH_HEADER to the header in "
        raise ServerError(reason=f"{reason}which it does, and LONGTHREAD_TRUSTED_PROXIES to its address.")
    if settings.auth != "local":
        for package in ("argon2", "joserfc"):
            if find_spec(package) is None:
                raise ExtraMissing(what="A server whose users log in", package=package, extra="team")
        make_providers(settings)
    if settings.auth != "local" or settings.no_login:
        return
    if is_loopback(settings.host) and settings.public_url is None:
        return
    where = settings.public_url or settings.host
    reason = f"others can reach {where}, and this server has no login. Set LONGTHREAD_AUTH=login for users with "
    reason += "passwords, keys or single sign-on, or LONGTHREAD_AUTH=proxy behind a proxy that logs in. `--no-login` "
    reason += "serves everyone who reaches it as one user, without those."
    raise ServerError(reason=reason)


class Authentication:
    """Finds the callers of a server's requests. Safe to share between tasks."""

    def __init__(self, settings: Settings, store: Driver) -> None:
        self._settings = settings
        self._store = store
        self._touched: LRU[str, float] = LRU(_REMEMBERED)
        self._rates = RequestRates()
        self._known: LRU[str, tuple[float, Principal | None]] = LRU(_REMEMBERED)

    @property
    def is_local(self) -> bool:
        return self._settings.auth == "local"

    @property
    def is_secure(self) -> bool:
        """Whether browsers come over TLS, so that cookies must, too."""
        return (self._settings.public_url or "").startswith("https://")

    @property
    def cookie_name(self) -> str:
        return f"__Host-{SESSION_COOKIE}" if self.is_secure else SESSION_COOKIE

    @property
    def shares_with_anyone(self) -> bool:
        """Whether share links work without a login. Raises ShareNotFound: they do not work at all."""
        if self._settings.shares_with == "off":
            raise ShareNotFound
        return self._settings.shares_with == "public"

    def is_monitor(self, scope: Scope) -> bool:
        """Whether a request may read metrics by the token of the settings, or from this machine itself."""
        token = self._settings.metrics_token
        sent = Headers(scope=scope).get("authorization", "")
        if token is not None and sent.lower().startswith(_BEARER):
            return hmac.compare_digest(sent[len(_BEARER) :].strip().encode(), token.get_secret_value().encode())
        return self.is_local or is_owner(scope)

    async def expect_principal(self, scope: Scope) -> Principal:
        """Return a request's caller. Raises LoginNeeded, NotLocal."""
        principal = await self.find_principal(scope)
        if principal is None:
            raise LoginNeeded
        return principal

    async def find_principal(self, scope: Scope, *, fresh: bool = False) -> Principal | None:
        """Return a request's caller; None: no user is logged in. `fresh` reads the store in any case. Raises NotLocal:
        the server has no login, and the request comes from elsewhere. Raises ProxyRefused, SignupRefused,
        AccountPending, AccountDisabled: what says who the user is does not count, or that user may not come in."""
        if self.is_local:
            owner = is_owner(scope)
            if not owner and not self._settings.no_login:
                raise NotLocal
            return local_principal(self._settings.user, is_owner=owner)
        named = read_proxy_identity(self._settings, scope) if self._settings.auth == "proxy" else None
        if find_credential(scope["headers"]) is not None:  # whatever cookie it has
            return await self.find_by_key(scope, fresh=fresh)
        token = self._session_token(scope)
        if named is not None:
            principal = await self._remember(f"proxy {named.key}", lambda: self._by_proxy(scope, named), fresh=fresh)
            if token is not None and principal is not None:
                await self._end_others_session(token, principal)
            return principal
        if token is None:
            return None
        return await self._remember(f"session {hash_token(token)}", lambda: self._by_session(token), fresh=fresh)

    async def find_by_key(self, scope: Scope, *, fresh: bool = False) -> Principal | None:
        """Return the caller whose API key a request carries; None: it carries none, or one that does not work. Raises
        SeveralKeys."""
        credential = find_credential(scope["headers"])
        if credential is None:
            return None
        return await self._remember(f"key {hash_token(credential)}", lambda: self._by_key(credential), fresh=fresh)

    def count_request(self, principal: Principal) -> None:
        """Count a request of an API key. Raises TooManyRequests: the key has sent as many as it may in a minute."""
        if principal.key is not None:
            self._rates.take(principal.key)

    async def projects_of(self, principal: Principal) -> Mapping[str, str]:
        """Return the projects that a caller is a member of, with the right `use` or `manage`. Without a login they are
        read once in a few seconds, and only when a request is about a conversation."""
        if not self.is_local:
            return dict(principal.projects)

        async def look() -> Principal:
            async with self._store.reading() as tx:
                found = await projects.list_projects(tx, principal.user)
            return replace(principal, projects=tuple((project.id, may) for project, may in found))

        known = await self._remember(f"local {principal.user}", look, fresh=False)
        return dict(known.projects) if known is not None else {}

    def forget(self, user_id: str) -> None:
        """Look a user's sessions and keys up again at the next request of this process."""
        for key, (_, known) in self._known.items():
            if known is None or known.user == user_id:
                self._known.pop(key)

    async def find_read_user(self, scope: Scope, principal: Principal) -> Principal | None:
        """Return the user whose conversations an administrator reads in a request, as a caller; None: the caller's own.

        Raises RoleMissing, ScopeMissing, UserNotFound. Where the settings do not allow it, the header says nothing."""
        name = Headers(scope=scope).get(READ_USER)
        if name is None or not self._settings.admin_reads or self.is_local or self._settings.read_only:
            return None
        principal.expect_role("admin")
        principal.expect_scope("admin")
        async with self._store.reading() as tx:
            user = await users.find_user_by_name(tx, unquote(name))
            return replace(await users.load_principal(tx, user, principal.via), role="member", key=principal.key)

    def acting(self, scope: Scope, principal: Principal | None) -> Acting | None:
        """Return who acts in a request, for the audit log; None: this server writes none."""
        if self.is_local or self._settings.read_only:
            return None
        given = Headers(scope=scope).get("x-request-id")
        return acting_as(principal, address=self.client_address(scope), request_id=given)

    def client_address(self, scope: Scope) -> str:
        """Return where a request comes from, as wrong passwords are counted: IPv6 by its network."""
        client = find_client(self._settings, scope)
        try:
            address = ipaddress.ip_address(client)
        except ValueError:
            return client
        if isinstance(address, ipaddress.IPv6Address):
            return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
        return str(address)

    async def _remember(
        self, key: str, look: Callable[[], Awaitable[Principal | None]], *, fresh: bool
    ) -> Principal | None:
        now = time.monotonic()
        known = self._known.get(key)
        if known is not None and now - known[0] < FRESH_SECONDS and not fresh:
            return known[1]
        principal = await look()
        self._known.put(key, (now, principal))
        return principal

    async def _by_proxy(self, scope: Scope, named: ProxyIdentity) -> Principal:
        with acting(self.acting(scope, None)):
            user = await find_proxy_user(self._store, self._settings, named)
        expect_active(user)
        async with self._store.reading() as tx:
            return await users.load_principal(tx, user, "proxy")

    async def _end_others_session(self, token: str, principal: Principal) -> None:
        """End the session that a browser has, if it is of another user than the one whom the proxy names."""
        key = f"session {hash_token(token)}"
        other = await self._remember(key, lambda: self._by_session(token), fresh=False)
        if other is not None and other.user != principal.user and other.session is not None:
            async with self._store.writing() as tx:
                await sessions.end_session(tx, other.session)
            self.forget(other.user)

    async def _by_session(self, token: str) -> Principal | None:
        async with self._store.reading() as tx:
            session = await sessions.find_session(tx, token)
            if session is None:
                return None
            try:
                user = await users.find_user(tx, session.user_id)
            except UserNotFound:
                return None
            if user.status != "active":
                return None
            principal = await users.load_principal(tx, user, session.via, session=session.id, issuer=session.issuer)
        if sessions.needs_touch(session) and not self._settings.read_only:
            async with self._store.writing() as tx:
                await sessions.touch_session(tx, session)
        return principal

    async def _by_key(self, credential: str) -> Principal | None:
        async with self._store.reading() as tx:
            principal = await keys.find_key_principal(tx, credential)
            if principal is not None and principal.key is not None and principal.key.requests_per_minute is not None:
                self._rates.share = await keys.count_servers(tx)
        if principal is None or principal.key is None or self._settings.read_only:
            return principal
        now = time.monotonic()
        if now - (self._touched.get(principal.key.id) or -TOUCH_SECONDS) >= TOUCH_SECONDS:
            self._touched.put(principal.key.id, now)
            async with self._store.writing() as tx:
                await keys.touch_key(tx, principal.key.id)
        return principal

    def _session_token(self, scope: Scope) -> str | None:
        """Return what the session's cookie holds. Two cookies of the name are none: one may have been planted."""
        name, values = self.cookie_name, []
        for header in Headers(scope=scope).getlist("cookie"):
            for part in header.split(";"):
                given, _, value = part.strip().partition("=")
                if given == name:
                    values.append(value)
        return values[0] if len(values) == 1 and values[0] else None


def make_cookie(authentication: Authentication, token: str | None, seconds: int) -> str:
    """Return a Set-Cookie header that gives a browser a session, or takes it away."""
    parts = [f"{authentication.cookie_name}={token or ''}", "Path=/", "HttpOnly", "SameSite=Lax"]
    parts.append(f"Max-Age={seconds if token else 0}")
    return "; ".join([*parts, "Secure"] if authentication.is_secure else parts)


class StreamWatch:
    """Ends the answer of a caller whose login, key or right is taken away while it is sent.

    Args:
        find: returns the caller as the store knows it now; it may raise that there is none.
        breaks_off: an answer that ends early must not look whole: let the server break the connection off.
    """

    def __init__(
        self, find: Callable[[], Awaitable[Principal | None]], principal: Principal, *, breaks_off: bool = False
    ) -> None:
        self._find = find
        self._principal = principal
        self._breaks_off = breaks_off

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        watch: asyncio.Task[None] | None = None
        answering = asyncio.current_task()
        assert answering is not None
        ended = False

        async def send_watched(message: Message) -> None:
            nonlocal watch
            if message["type"] == "http.response.start" and _is_stream(message):
                watch = asyncio.create_task(self._wait_for_end())
                watch.add_done_callback(end)
            await send(message)

        def end(task: asyncio.Task[None]) -> None:
            nonlocal ended
            if not task.cancelled():
                ended = True
                answering.cancel()

        try:
            await app(scope, receive, send_watched)
        except asyncio.CancelledError:
            if not ended or answering.uncancel():
                raise
            if not self._breaks_off:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if watch is not None:
                watch.remove_done_callback(end)
                watch.cancel()

    async def _wait_for_end(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                principal = await self._find()
            except StoreError as error:
                _log.warning("Who reads a stream cannot be looked up: %s", error)
                continue
            except LongthreadError:  # a proxy's user was shut out
                return
            if principal is None or (principal.user, principal.role) != (self._principal.user, self._principal.role):
                return
            if not dict(self._principal.projects).keys() <= dict(principal.projects).keys():
                return  # it may be the stream of a conversation of a project that the caller has left


def _is_stream(message: Message) -> bool:
    headers = Headers(raw=message.get("headers", []))
    return headers.get("content-type", "").startswith(EVENT_STREAM)
