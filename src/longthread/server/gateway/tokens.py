"""The tokens and the origins that the gateway's operator chose. Pure."""

from __future__ import annotations

import re

from longthread.errors import ServerError
from longthread.server.origin import is_loopback
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
    """Raise ServerError for a gateway that others reach and that has no token."""
    if settings.gateway_token is None and not is_loopback(settings.host):
        reason = f"others can reach {settings.host}, and LONGTHREAD_GATEWAY_TOKEN is not set: anyone could spend your "
        reason += "keys and read conversations. Set it to a token of 16 characters or more, which clients then send."
        raise ServerError(reason=reason)
