"""Who comes in by an issuer, as which user, with which role and groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from longthread.access.identities import AdmissionRules, Identity, admit, expect_active, find_user_of, is_settled
from longthread.access.sessions import begin_session, find_session
from longthread.access.users import (
    User,
    create_group,
    create_user,
    find_user_by_name,
    groups_of,
    list_users,
    normalize_name,
    set_groups,
    update_user,
)
from longthread.errors import AccountDisabled, AccountPending, DomainRefused, LongthreadError, SignupRefused
from longthread.settings import OidcIssuer, Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store

ADA = Identity("https://id.example", "1", "Ada", "Ada Lovelace", "ada@example.org", True, frozenset({"analysts"}))
RULES = AdmissionRules("oidc", "yes", "default")


@pytest.fixture(autouse=True)
async def first(request: pytest.FixtureRequest, store: Driver) -> None:
    """There is an administrator, but where a test is about the first one."""
    if "first" not in request.node.name:
        async with store.writing() as tx:
            await create_user(tx, "root", role="admin", password="hash")


async def come(store: Driver, identity: Identity = ADA, **rules: Any) -> User:
    async with store.writing() as tx:
        return await admit(tx, identity, replace(RULES, **rules))


async def group_names(store: Driver, user: User) -> set[str]:
    async with store.reading() as tx:
        return {each.name for each in await groups_of(tx, user.id)}


async def everyone(store: Driver) -> list[User]:
    async with store.reading() as tx:
        return [each for each in await list_users(tx) if each.name != "root"]


async def test_a_person_is_the_same_user_each_time(store: Driver) -> None:
    first = await come(store)
    assert (first.name, first.display, first.email, first.role) == ("ada", "Ada Lovelace", "ada@example.org", "member")
    assert await group_names(store, first) == {"analysts"}
    again = await come(store, replace(ADA, name="countess", email="other@example.org", groups=frozenset({"Poets"})))
    assert (again.id, again.name, again.email) == (first.id, "ada", "ada@example.org")
    assert await group_names(store, first) == {"poets"}
    async with store.reading() as tx:
        assert (await find_user_of(tx, ADA.issuer, ADA.subject)) is not None
        assert (await find_user_of(tx, "https://another.example", ADA.subject)) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(ADA, issuer="https://evil.example"),
        replace(ADA, subject="2"),
        replace(ADA, subject="2", email_verified=False),
    ],
)
async def test_the_same_name_and_address_make_nobody_the_same(store: Driver, other: Identity) -> None:
    first, second = await come(store), await come(store, other)
    assert second.id != first.id
    assert second.name == "ada-2"
    assert second.email == (other.email if other.email_verified else None)


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize("verified", [True, False])
async def test_an_address_links_only_where_it_is_verified_and_allowed(
    store: Driver, link: bool, verified: bool
) -> None:
    async with store.writing() as tx:
        known = await create_user(tx, "countess", email="Ada@Example.org", password="hash")
    came = await come(store, replace(ADA, email_verified=verified), link_by_email=link)
    assert (came.id == known.id) is (link and verified)
    assert (await come(store)).id == came.id, "it stays so, whatever is set later"


async def test_an_invited_person_may_come_by_the_provider_instead(store: Driver) -> None:
    async with store.writing() as tx:
        known = await create_user(tx, "countess", email="ada@example.org", status="pending")
    came = await come(store, link_by_email=True)
    assert (came.id, came.status) == (known.id, "active")


async def test_who_waits_does_not_come_in_by_another_provider(store: Driver) -> None:
    waits = await come(store, signup="pending")
    came = await come(store, replace(ADA, issuer="https://b.example"), link_by_email=True, signup="yes")
    assert (came.id, came.status) == (waits.id, "pending")


async def test_an_address_that_two_users_have_links_nobody(store: Driver) -> None:
    async with store.writing() as tx:
        known = [await create_user(tx, name, email="ada@example.org") for name in ("a", "b")]
    assert (await come(store, link_by_email=True)).id not in {each.id for each in known}


@pytest.mark.parametrize("signup", ["no", "pending", "yes"])
@pytest.mark.parametrize("is_admin", [True, False])
@pytest.mark.parametrize("is_known", [True, False])
async def test_who_may_sign_up(store: Driver, signup: str, is_admin: bool, is_known: bool) -> None:
    if is_known:
        await come(store)
    rules = {"signup": signup, "admin_groups": frozenset({"analysts"} if is_admin else {"others"})}
    if signup == "no" and not is_known:
        with pytest.raises(SignupRefused):
            await come(store, **rules)
        assert await everyone(store) == []
        return
    user = await come(store, **rules)
    assert user.role == ("admin" if is_admin else "member")
    waits = signup == "pending" and not is_known and not is_admin
    assert user.status == ("pending" if waits else "active")
    if waits:
        with pytest.raises(AccountPending):
            expect_active(user)
    else:
        expect_active(user)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("email", "verified", "comes"),
    [
        ("ada@example.org", True, True),
        ("ada@EXAMPLE.org", True, True),
        ("ada@example.org", False, False),
        ("ada@evil.example", True, False),
        ("ada@sub.example.org", True, False),
        ("ada@example.org@evil.example", True, False),
        ("example.org", True, False),
        (None, True, False),
    ],
)
async def test_who_is_of_an_allowed_domain(
    store: Driver, email: str | None, verified: bool, comes: bool, is_known: bool
) -> None:
    if is_known:
        await come(store)
    identity = replace(ADA, email=email, email_verified=verified)
    rules = AdmissionRules.of_issuer(
        OidcIssuer(id="a", issuer="https://id.example", client_id="c", allowed_domains="@Example.org, b.example"),
        Settings.of(),
    )
    if comes:
        await come(store, identity, allowed_domains=rules.allowed_domains)
        return
    before = await everyone(store)
    with pytest.raises(DomainRefused):
        await come(store, identity, allowed_domains=rules.allowed_domains)
    assert await everyone(store) == before


async def test_a_disabled_user_stays_out_and_nothing_is_written(store: Driver) -> None:
    user = await come(store)
    async with store.writing() as tx:
        await update_user(tx, user, status="disabled")
    with pytest.raises(AccountDisabled):
        await come(store, replace(ADA, groups=frozenset({"admins"})), admin_groups=frozenset({"admins"}))
    assert await group_names(store, user) == {"analysts"}


async def test_groups_of_an_issuer_never_become_local_ones(store: Driver) -> None:
    async with store.writing() as tx:
        await create_group(tx, "finance")
    user = await come(store, replace(ADA, groups=frozenset({"Finance", "sales", "a" * 300, "b\0", ""})))
    assert await group_names(store, user) == {"sales"}


async def test_the_first_administrator_takes_over_what_was_there(store: Driver) -> None:
    admins = {"admin_groups": frozenset({"analysts"})}
    first = await come(store, **admins, heir="default")
    assert (first.id, first.role) == ("default", "admin")
    second = await come(store, replace(ADA, subject="2", name="grace"), **admins, heir="default")
    assert second.id != "default" and second.role == "admin"


async def test_the_first_user_of_all_is_an_administrator(store: Driver) -> None:
    """Otherwise somebody could come before whoever has the setup link, which then makes no user any more."""
    for signup in ("yes", "pending"):
        with pytest.raises(SignupRefused):
            await come(store, signup=signup, admin_groups=frozenset({"admins"}))


async def test_a_role_follows_the_groups_and_ends_sessions(store: Driver) -> None:
    admins = {"admin_groups": frozenset({"admins"})}
    leader = await come(store, replace(ADA, subject="2", name="grace", groups=frozenset({"admins"})), **admins)
    user = await come(store, replace(ADA, groups=frozenset({"admins"})), **admins)
    assert leader.role == user.role == "admin"
    async with store.writing() as tx:
        token = await begin_session(tx, user)
    assert (await come(store, replace(ADA, groups=frozenset({"admins"})), **admins)).role == "admin"
    async with store.reading() as tx:
        assert await find_session(tx, token) is not None
    assert (await come(store, **admins)).role == "member"
    async with store.reading() as tx:
        assert await find_session(tx, token) is None
    async with store.writing() as tx:
        await update_user(tx, await find_user_by_name(tx, "root"), status="disabled")
    stays = await come(store, replace(ADA, subject="2", groups=frozenset()), **admins)
    assert stays.role == "admin", "the last administrator stays one"


async def test_a_builder_stays_one_and_without_such_groups_all_roles_do(store: Driver) -> None:
    user = await come(store)
    for role in ("builder", "admin"):
        async with store.writing() as tx:
            await update_user(tx, user, role=role)
        assert (await come(store)).role == role
    async with store.writing() as tx:
        await update_user(tx, replace(user, role="member"), role="builder")
    assert (await come(store, admin_groups=frozenset({"admins"}))).role == "builder"


async def test_what_a_login_would_change_is_known_before(store: Driver) -> None:
    user = await come(store)

    async def settled(identity: Identity, **rules: Any) -> bool:
        async with store.reading() as tx:
            return await is_settled(tx, user, identity, replace(RULES, **rules))

    assert await settled(ADA)
    assert not await settled(replace(ADA, groups=frozenset()))
    assert not await settled(ADA, admin_groups=frozenset({"analysts"}))


@pytest.fixture
async def other(store_address: str, store: Driver) -> AsyncIterator[Driver]:
    async with open_store(store_address) as opened:
        yield opened


async def test_two_logins_at_once_make_one_user(store: Driver, other: Driver) -> None:
    came = await asyncio.gather(*(come(each) for each in (store, other, store, other)), return_exceptions=True)
    users = [each for each in came if isinstance(each, User)]
    assert all(isinstance(each, User | LongthreadError) for each in came)
    assert users and len({each.id for each in users}) == 1
    assert len(await everyone(store)) == 1


async def test_a_person_without_a_usable_name_gets_one(store: Driver) -> None:
    assert (await come(store, replace(ADA, name="\0"))).name == "1"
    assert (await come(store, replace(ADA, name="", subject="x" * 255))).name == "x" * 196
    assert (await come(store, replace(ADA, name="n" * 300, subject="3"))).name == "n" * 196
    async with store.reading() as tx:
        assert (await find_user_by_name(tx, "1")).display == "Ada Lovelace"


@pytest.mark.parametrize(
    "name", ["ｒｏｏｔ", "ＲＯＯＴ", "ⓡoot", "ﬁona", "\N{KELVIN SIGN}arl", "Stra\N{LATIN SMALL LETTER SHARP S}e"]
)
@pytest.mark.parametrize("origin", ["oidc", "proxy"])
async def test_a_name_that_looks_like_another_is_not_that_one(store: Driver, name: str, origin: str) -> None:
    looks_like = normalize_name(name)
    came = await come(store, replace(ADA, name=name), origin=origin)
    assert came.name != looks_like


@pytest.mark.parametrize(("name", "called"), [("chief", "chief"), ("Chief", "chief-2")])
@pytest.mark.parametrize("reserved", [frozenset[str](), frozenset({"chief", "chief-2", "chief-3"})])
async def test_with_policies_a_new_person_has_no_other_name(
    store: Driver, name: str, called: str, reserved: frozenset[str]
) -> None:
    came = await come(store, replace(ADA, name=name), has_policies=True, reserved=reserved)
    assert came.name == ("chief-4" if reserved else called)
    assert (await come(store, replace(ADA, name="Bob", subject="2"))).name == "bob"


@pytest.mark.parametrize(
    ("invited", "display", "comes"),
    [
        ("Chief", "", "Chief"),
        ("chief", "", "chief"),
        ("Chief", "The Chief", "chief"),
    ],
)
async def test_an_invitation_is_for_that_very_name(store: Driver, invited: str, display: str, comes: str) -> None:
    async with store.writing() as tx:
        known = await create_user(tx, invited, status="pending", display=display)
    for number, name in enumerate(({"ＣＨＩＥＦ", "chief", "Chief", "CHIEF"}) - {comes}):
        identity = Identity("proxy", f"{number}", name, "", None, False, frozenset())
        assert (await come(store, identity, origin="proxy", link_by_name=True)).id != known.id
    identity = Identity("proxy", "it", comes, "", None, False, frozenset())
    assert (await come(store, identity, origin="proxy", link_by_name=True)).id == known.id


@pytest.mark.parametrize("group", ["ａdmins", "Admins", "ADMINS", "admins "])
async def test_a_group_that_looks_like_another_makes_no_administrator(store: Driver, group: str) -> None:
    settings = Settings.of(auth="proxy", auth_admin_groups="admins,Chefs")
    rules = AdmissionRules.of_proxy(settings)
    of_group = replace(ADA, groups=frozenset({group}))
    assert not rules.makes_admin(of_group)
    for name in ("admins", "Chefs"):
        assert rules.makes_admin(replace(ADA, groups=frozenset({name})))
    if group == "ａdmins":
        assert await group_names(store, await come(store, of_group)) == set()


async def test_groups_of_one_provider_are_not_those_of_another(store: Driver) -> None:
    staff = await come(store, replace(ADA, issuer="https://staff.example", groups=frozenset({"finance", "staff"})))
    guest = await come(store, replace(ADA, issuer="https://guests.example", groups=frozenset({"finance", "guests"})))
    assert await group_names(store, staff) == {"finance", "staff"}
    assert await group_names(store, guest) == {"guests"}, "it would have what is granted to the staff's group"
    both = replace(ADA, issuer="https://guests.example", groups=frozenset({"finance", "guests"}))
    async with store.writing() as tx:
        assert await is_settled(tx, guest, both, RULES)
        await set_groups(tx, staff, {"guests", "vip"}, origin="oidc", issuer="https://guests.example")
    assert await group_names(store, staff) == {"finance", "staff", "guests", "vip"}
    came = await come(store, replace(ADA, issuer="https://staff.example", groups=frozenset({"staff"})))
    assert await group_names(store, came) == {"staff", "guests", "vip"}, "each provider takes back its own alone"
