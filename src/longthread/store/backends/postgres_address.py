"""PostgreSQL URLs."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from longthread.errors import StoreUnavailable

_UNKNOWN = re.compile(r'invalid URI query parameter: "(\w+)"')


def shown(url: str) -> str:
    """Return a URL without password and options. Raises `StoreUnavailable` if it is malformed."""
    given = parsed(url)
    user, host, port = given.get("user"), given.get("host") or given.get("hostaddr") or "", given.get("port")
    place = f"{user}@" * bool(user) + str(host) + f":{port}" * bool(port)
    return f"postgresql://{place}/{given.get('dbname') or user or ''}"


def parsed(url: str) -> dict[str, Any]:
    """Return a URL's parts under libpq's names. Raises `StoreUnavailable` if it is malformed."""
    plain = re.sub(r"^postgres(?:ql)?(?:\+psycopg)?://", "postgresql://", url)
    try:
        given: dict[str, Any] = dict(conninfo_to_dict(plain))
    except psycopg.Error as error:
        # Before an @, it may be part of a password.
        if (unknown := _UNKNOWN.search(str(error))) and "@" not in plain.partition("?")[2]:
            raise StoreUnavailable(
                where="postgresql://…",
                reason=f"the URL has an option {unknown[1]}, which libpq does not know. Leave it out.",
            ) from None
        given = {"host": "@"}
    # A password with an @ or a / in it ends too early for libpq, and the rest of it stands elsewhere.
    misread = "@" in f"{given.get('host')}{given.get('dbname')}"
    if misread or not re.fullmatch(r"[\d,]*", str(given.get("port") or "")):
        raise StoreUnavailable(
            where="postgresql://…",
            reason="the URL cannot be read. It is written postgresql://user:password@host:port/database, with "
            "special characters in a name or password percent-encoded (@ is %40, / is %2F).",
        )
    return given
