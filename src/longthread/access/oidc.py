"""Logins at a provider of OpenID Connect: discovery, the code flow with PKCE, and what its answers must be.

Every answer has a bound and a time, no redirect is followed, and a token counts only as `id_tokens` says.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import httpx

from longthread.access.id_tokens import (
    ExpectedToken,
    TokenRefused,
    pick_keys,
    read_key_id,
    read_keys,
    validate_token,
)
from longthread.access.identities import Identity
from longthread.access.login_state import LoginState
from longthread.errors import (
    IssuerAnswerRefused,
    IssuerUnreachable,
    LoginDenied,
    LoginExpired,
    LongthreadError,
    ServerError,
)
from longthread.settings import OidcIssuer, Settings

if TYPE_CHECKING:
    from joserfc.jwk import Key

_SECONDS = 10.0
"""For one whole answer."""
_LARGEST = 262_144
"""Bytes of an answer."""
_FACTS_LAST = 3_600.0
_FAILURE_LASTS = 5.0
"""How long a provider that failed is not asked again."""
_KEYS_AGAIN = 60.0
"""How often keys are fetched for an unknown id."""
_LONGEST_CODE = 4_096
_LONGEST_SUBJECT = 255
"""Characters, as OpenID Connect says."""
_MOST_GROUPS = 1_000
_NAMES = ("preferred_username", "nickname", "email")
"""The claims that a user's name is made of, the first that is there."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What discovery says of a provider."""

    issuer: str
    authorization: str
    token: str
    jwks: str
    userinfo: str | None
    end_session: str | None
    posts_secret: bool
    names_issuer: bool
    read_at: float


