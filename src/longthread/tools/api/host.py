"""The allowed hosts of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterable

import httpx

from longthread.errors import ApiRefused, ToolInvalid

_PORTS = {"http": 80, "https": 443}
_ENTRY = re.compile(r"((?:\*\.)?[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")


def port_of(url: httpx.URL) -> int:
    """A URL's port, or its scheme's. Raises ValueError."""
    port = _PORTS.get(url.scheme, 0) if url.port is None else url.port
    if not 0 < port < 65_536:
        raise ValueError(f"no port {port}")
    return port


def host_of(url: httpx.URL) -> str:
    """The host for comparison: ASCII, lower case, without a final dot."""
    return url.raw_host.decode("ascii").lower().rstrip(".")


class Hosts:
    """An allow-list of hosts (on ports 80 and 443), `*.domain`, or either with a port. Raises ToolInvalid."""

    def __init__(self, endpoint: httpx.URL, more: Iterable[str] = ()) -> None:
        own = (host_of(endpoint), port_of(endpoint))
        self._exact = {own} | ({(own[0], 443)} if own[1] == 80 else set())
        self._below: set[tuple[str, int]] = set()
        for entry in more:
            found = _ENTRY.fullmatch(entry.strip())
            if found is None or not 0 < int(found[2] or 80) < 65_536:
                raise ToolInvalid(problem=f"`hosts` has {entry[:100]!r}, which is no host such as api.example.com.")
            try:
                host = host_of(httpx.URL(f"http://{found[1].removeprefix('*.')}"))
            except httpx.InvalidURL as error:
                raise ToolInvalid(problem=f"`hosts` has {entry[:100]!r}, which is no host.") from error
            where = self._below if found[1].startswith("*.") else self._exact
            where.update((host, int(port)) for port in ((found[2],) if found[2] else ("80", "443")))

    def check(self, url: httpx.URL) -> None:
        """Raises ApiRefused for any other URL."""
        if url.scheme not in _PORTS:
            raise ApiRefused(reason=f"{url.scheme[:20] or 'nothing'}:// is not asked, only http:// and https://.")
        if url.userinfo:
            raise ApiRefused(reason="a URL with a user or a password in it is not asked.")
        host, port = host_of(url), port_of(url)
        below = any(port == one and host.endswith(f".{domain}") for domain, one in self._below)
        if not host or not (below or (host, port) in self._exact):
            reason = f"the host {host[:100]} (port {port}) is not one of the tool's. `hosts` can list it."
            raise ApiRefused(reason=reason)
