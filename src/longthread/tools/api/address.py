"""Checks the network addresses of requests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from longthread.errors import ApiFailed, ApiRefused

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