class LoginProvider:
    """A provider of logins. Its discovery and its keys are kept for an hour."""

    def __init__(self, of: OidcIssuer, redirect_uri: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.of = of
        self._redirect_uri = redirect_uri
        self._clock = clock
        self._facts: _Facts | None = None
        self._failure: tuple[float, LongthreadError] | None = None
        self._keys: Mapping[str, Sequence[Key]] = {}
        self._keys_at: float | None = None
        self._lock = asyncio.Lock()

    async def begin(self, login: LoginState) -> str:
        """Return where to send the browser. Raises IssuerUnreachable, IssuerAnswerRefused."""
        facts = await self._discover()
        asked = {
            "response_type": "code",
            "client_id": self.of.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self.of.scopes,
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": login.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(facts.authorization, asked)

    async def finish(self, login: LoginState, answer: Mapping[str, str]) -> Identity:
        """Return who logged in. `answer` is the query that the browser came back with. Raises LoginExpired,
        LoginDenied, IssuerUnreachable, IssuerAnswerRefused."""
        if login.issuer != self.of.id or answer.get("state") != login.state:
            raise LoginExpired
        facts = await self._discover()
        named = answer.get("iss")
        if named != facts.issuer and (named is not None or facts.names_issuer):
            raise self._refuse("Its answer is of another issuer.")
        if "error" in answer:
            raise LoginDenied
        code = answer.get("code", "")
        if not 0 < len(code) <= _LONGEST_CODE:
            raise self._refuse("Its answer has no code.")
        tokens = await self._exchange(facts, code, login)
        claims = await self._read_token(facts, tokens.get("id_token"), login)
        return self._identify(await self._complete(facts, claims, tokens.get("access_token")))

    async def find_logout(self, return_to: str) -> str | None:
        """Return where a browser ends its login at the provider; None: discovery names no such place. Raises
        IssuerUnreachable, IssuerAnswerRefused."""
        facts = await self._discover()
        if facts.end_session is None:
            return None
        return _with_query(facts.end_session, {"client_id": self.of.client_id, "post_logout_redirect_uri": return_to})

    async def _discover(self) -> _Facts:
        async with self._lock:
            if self._facts is None or self._clock() - self._facts.read_at > _FACTS_LAST:
                if self._failure is not None and self._clock() - self._failure[0] < _FAILURE_LASTS:
                    raise self._failure[1]
                address = f"{self.of.issuer.rstrip('/')}/.well-known/openid-configuration"
                try:
                    self._facts = self._read_facts(await self._fetch("GET", address))
                except (IssuerUnreachable, IssuerAnswerRefused) as error:
                    self._failure = self._clock(), error
                    raise
            return self._facts

    def _read_facts(self, found: Mapping[str, Any]) -> _Facts:
        issuer = found.get("issuer")
        if not isinstance(issuer, str) or issuer.rstrip("/") != self.of.issuer.rstrip("/"):
            raise self._refuse("Its discovery is of another issuer.")
        methods = found.get("token_endpoint_auth_methods_supported")
        posts = isinstance(methods, list) and "client_secret_post" in methods and "client_secret_basic" not in methods
        return _Facts(
            issuer=issuer,
            authorization=self._expect_address(found, "authorization_endpoint"),
            token=self._expect_address(found, "token_endpoint"),
            jwks=self._expect_address(found, "jwks_uri"),
            userinfo=self._read_address(found, "userinfo_endpoint"),
            end_session=self._read_address(found, "end_session_endpoint"),
            posts_secret=posts,
            names_issuer=found.get("authorization_response_iss_parameter_supported") is True,
            read_at=self._clock(),
        )

    def _expect_address(self, found: Mapping[str, Any], name: str) -> str:
        address = self._read_address(found, name)
        if address is None:
            raise self._refuse(f"Its discovery has no {name}.")
        return address

    def _read_address(self, found: Mapping[str, Any], name: str) -> str | None:
        """Return an address of discovery. One without TLS counts only for an issuer without TLS, on this machine."""
        address = found.get(name)
        if address is None:
            return None
        own = urlsplit(self.of.issuer)
        try:
            parts = urlsplit(address) if isinstance(address, str) else None
        except ValueError:
            parts = None
        if (
            parts is None
            or not parts.hostname
            or not (parts.scheme == "https" or (parts.scheme, parts.hostname) == (own.scheme, own.hostname))
        ):
            raise self._refuse(f"The {name} of its discovery is no https:// address.")
        return str(address)

    async def _exchange(self, facts: _Facts, code: str, login: LoginState) -> Mapping[str, Any]:
        """Return what the provider gives for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": login.verifier,
        }
        secret, login_as = self.of.client_secret, None
        if secret is None or facts.posts_secret:
            form["client_id"] = self.of.client_id
        if secret is not None and facts.posts_secret:
            form["client_secret"] = secret.get_secret_value()
        elif secret is not None:
            login_as = (quote(self.of.client_id, safe=""), quote(secret.get_secret_value(), safe=""))
        return await self._fetch("POST", facts.token, data=form, auth=login_as)

    async def _read_token(self, facts: _Facts, token: Any, login: LoginState) -> Mapping[str, Any]:
        try:
            if not isinstance(token, str):
                raise TokenRefused("There is no ID token.")
            key_id = read_key_id(token)
            keys = await self._find_keys(facts, key_id)
            return validate_token(token, keys, ExpectedToken(facts.issuer, self.of.client_id, login.nonce))
        except TokenRefused as error:
            raise self._refuse(str(error)) from error

    async def _find_keys(self, facts: _Facts, key_id: str) -> Sequence[Key]:
        """Return the issuer's keys of an id; they are fetched for an unknown one, at most once a minute."""
        async with self._lock:
            age = None if self._keys_at is None else self._clock() - self._keys_at
            known = pick_keys(self._keys, key_id)
            if age is None or age > _FACTS_LAST or (not known and age > _KEYS_AGAIN):
                self._keys = read_keys(await self._fetch("GET", facts.jwks))
                self._keys_at = self._clock()
            return pick_keys(self._keys, key_id)

    async def _complete(self, facts: _Facts, claims: Mapping[str, Any], access_token: Any) -> Mapping[str, Any]:
        """Return the claims, with those of the userinfo endpoint where the ID token lacks the address or the groups."""
        wanted = {"email", self.of.groups_claim} if self.of.groups_claim else {"email"}
        if (
            facts.userinfo is None
            or not isinstance(access_token, str)
            or all(_find_claim(claims, name) is not None for name in wanted)
        ):
            return claims
        if not access_token.isascii() or not access_token.isprintable():
            raise self._refuse("Its access token is none.")
        more = await self._fetch("GET", facts.userinfo, headers={"Authorization": f"Bearer {access_token}"})
        if more.get("sub") != claims.get("sub"):
            raise self._refuse("Its userinfo is of somebody else.")
        # An address counts as verified only by what says that address.
        if "email" not in claims:
            claims = {name: value for name, value in claims.items() if name != "email_verified"}
        elif more.get("email") != claims["email"]:
            more = {name: value for name, value in more.items() if name != "email_verified"}
        return {**more, **claims}

    def _identify(self, claims: Mapping[str, Any]) -> Identity:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
            raise self._refuse("Its token names nobody.")
        email = claims.get("email")
        groups = _find_claim(claims, self.of.groups_claim) if self.of.groups_claim else ()
        groups = [groups] if isinstance(groups, str) else groups
        if isinstance(groups, list) and len(groups) > _MOST_GROUPS:
            raise self._refuse(f"Its token has more than {_MOST_GROUPS:,} groups.")
        return Identity(
            issuer=claims["iss"],
            subject=subject,
            name=next((name for each in _NAMES if isinstance(name := claims.get(each), str) and name), subject),
            display=name if isinstance(name := claims.get("name"), str) else "",
            email=email if isinstance(email, str) and "@" in email else None,
            email_verified=claims.get("email_verified") in (True, "true"),
            groups=frozenset(each for each in groups or () if isinstance(each, str)),
        )

    async def _fetch(self, method: str, address: str, **options: Any) -> Mapping[str, Any]:
        """Return the JSON object that an endpoint answers."""
        try:
            async with (
                asyncio.timeout(_SECONDS),
                self._client() as client,
                client.stream(method, address, **options) as response,
            ):
                content = await self._read_bounded(response)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
            raise IssuerUnreachable(issuer=self.of.shown, reason=f"{type(error).__name__}.") from error
        if response.status_code != 200:
            raise self._refuse(f"It answered with the status {response.status_code}.")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._refuse("Its answer is no JSON.") from error
        if not isinstance(found, dict):
            raise self._refuse("Its answer is no JSON object.")
        return found

    async def _read_bounded(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async for piece in response.aiter_raw():  # not unpacked: a few bytes could become very many
            content += piece
            if len(content) > _LARGEST:
                raise self._refuse(f"Its answer has more than {_LARGEST:,} bytes.")
        return bytes(content)

    def _client(self) -> httpx.AsyncClient:
        on_this_machine = urlsplit(self.of.issuer).scheme == "http"
        return httpx.AsyncClient(
            verify=_certificates(),
            timeout=_SECONDS,
            follow_redirects=False,
            trust_env=not on_this_machine,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    def _refuse(self, reason: str) -> IssuerAnswerRefused:
        return IssuerAnswerRefused(issuer=self.of.shown, reason=reason)


def make_providers(settings: Settings) -> dict[str, LoginProvider]:
    """Return the providers of the settings by their ids. Raises ServerError: browsers would not find back."""
    if settings.login_issuers and settings.public_url is None:
        reason = (
            "login providers are set, and LONGTHREAD_PUBLIC_URL is not, where they send browsers back to. Set it to "
        )
        raise ServerError(reason=f"{reason}the address that people open, such as https://longthread.example.")
    back = f"{settings.public_url}/api/oidc"
    return {each.id: LoginProvider(each, f"{back}/{each.id}/callback") for each in settings.login_issuers}


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _with_query(address: str, values: Mapping[str, str]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(values)}"


def _find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a path with dots, such as `realm_access.roles`; None: it is not there."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
