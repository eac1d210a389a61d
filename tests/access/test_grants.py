"""Grants as they are stored, and the rights that they make: who may use and change what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from longthread.access.grants import (
    BY_DEFAULT,
    EVERYTHING,
    GRANT_KINDS,
    GrantedRights,
    GrantItem,
    GrantKind,
    add_grant,
    combine_grants,
    forget_item,
    list_grants,
    load_rights,
    own_item,
    remove_grant,
)
from longthread.access.principal import KeyLimits, KeyScope, Principal, UserRole, Via, local_principal
from longthread.access.users import (
    add_member,
    create_group,
    create_user,
    delete_group,
    delete_user,
    load_principal,
    remove_member,
)
from longthread.errors import GroupNotFound, InvalidInput, NotGranted, UserNotFound
from longthread.store.driver import Driver, Transaction

DEFAULTS: frozenset[GrantItem] = frozenset({("agent", "analyst"), ("source", "demo"), ("model", "test:scripted")})
SCOPES: frozenset[KeyScope] = frozenset({"chat"})


def caller(role: UserRole = "member", via: Via = "session", key: KeyLimits | None = None) -> Principal:
    return Principal("u1", "ada", role, via, key=key)


@pytest.mark.parametrize("kind", GRANT_KINDS)
@pytest.mark.parametrize(
    ("role", "granted", "uses", "edits"),
    [
        ("member", None, False, False),
        ("member", "use", True, False),
        ("member", "edit", True, False),
        ("builder", None, False, False),
        ("builder", "use", True, False),
        ("builder", "edit", True, True),
        ("admin", None, True, True),
    ],
)
def test_what_each_role_may_do_with_what_was_granted(
    kind: GrantKind, role: UserRole, granted: Any, uses: bool, edits: bool
) -> None:
    rights = GrantedRights(caller(role), {} if granted is None else {(kind, "x"): granted})
    assert (rights.may_use(kind, "x"), rights.may_edit(kind, "x")) == (uses, edits)
    assert rights.may_use(kind, "another") == (role == "admin")


@pytest.mark.parametrize("kind", GRANT_KINDS)
@pytest.mark.parametrize("via", ["local", "token"])
def test_who_needs_no_login_may_use_all(kind: GrantKind, via: Via) -> None:
    rights = GrantedRights(caller(via=via))
    assert rights.is_unbounded and rights.may_use(kind, "x") and rights.may_edit(kind, "x")
    assert EVERYTHING.is_unbounded and EVERYTHING.may_use(kind, "x")


@pytest.mark.parametrize(
    ("kind", "limits", "named", "uses"),
    [
        ("agent", {"agents": frozenset({"a"})}, ["a"], True),
        ("agent", {"agents": frozenset({"a"})}, ["id", "a"], True),
        ("agent", {"agents": frozenset({"a"})}, ["b"], False),
        ("agent", {"agents": frozenset[str]()}, ["a"], False),
        ("model", {"models": frozenset({"anthropic:*"})}, ["anthropic:x"], True),
        ("model", {"models": frozenset({"anthropic:*"})}, ["openai:x"], False),
        ("model", {"models": frozenset({"m"})}, ["m"], True),
        ("source", {"sources": frozenset({"sales"})}, ["id", "sales"], True),
        ("source", {"sources": frozenset({"sales"})}, ["hr"], False),
        ("source", {"agents": frozenset({"a"})}, ["hr"], True),
        ("tool", {"agents": frozenset({"a"})}, ["t"], True),
    ],
)
@pytest.mark.parametrize("role", ["member", "admin"])
def test_the_limits_of_a_key_hold_for_what_its_user_may(
    role: UserRole, kind: GrantKind, limits: Any, named: list[str], uses: bool
) -> None:
    key = KeyLimits("k", SCOPES, **limits)
    rights = GrantedRights(caller(role, "key", key), {(kind, named[0]): "edit"})
    assert rights.may_use(kind, *named) == uses
    assert not rights.is_unbounded
    without = GrantedRights(replace(rights.principal, key=KeyLimits("k", SCOPES)), {})
    assert without.may_use(kind, *named) == (role == "admin")  # a key never adds a right


def test_a_grant_of_models_may_name_how_they_begin() -> None:
    rights = GrantedRights(caller(), {("model", "openai:*"): "use", ("tool", "openai:*"): "use"})
    assert rights.may_use("model", "openai:gpt") and not rights.may_use("model", "anthropic:x")
    assert not rights.may_use("tool", "openai:gpt")


def test_errors_say_what_is_missing() -> None:
    rights = GrantedRights(caller("builder"), {("source", "s"): "use"})
    with pytest.raises(NotGranted, match="no right to edit the source sales"):
        rights.expect_edit("source", "s", "sales")
    with pytest.raises(NotGranted, match="no right to use the agent x"):
        rights.expect_use("agent", "x")
    rights.expect_use("source", "s")


@pytest.mark.parametrize(
    ("granted", "found"),
    [
        ([], {("source", "demo"): "use"}),
        ([(("source", "demo"), "none")], {}),
        ([(("source", "demo"), "none"), (("source", "demo"), "use")], {("source", "demo"): "use"}),
        ([(("source", "x"), "edit"), (("source", "x"), "use")], {("source", "demo"): "use", ("source", "x"): "edit"}),
        ([(("source", "x"), "use"), (("source", "x"), "edit")], {("source", "demo"): "use", ("source", "x"): "edit"}),
        ([(("source", "x"), "none")], {("source", "demo"): "use"}),
    ],
)
def test_the_most_that_is_granted_counts_and_none_takes_a_default_back(granted: Any, found: Any) -> None:
    assert combine_grants(granted, defaults=[("source", "demo")]) == found


async def test_rights_are_those_of_the_user_the_groups_and_everyone(store: Driver) -> None:
    async with store.writing() as tx:
        ada, bob = await create_user(tx, "ada"), await create_user(tx, "bob")
        sales = await create_group(tx, "sales")
        await add_member(tx, sales, ada)
        await add_grant(tx, "source", "s1", "user", ada.id, "use", by="root")
        await add_grant(tx, "tool", "t1", "group", sales.id, "edit", by="root")
        await add_grant(tx, "agent", "a1", "everyone", "", "use", by="root")
        own = GrantedRights(await load_principal(tx, ada, "session"))
        mine = await load_rights(tx, own.principal, DEFAULTS)
        others = await load_rights(tx, await load_principal(tx, bob, "session"), DEFAULTS)
    usual: dict[GrantItem, str] = dict.fromkeys(DEFAULTS, "use") | {("agent", "a1"): "use"}
    assert mine.granted == usual | {("source", "s1"): "use", ("tool", "t1"): "edit"}
    assert others.granted == usual
    async with store.writing() as tx:
        await remove_member(tx, sales, ada)
        assert ("tool", "t1") not in (await load_rights(tx, own.principal, DEFAULTS)).granted
        await add_member(tx, sales, ada)
        await delete_group(tx, sales)
        await forget_item(tx, "source", "s1")
        assert (await load_rights(tx, own.principal, DEFAULTS)).granted == usual
        await own_item(tx, "skill", "k1", ada.id)
        assert [each.may for each in await list_grants(tx, (), kind="skill")] == ["edit"]
        await delete_user(tx, ada)
        assert await list_grants(tx, (), kind="skill") == []


async def test_what_everyone_may_by_default_can_be_taken_back_and_given_again(store: Driver) -> None:
    async with store.writing() as tx:
        ada = await create_user(tx, "ada")
        principal = await load_principal(tx, ada, "session")

        async def may(kind: GrantKind, item: str) -> bool:
            return (await load_rights(tx, principal, DEFAULTS)).may_use(kind, item)

        assert [(each.item, each.granted_by) for each in await list_grants(tx, DEFAULTS, kind="source")] == [
            ("demo", BY_DEFAULT)
        ]
        assert await may("source", "demo")
        assert await remove_grant(tx, "source", "demo", "everyone", "", defaults=DEFAULTS, by="root")
        assert not await may("source", "demo")
        assert await list_grants(tx, DEFAULTS, kind="source") == []
        assert not await remove_grant(tx, "source", "demo", "everyone", "", defaults=DEFAULTS, by="root")
        await add_grant(tx, "source", "demo", "user", ada.id, "use", by="root")
        assert await may("source", "demo")
        await remove_grant(tx, "source", "demo", "user", ada.id, defaults=DEFAULTS, by="root")
        assert not await may("source", "demo")
        await add_grant(tx, "source", "demo", "everyone", "", "use", by="root")
        assert await may("source", "demo")
        [again] = await list_grants(tx, DEFAULTS, kind="source", item="demo")
        assert (again.to_kind, again.granted_by, again.may) == ("everyone", "root", "use")


async def test_a_grant_is_to_a_user_or_a_group_that_there_is(store: Driver) -> None:
    async with store.writing() as tx:
        with pytest.raises(UserNotFound):
            await add_grant(tx, "source", "x", "user", "nobody", "use", by="root")
        with pytest.raises(GroupNotFound):
            await add_grant(tx, "source", "x", "group", "none", "use", by="root")
        with pytest.raises(InvalidInput):
            await add_grant(tx, "source", "x", "everyone", "u1", "use", by="root")
        assert await list_grants(tx, ()) == []


async def test_a_grant_names_to_whom_and_stands_in_the_place_of_the_one_before(store: Driver) -> None:
    async with store.writing() as tx:
        ada, team = await create_user(tx, "Ada"), await create_group(tx, "Team")
        await add_grant(tx, "agent", "x", "user", ada.id, "use", by="root")
        await add_grant(tx, "agent", "x", "user", ada.id, "edit", by="root")
        await add_grant(tx, "agent", "x", "group", team.id, "use", by="root")
        found = await list_grants(tx, ())
    assert [(each.to_kind, each.to_name, each.may) for each in found] == [
        ("group", "team", "use"),
        ("user", "ada", "edit"),
    ]


class Unasked:
    """A transaction that takes no query."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the store")


@pytest.mark.parametrize(
    "principal", [local_principal("default", is_owner=True), local_principal("x", is_owner=False), caller("admin")]
)
async def test_who_may_all_costs_no_query(principal: Principal) -> None:
    unasked: Transaction = Unasked()  # type: ignore[assignment]
    assert (await load_rights(unasked, principal, DEFAULTS)).is_unbounded
