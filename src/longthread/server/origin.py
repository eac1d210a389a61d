"""Where a request comes from: who sent it, by which name it reached the server, and from whose page.

Nothing has a login yet. The server recognizes the owner, who may do what the command line may, by the request itself,
never by the address that it listens on. A web page could also make the owner's browser call the server, by DNS
rebinding (hence the check of `Host`) or across origins (hence the check of `Origin`).
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection, Mapping

from starlette.types import Scope

from longthread.server.http import PEER, Peer

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\s]+)(?::(\d{1,5}))?")
_OF_PROXIES = re.compile(
    rb".*forwarded.*|via|(.*-)?client-ip|(x-)?(real|original|envoy|remote|cf|fastly|fly|akamai|tailscale|azure|vercel)-.*"
    rb"|x-(auth-request|authenticated|appengine)-.*|x-scheme|cdn-loop|x-amzn-trace-id|x-amz-cf-id|x-cloud-trace-context"
)
"""The names of headers that proxies, networks and logins add to what they hand on, in lower case and with `-`."""


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_forwarded(scope: Scope) -> bool:
    """Whether a proxy handed a request on. HTTP/1.0 is what some speak that add no header; no browser does."""
    return scope.get("http_version") == "1.0" or any(
        _OF_PROXIES.fullmatch(name.lower().replace(b"_", b"-")) for name, _ in scope["headers"]
    )


def is_owner(scope: Scope) -> bool:
    """Return whether a request comes from the owner: straight from this machine, under a name of loopback.

    The program at the other end of a Unix socket is not known, so it does not count as the owner. Nor does a program of
    another user of this machine, where the system tells: it may be a proxy that adds no header.
    """
    peer = scope.get("client")
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
    named = len(hosts) == 1 and is_loopback(_name_of(hosts[0]) or "")
    if peer is None or not is_loopback(peer[0]) or not named or is_forwarded(scope):
        return False
    program: Peer | None = scope.get(PEER)
    return program is None or not program.is_other_users


def own_names(host: str) -> set[str]:
    """Return the names of a server that listens on `host`."""
    return {host.strip("[]").lower(), "localhost", socket.gethostname().lower()}


def is_own_name(header: str, names: Collection[str], scope: Scope) -> bool:
    """Return whether a `Host` is this server's. For a direct caller any IP address is, since DNS rebinding needs a
    name. Through a proxy only loopback addresses are: others are the proxy's."""
    name = _name_of(header)
    if name is None:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return name in names or is_loopback(name) or not is_forwarded(scope)


def is_same_origin(headers: Mapping[str, str], host: str) -> bool:
    """Whether this server's own page, or a program, sent a request. `headers` have names in lower case."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() in {f"http://{host}".lower(), f"https://{host}".lower()}
    return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}


def _name_of(header: str) -> str | None:
    """Return the host of a `Host` header without its port, in lower case; None if it is none."""
    found = _HOST.fullmatch(header)
    return None if found is None else found[1].strip("[]").lower().rstrip(".")
