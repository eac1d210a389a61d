"""A database's URL, and how to show it without its secrets."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from longthread.errors import InvalidInput

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+_.-]*(?=://)")
_CREDENTIALS = re.compile(r"(?<=//)([^/@\s:]*):([^/\s]*)@")
_LOOSE_CREDENTIALS = re.compile(r":[^:@/\s]+@")


def is_url(spec: str) -> bool:
    """Whether `spec` is a URL rather than a path."""
    return _SCHEME.match(spec) is not None


def parsed(spec: str) -> URL:
    """The URL. Raises InvalidInput, without the URL's secrets, when it cannot be understood."""
    try:
        return make_url(spec)
    except (ArgumentError, ValueError):
        # The cause is not chained: its text would carry the password.
        raise InvalidInput(
            reason=f"The URL {shown(spec)} cannot be understood. Percent-encode special characters."
        ) from None


def shown(spec: str) -> str:
    """`spec` as it may be shown and stored: no password, and of the query only where it points to."""
    if not is_url(spec):
        return _LOOSE_CREDENTIALS.sub(":***@", spec)
    try:
        url = make_url(spec)
    except (ArgumentError, ValueError):
        return _CREDENTIALS.sub(r"\1:***@", spec).split("?")[0]
    kept = {name: value for name, value in url.query.items() if name in ("host", "port", "dbname", "sslmode")}
    return url.set(query=kept).render_as_string(hide_password=True)


def secrets_of(url: URL) -> list[str]:
    """Texts that no message may contain."""
    found = [str(url.password)] if url.password else []
    for name, value in url.query.items():
        if any(mark in name.lower() for mark in ("password", "passwd", "secret", "token", "key")):
            found += [value] if isinstance(value, str) else list(value)
    return sorted((secret for secret in found if secret), key=len, reverse=True)


def scrubbed(message: Any, secrets: list[str]) -> str:
    """A driver's message without the secrets."""
    text = str(message)
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
