"""Who may use the gateway: programs of this machine, programs with a token, and web pages of chosen origins."""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from starlette.types import Scope

from longthread.errors import ServerError
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import CREDENTIALS, Headers, Incoming, Outgoing
from longthread.gateway.service import ANTHROPIC, make_refusal
from longthread.server.requests import is_loopback, is_own_name, is_owner, is_same_origin, own_names
from longthread.settings import Settings

SHORTEST_TOKEN = 16
_TOKEN = re.compile(r"(?:([\w.@-]{1,64}):)?([!-+\--9;-~]+)", re.ASCII)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)


def read_tokens(text: str) -> dict[str, str]:
    """Read one token, or several with the names of those whose they are. Raises ServerError."""
    found: dict[str, str] = {}
    for each in filter(None, (piece.strip() for piece in text.split(","))):
        match = _TOKEN.fullmatch(each)
        if match is None or len(match[2]) < SHORTEST_TOKEN:
            reason = f"a token in LONGTHREAD_GATEWAY_TOKEN is short or odd. Give {SHORTEST_TOKEN} characters or more, "
            raise ServerError(reason=reason + "without blanks, as TOKEN or NAME:TOKEN, separated by commas.")
        if match[2] in found:
            raise ServerError(reason="LONGTHREAD_GATEWAY_TOKEN has one token twice. Give each name its own.")
        found[match[2]] = match[1] or ""
    return found


def read_origins(text: str) -> frozenset[str]:
    """Read the origins of web pages. Raises ServerError."""
    found = [each.strip().lower().rstrip("/") for each in text.split(",") if each.strip()]
    for each in found:
        if _ORIGIN.fullmatch(each) is None:
            reason = (
                f"{each} in LONGTHREAD_GATEWAY_ORIGINS is no origin of a web page. Write it as http://localhost:3000."
            )
            raise ServerError(reason=reason)
    return frozenset(found)


def require_token(settings: Settings) -> None:
    """Raise ServerError for a gateway that others reach and that has neither users nor a token."""
    if settings.auth == "local" and settings.gateway_token is None and not is_loopback(settings.host):
        reason = f"others can reach {settings.host}, and LONGTHREAD_GATEWAY_TOKEN is not set: anyone could spend your "
        reason += "keys and read conversations. Set it to a token of 16 characters or more, which clients then send."
        raise ServerError(reason=reason)


TOKEN_HEADER = b"x-longthread-token"
"""Where a client sends the token that has a key of its own for the provider."""
_PREFLIGHT_SECONDS = b"600"
_NO_TOKEN = (
    "This gateway answers only programs of its own machine, under the address that it printed. For others, its "
    "operator sets LONGTHREAD_GATEWAY_TOKEN, and clients send that."
)
_WRONG_TOKEN = (
    "The token of this gateway is missing or wrong. Send it as your API key, or in X-Longthread-Token beside a key of "
    "your own."
)


