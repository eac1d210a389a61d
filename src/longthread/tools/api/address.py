"""The hosts that a tool may call, and the network addresses of its requests, checked."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx

from longthread.errors import ApiFailed, ApiRefused, ToolInvalid

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and port to addresses. Raises OSError."""
IpAddress = IPv4Address | IPv6Address

_NEVER = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host, by its old spelling
            "169.254.0.0/16",  # link-local, with the metadata of most clouds
            "168.63.129.16/32",  # Azure's
            "100.100.100.200/32",  # Alibaba's
            "192.0.0.0/24",  # Oracle's, and protocols of the network itself
            "fd00:ec2::/32",  # Amazon's
            "fe80::/10",
            "fec0::/10",
            "192.88.99.0/24",  # 6to4 relays
            "2002::/16",  # 6to4, Teredo, NAT64: another address stands within
            "2001::/32",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "::/96",
            "224.0.0.0/4",
            "ff00::/8",
            "240.0.0.0/4",
        ),
    )
)
_PRIVATE = tuple(
    map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "fc00::/7"))
)
_GLOBAL6 = ip_network("2000::/3")
_LOOPBACK6 = IPv6Address("::1")
_DOCUMENTATION6 = (ip_network("2001:db8::/32"), ip_network("3fff::/20"))


def refusal(text: str, *, allow_private: bool = False) -> str | None:
    """The reason why no request may go to an address, or None. Link-local, metadata, multicast and tunnel addresses are
    always refused; private and loopback ones without `allow_private`."""
    address = _plain(ip_address(text))
    if any(address in network for network in _NEVER) and address != _LOOPBACK6:
        return "is one that no tool may reach (link-local, metadata, multicast or a tunnel)"
    if address == _LOOPBACK6 or any(address in network for network in _PRIVATE):
        return None if allow_private else "is private, or this machine's own. `allow_private: true` allows it"
    if isinstance(address, IPv4Address):
        reachable = address.is_global
    else:
        reachable = address.is_global and address in _GLOBAL6
        reachable &= not any(address in network for network in _DOCUMENTATION6)
    return None if reachable else "is no public address"


async def addresses_of(host: str, port: int, resolve: Resolve, *, allow_private: bool) -> list[str]:
    """Resolves a host once. One refused address refuses them all: no honest name has public and private addresses.
    Raises ApiRefused, ApiFailed."""
    try:
        found = list(dict.fromkeys(await resolve(host, port)))
    except (OSError, UnicodeError) as error:
        raise ApiFailed(reason=f"the host {host[:100]} has no address.") from error
    if not found:
        raise ApiFailed(reason=f"the host {host[:100]} has no address.")
    for address in found:
        reason = refusal(address, allow_private=allow_private)
        if reason:
            raise ApiRefused(reason=f"the address {address} of {host[:100]} {reason}.")
    return [str(_plain(ip_address(address))) for address in found]


async def by_the_system(host: str, port: int) -> Sequence[str]:
    """The system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _plain(address: IpAddress) -> IpAddress:
    """Converts ::ffff:127.0.0.1 to IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


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
