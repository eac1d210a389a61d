"""Where a request comes from: by which name it reached the server, and from whose page.

Nothing has a login yet, and servers rely on their loopback address. A web page could still make the user's browser call
them, by DNS rebinding (hence the check of `Host`) or across origins (hence the check of `Origin`).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection, Mapping

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\s]+)(?::(\d{1,5}))?")


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def own_names(host: str) -> set[str]:
    """Return the names of a server that listens on `host`."""
    return {host.lower(), "localhost", socket.gethostname().lower()}


def is_own_name(header: str, names: Collection[str]) -> bool:
    """Whether a `Host` is this server's. Any IP address is: DNS rebinding needs a name."""
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = found[1].strip("[]").lower().rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return True


def is_same_origin(headers: Mapping[str, str], host: str) -> bool:
    """Whether this server's own page, or a program, sent a request. `headers` have names in lower case."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() in {f"http://{host}".lower(), f"https://{host}".lower()}
    return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