@dataclass(frozen=True, slots=True)
class Door:
    """Who may come in.

    Attributes:
        names: the names that the server goes by; None: a proxy checks from where requests come.
        tokens: by token, the user who owns it, or an empty text.
        origins: of web pages, in lower case.
        has_users: callers are known by API keys of Longthread's, which the router checks; no token counts.
    """

    names: Collection[str] | None = None
    tokens: Mapping[str, str] = field(default_factory=dict)
    origins: Collection[str] = ()
    has_users: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Door:
        """Where users log in, no token is read. Raises ServerError: a token or an origin is none."""
        names, origins = own_names(settings.host, settings.public_url), read_origins(settings.gateway_origins)
        if settings.auth != "local":
            return cls(names, origins=origins, has_users=True)
        given = settings.gateway_token.get_secret_value() if settings.gateway_token else ""
        return cls(names, read_tokens(given), origins)

    def admit(
        self, dialect: Dialect, incoming: Incoming, scope: Scope, *, is_open: bool = False
    ) -> Incoming | Outgoing:
        """Return a request as the gateway may see it, with whose it is and without the token; or its refusal.
        `is_open`: what it asks for needs no token."""
        is_page = self.is_page(incoming)
        if is_page and incoming.method == "OPTIONS" and incoming.header("access-control-request-method"):
            return _preflight(incoming)
        admitted = self._with_token(incoming)
        if self.names is not None:
            if admitted is None and not is_own_name(incoming.header("host") or "", self.names, scope):
                message = "The gateway does not go by that name. Use the address that it printed."
                return make_refusal(dialect, 421, "", message)
            if not is_page and not _is_program(incoming):
                message = "A web page sent this request. The gateway answers programs, and pages of the origins that "
                return make_refusal(dialect, 403, "", message + "LONGTHREAD_GATEWAY_ORIGINS names.")
        is_checked = is_open or self.has_users
        if admitted is None and not is_checked and (self.tokens or (self.names is not None and not is_owner(scope))):
            code = "" if dialect is ANTHROPIC else "invalid_api_key"
            answer = make_refusal(dialect, 401, code, _WRONG_TOKEN if self.tokens else _NO_TOKEN)
            answer.headers.append((b"www-authenticate", b"Bearer"))
            return answer
        return admitted or replace(incoming, credential=_credential(incoming.headers))

    def is_page(self, incoming: Incoming) -> bool:
        """Whether a page sent a request whose origin is allowed."""
        return (incoming.header("origin") or "").lower() in self.origins

    def _with_token(self, incoming: Incoming) -> Incoming | None:
        """Return a request that has a token, without it; None if it has none."""
        given = [each for each in incoming.headers if each[0] == TOKEN_HEADER or each[0] in CREDENTIALS]
        names: dict[tuple[bytes, bytes], str] = {}
        for token, name in self.tokens.items():
            own = [each for each in given if hmac.compare_digest(_value(each), token.encode())]
            names |= dict.fromkeys(own, f"name {name}" if name else f"token {token}")
        if not names:
            return None
        found = next(iter(names.values()))
        headers = [each for each in incoming.headers if each not in names]
        # Several may share a token without a name: then their own keys tell them apart.
        credential = found if found.startswith("name ") else _credential(headers) or found
        return replace(incoming, headers=headers, credential=credential)


def _value(header: tuple[bytes, bytes]) -> bytes:
    """Return a credential without its scheme."""
    name, value = header
    scheme, *rest = value.split(maxsplit=1) or [b""]
    is_bearer = name in (b"authorization", TOKEN_HEADER) and scheme.lower() == b"bearer"
    return rest[0].strip() if is_bearer and rest else value.strip()


def _credential(headers: Headers) -> str:
    """Return what tells who asks: the keys that a request has for its provider; empty without any."""
    values = {_value(each) for each in headers if each[0] in CREDENTIALS} - {b""}
    return "key " + b"\n".join(sorted(values)).decode("latin-1") if values else ""


def _is_program(incoming: Incoming) -> bool:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(incoming.headers)}
    return is_same_origin(headers, headers.get("host", ""))


def _preflight(incoming: Incoming) -> Outgoing:
    """Return the answer to a browser that asks what a page of an allowed origin may send."""
    headers = [
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    ]
    if wanted := incoming.header("access-control-request-headers"):
        headers.append((b"access-control-allow-headers", wanted.encode("latin-1")))
    if incoming.header("access-control-request-private-network") == "true":
        headers.append((b"access-control-allow-private-network", b"true"))
    return Outgoing(204, headers)


def shared_with(origin: str, headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer that a page of an origin may read."""
    own = [(name, value) for name, value in headers if not name.startswith(_SHARING) or name in _PREFLIGHT]
    allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
    return [*own, allowed, (b"access-control-expose-headers", b"*"), (b"vary", b"Origin")]


_SHARING = b"access-control-"
_PREFLIGHT = frozenset(
    _SHARING + name for name in (b"allow-methods", b"allow-headers", b"max-age", b"allow-private-network")
)
