"""Logins that a proxy has checked: it says in a header who the user is, and is believed only where it is listed."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longthread.access.identities import (
    PROXY,
    AdmissionRules,
    Identity,
    admit,
    find_user_of,
    is_settled,
)
from longthread.access.users import User
from longthread.errors import ProxyRefused
from longthread.settings import UNIX, Settings
from longthread.store.driver import Driver

SECRET_HEADER, FORWARDED_HEADER = b"x-proxy-secret", b"x-forwarded-for"
_LONGEST = 4_096
"""Bytes of a header's value."""
_LONGEST_USER = 196
"""Characters: a name, with room for a number."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class ProxyIdentity:
    """Whom a trusted proxy names."""

    user: str
    email: str | None
    groups: frozenset[str]

    @property
    def key(self) -> str:
        """The same for the same person with the same groups."""
        return "\n".join([self.user, self.email or "", *sorted(self.groups)])

    @property
    def identity(self) -> Identity:
        return Identity(PROXY, self.user, self.user, "", self.email, self.email is not None, self.groups)


def read_proxy_identity(settings: Settings, scope: Mapping[str, Any]) -> ProxyIdentity | None:
    """Return whom the headers of an ASGI request name; None: there are none of them. Raises ProxyRefused: they come
    from elsewhere than a trusted proxy, without its secret, or more than once."""
    if settings.auth_header is None:
        return None
    names = {
        "user": settings.auth_header,
        "groups": settings.auth_groups_header,
        "email": settings.auth_email_header,
    }
    lines = {which: _lines(scope, name.lower().encode()) for which, name in names.items() if name is not None}
    secrets = _lines(scope, SECRET_HEADER)
    if not any((*lines.values(), secrets)):
        return None
    if not _is_trusted(settings, scope):
        raise ProxyRefused(reason="It did not come from a trusted proxy.")
    if settings.proxy_secret is not None:
        wanted = settings.proxy_secret.get_secret_value().encode()
        if len(secrets) != 1 or not hmac.compare_digest(secrets[0], wanted):
            raise ProxyRefused(reason="The proxy's secret is missing or wrong.")
    user = _value(lines["user"])
    if not user:
        return None
    if len(user) > _LONGEST_USER or not user.isprintable():
        raise ProxyRefused(reason="It holds no name.")
    groups = _value(lines.get("groups", [])).split(",")
    email = _value(lines.get("email", []))
    return ProxyIdentity(
        user=user,
        email=email if "@" in email else None,
        groups=frozenset(filter(None, map(str.strip, groups))),
    )


async def find_proxy_user(store: Driver, settings: Settings, found: ProxyIdentity) -> User:
    """Return the user whom a proxy names, with role and groups as it says. Only what changed is written. The user may
    be pending or disabled. Raises SignupRefused, AccountDisabled."""
    rules, identity = AdmissionRules.of_proxy(settings), found.identity
    async with store.reading() as tx:
        user = await find_user_of(tx, PROXY, found.user)
        if user is not None and (user.status == "disabled" or await is_settled(tx, user, identity, rules)):
            return user
    async with store.writing() as tx:
        return await admit(tx, identity, rules)


def find_client(settings: Settings, scope: Mapping[str, Any]) -> str:
    """Return the address that a request comes from: its peer's or, where trusted proxies handed it on, the last one in
    `X-Forwarded-For` that is none of theirs. "" where there is none, as for a Unix socket."""
    found = str((scope.get("client") or ("",))[0])
    if not _is_trusted(settings, scope):
        return found
    named = b",".join(_lines(scope, FORWARDED_HEADER)).decode("latin-1").split(",")
    for each in reversed(named):
        address = _parse_address(each.strip())
        if address is None:
            break
        found = str(address)
        if not _holds(settings, address):
            break
    return found


def _is_trusted(settings: Settings, scope: Mapping[str, Any]) -> bool:
    peer = scope.get("client")
    if peer is None or not peer[0]:
        return UNIX in settings.trusted_proxies
    address = _parse_address(peer[0])
    return address is not None and _holds(settings, address)


def _parse_address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or ipaddress.IPv6Address(address.packed)  # without the name of an interface
    return address


def _holds(settings: Settings, address: _Address) -> bool:
    return any(not isinstance(each, str) and address in each for each in settings.trusted_proxies)


def _lines(scope: Mapping[str, Any], name: bytes) -> list[bytes]:
    return [value for given, value in scope["headers"] if given.lower() == name]


def _value(lines: list[bytes]) -> str:
    """Return the value of a header that is there once, or "". Raises ProxyRefused."""
    if len(lines) > 1:
        raise ProxyRefused(reason="It is there more than once.")
    raw = lines[0] if lines else b""
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ProxyRefused(reason="It is no UTF-8 text.") from None
    if len(raw) > _LONGEST:
        raise ProxyRefused(reason="It is too long.")
    return text
