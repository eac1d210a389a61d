"""No request goes to an address that is not public, however it is written and whoever leads there."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import pytest

from longthread.errors import ApiFailed, ApiRefused
from longthread.tools.api_request import addresses_of, by_the_system, refusal

PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "192.169.0.1", "2606:4700::1111", "2a00:1450:4001::200e"]
PRIVATE = [
    "127.0.0.1", "127.1.2.3", "127.255.255.254", "::1", "::ffff:127.0.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "100.64.0.1", "fc00::1", "fd12:3456::1", "::ffff:10.0.0.1",
]  # fmt: skip
NEVER = [
    "0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "169.254.0.1", "::ffff:169.254.169.254", "168.63.129.16",
    "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "224.0.0.1", "239.1.1.1",
    "ff02::1", "255.255.255.255", "240.0.0.1", "192.88.99.1", "2002:7f00:1::", "2002:a9fe:a9fe::", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2001:0:7f00:1::", "::127.0.0.1", "::7f00:1",
]  # fmt: skip
NEITHER = ["192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_asked(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_asked_only_where_that_is_allowed(address: str) -> None:
    assert "allow_private" in str(refusal(address))
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", [*NEVER, *NEITHER])
@pytest.mark.parametrize("allow_private", [False, True])
def test_others_are_never_asked(address: str, allow_private: bool) -> None:
    assert refusal(address, allow_private=allow_private) is not None


SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "0177.1",
    "017700000001",
    "0x7f.0.0.1",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "0:0:0:0:0:0:0:1",
    "0",
    "0.0.0.0",
    "0x0",
]
METADATA = [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
]


@pytest.mark.parametrize("host", [*SPELLINGS, *METADATA])
async def test_every_spelling_is_known_by_the_address_that_the_system_makes_of_it(host: str) -> None:
    with pytest.raises((ApiRefused, ApiFailed)) as caught:
        await addresses_of(host, 80, by_the_system, allow_private=False)
    if isinstance(caught.value, ApiFailed):  # the system does not know this spelling
        with pytest.raises(OSError, match=".*"):
            socket.getaddrinfo(host, 80)


@pytest.mark.parametrize("host", METADATA)
async def test_metadata_is_refused_where_private_addresses_are_allowed(host: str) -> None:
    with pytest.raises((ApiRefused, ApiFailed)):
        await addresses_of(host, 80, by_the_system, allow_private=True)


def resolving(*addresses: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


async def test_a_name_of_a_public_and_a_private_address_is_refused() -> None:
    with pytest.raises(ApiRefused, match=r"127\.0\.0\.1"):
        await addresses_of("example.com", 80, resolving("93.184.216.34", "127.0.0.1"), allow_private=False)
    assert await addresses_of("example.com", 80, resolving("1.1.1.1", "1.1.1.1"), allow_private=False) == ["1.1.1.1"]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, "x." * 200, "\udcff"])
async def test_a_host_without_an_address_is_one_error(host: str) -> None:
    with pytest.raises(ApiFailed, match="has no address"):
        await addresses_of(host, 80, by_the_system, allow_private=False)
    with pytest.raises(ApiFailed):
        await addresses_of(host, 80, resolving(), allow_private=False)
