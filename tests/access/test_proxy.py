"""A header says who the user is only where a trusted proxy sent it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from longthread.access.proxy import ProxyIdentity, find_proxy_user, read_proxy_identity
from longthread.access.users import User, create_user, groups_of, list_users, update_user
from longthread.errors import InvalidInput, ProxyRefused, SignupRefused
from longthread.settings import Settings
from longthread.store.driver import Driver

SECRET = "of the proxy, sixteen"
GIVEN: dict[str, Any] = {
    "auth_header": "X-Auth-Request-User",
    "auth_groups_header": "X-Auth-Request-Groups",
    "auth_email_header": "X-Auth-Request-Email",
    "trusted_proxies": "10.0.0.0/8, 192.168.1.5, fd00::/8, unix",
}
USER = (b"x-auth-request-user", b"ada")

PEERS = {
    "10.1.2.3": True,
    "::ffff:10.1.2.3": True,
    "192.168.1.5": True,
    "fd00::1": True,
    "fd00::1%eth0": True,
    None: True,
    "": True,
    "11.1.2.3": False,
    "192.168.1.6": False,
    "127.0.0.1": False,
    "::1": False,
    "fe80::1": False,
    "testclient": False,
}
HEADERS: dict[str, tuple[list[tuple[bytes, bytes]], str | type[ProxyRefused] | None]] = {
    "none": ([], None),
    "another": ([(b"x-forwarded-user", b"eve"), (b"x_auth_request_user", b"eve")], None),
    "one": ([USER], "ada"),
    "one in capitals": ([(b"X-Auth-Request-User", b"ada")], "ada"),
    "two": ([USER, (b"X-AUTH-REQUEST-USER", b"eve")], ProxyRefused),
    "the same twice": ([USER, USER], ProxyRefused),
    "empty": ([(b"x-auth-request-user", b" ")], None),
    "groups alone": ([(b"x-auth-request-groups", b"admins")], None),
    "groups twice": ([USER, *[(b"x-auth-request-groups", b"a")] * 2], ProxyRefused),
    "e-mail twice": ([USER, *[(b"x-auth-request-email", b"a@b")] * 2], ProxyRefused),
    "no text": ([(b"x-auth-request-user", b"\xff")], ProxyRefused),
    "a control character": ([(b"x-auth-request-user", b"ada\tb")], ProxyRefused),
    "long": ([(b"x-auth-request-user", b"a" * 5_000)], ProxyRefused),
}
SECRETS: dict[str, tuple[list[bytes], bool]] = {
    "none": ([], False),
    "right": ([SECRET.encode()], True),
    "wrong": ([b"wrong"], False),
    "empty": ([b""], False),
    "twice": ([SECRET.encode()] * 2, False),
    "not ascii": (["密".encode()], False),
}


def scope(peer: str | None, headers: list[tuple[bytes, bytes]]) -> Mapping[str, Any]:
    return {"client": None if peer is None else (peer, 1), "headers": headers}


@pytest.mark.parametrize("wants", [True, False], ids=["secret", "no secret"])
@pytest.mark.parametrize("peer", PEERS)
def test_peer_header_and_secret(peer: str | None, wants: bool) -> None:
    for header, secret in product(HEADERS, SECRETS):
        check_identity(peer, header, secret, wants=wants)


def check_identity(peer: str | None, header: str, secret: str, *, wants: bool) -> None:
    settings = Settings.of(**GIVEN, proxy_secret=SECRET if wants else None)
    (lines, expected), (sent, is_right) = HEADERS[header], SECRETS[secret]
    asked = scope(peer, [*lines, *((b"x-proxy-secret", each) for each in sent)])
    says_something = (bool(lines) and header != "another") or bool(sent)
    if says_something and (not PEERS[peer] or (wants and not is_right) or expected is ProxyRefused):
        with pytest.raises(ProxyRefused):
            read_proxy_identity(settings, asked)
        return
    found = read_proxy_identity(settings, asked)
    assert (found and found.user) == expected


def test_groups_and_address_come_along() -> None:
    asked = [USER, (b"x-auth-request-groups", b"analysts, /team/a ,,"), (b"x-auth-request-email", b"ada@example.org")]
    found = read_proxy_identity(Settings.of(**GIVEN), scope("10.0.0.1", asked))
    assert found == ProxyIdentity("ada", "ada@example.org", frozenset({"analysts", "/team/a"}))
    named = read_proxy_identity(Settings.of(**GIVEN), scope("10.0.0.1", [(USER[0], "张伟".encode())]))
    assert named is not None and named.user == "张伟"


def test_without_the_setting_no_header_counts() -> None:
    assert read_proxy_identity(Settings.of(), scope("10.0.0.1", [USER])) is None
    trusts_nobody = Settings.of(auth_header="X-Auth-Request-User")
    for peer in PEERS:
        with pytest.raises(ProxyRefused):
            read_proxy_identity(trusts_nobody, scope(peer, [USER]))


@pytest.mark.parametrize("proxies", ["0.0.0.0/0", "::/0", "10.0.0.1/8", "proxy", "10.0.0.0/8 11.0.0.0/8", "unix:"])
def test_no_setting_trusts_everyone(proxies: str) -> None:
    with pytest.raises(InvalidInput, match="trusted_proxies"):
        Settings.of(trusted_proxies=proxies)


async def came(store: Driver, settings: Settings, name: str = "ada", *groups: str) -> User:
    return await find_proxy_user(store, settings, ProxyIdentity(name, None, frozenset(groups)))


async def test_a_user_follows_what_the_proxy_says(store: Driver) -> None:
    settings = Settings.of(**GIVEN, auth_admin_groups="admins")
    first = await came(store, settings, "ada", "admins", "a")
    assert (first.id, first.role, first.status) == ("default", "admin", "active")
    eve = await came(store, settings, "eve", "a")
    assert eve.role == "member"
    assert (await came(store, settings, "eve", "b")).id == eve.id
    async with store.reading() as tx:
        assert [each.name for each in await groups_of(tx, eve.id)] == ["b"]


async def test_a_name_that_waits_for_its_first_login_is_taken_over(store: Driver) -> None:
    async with store.writing() as tx:
        ada = await create_user(tx, "ada", role="builder")
        await create_user(tx, "root", role="admin", password="hash")
    settings = Settings.of(**GIVEN)
    other = await came(store, settings, "Ada")
    assert other.id != ada.id, "a header is taken as it is written"
    assert (await came(store, settings, "ada")).id == ada.id
    taken = await came(store, settings, "root")
    assert (taken.name, taken.role) == ("root-2", "member"), "who has a password is somebody else"


async def test_who_signs_up_waits_or_is_refused_where_the_settings_say_so(store: Driver) -> None:
    with pytest.raises(SignupRefused):
        await came(store, Settings.of(**GIVEN))
    async with store.writing() as tx:
        await create_user(tx, "root", role="admin", password="hash")
    with pytest.raises(SignupRefused):
        await came(store, Settings.of(**GIVEN, auth_signup="no"))
    waits = await came(store, Settings.of(**GIVEN, auth_signup="pending"))
    assert waits.status == "pending"
    async with store.writing() as tx:
        await update_user(tx, waits, status="disabled")
    assert (await came(store, Settings.of(**GIVEN))).status == "disabled"
    async with store.reading() as tx:
        assert len(await list_users(tx)) == 2
