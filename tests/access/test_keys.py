"""API keys: made, found in a request's headers, limited, expired and revoked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from longthread.access import keys, sessions
from longthread.access.audit import Acting, AuditFilter, acting, list_rows
from longthread.access.keys import (
    NewKey,
    create_key,
    find_credential,
    find_key_principal,
    list_keys,
    remove_credential,
    revoke_key,
    touch_key,
)
from longthread.access.users import SpendingLimit, User, create_group, create_user, update_user
from longthread.access.users import add_member as add_member_of
from longthread.errors import ApiKeyNotFound, InvalidInput, ScopeMissing, SeveralKeys
from longthread.store.driver import Driver

KEY = f"lt_abcd1234_{'s' * 43}"
OTHER = f"lt_abcd1234_{'t' * 43}"


async def make(store: Driver, user: User, **fields: Any) -> str:
    async with store.writing() as tx:
        _, text = await create_key(tx, user, NewKey("ci", ["chat"], **fields))
    return text


async def make_user(store: Driver, name: str = "ada", **fields: Any) -> User:
    async with store.writing() as tx:
        return await create_user(tx, name, **fields)


async def test_a_key_stands_for_its_user_within_its_limits(store: Driver) -> None:
    async with store.writing() as tx:
        ada = await create_user(tx, "ada", role="builder")
        group = await create_group(tx, "analysts")
        await add_member_of(tx, group, ada)
        budget = SpendingLimit(5.5, "money", "week")
        new = NewKey(
            " nightly ", ["chat", "gateway"], ["main"], ["openai:gpt-5"], ["demo", "商店"], None, budget, 60, 2
        )
        key, text = await create_key(tx, ada, new)
    assert text.startswith(f"lt_{key.id}_") and len(text) == 55
    async with store.reading() as tx:
        caller = await find_key_principal(tx, text)
        [listed] = await list_keys(tx, ada.id)
        assert await list_keys(tx) == [listed] == [key]
    assert caller is not None and caller.key is not None
    assert (caller.user, caller.name, caller.role, caller.via) == (ada.id, "ada", "builder", "key")
    assert caller.groups == {group.id}
    limits = caller.key
    assert (limits.scopes, limits.agents, limits.models) == ({"chat", "gateway"}, {"main"}, {"openai:gpt-5"})
    assert (limits.sources, limits.requests_per_minute, limits.parallel) == ({"demo", "商店"}, 60, 2)
    assert (listed.name, listed.budget, listed.user_name) == ("nightly", budget, "ada")
    assert caller.has_scope("read") and caller.has_scope("gateway") and not caller.has_scope("mcp")
    with pytest.raises(ScopeMissing):
        caller.expect_scope("admin")


async def test_the_store_has_only_a_hash_of_a_key(store: Driver) -> None:
    text = await make(store, await make_user(store))
    async with store.reading() as tx:
        [row] = await tx.fetch("select_keys")
    assert text not in str(dict(row)) and text.rpartition("_")[2] not in str(dict(row))


async def test_a_key_that_is_wrong_expired_or_revoked_is_nobodys(store: Driver) -> None:
    ada = await make_user(store)
    text = await make(store, ada)
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    expiring = await make(store, ada, expires_at=soon)
    wrong = text[:-1] + ("a" if text[-1] != "a" else "b")
    async with store.reading() as tx:
        for each in (wrong, KEY, "", "lt_", f"{text} ", f"lt_{'x' * 10_000}", text.upper()):
            assert await find_key_principal(tx, each) is None, each
        assert await find_key_principal(tx, text) is not None
    async with store.writing() as tx:
        assert (await revoke_key(tx, text[3:11])).user_name == "ada"
    while datetime.now(UTC) < soon:
        pass
    async with store.reading() as tx:
        assert await find_key_principal(tx, text) is None
        assert await find_key_principal(tx, expiring) is None
        assert [key.id for key in await list_keys(tx)] == [expiring[3:11]]  # it can still be seen that it expired


@pytest.mark.parametrize("status", ["disabled", "pending"])
async def test_a_key_works_only_while_its_user_is_active(store: Driver, status: str) -> None:
    ada = await make_user(store)
    text = await make(store, ada)
    async with store.writing() as tx:
        changed = await update_user(tx, ada, status=status)
        assert await find_key_principal(tx, text) is None
        await update_user(tx, changed, status="active")
        assert await find_key_principal(tx, text) is not None


async def test_a_key_of_another_user_is_as_one_that_does_not_exist(store: Driver) -> None:
    ada, ben = await make_user(store), await make_user(store, "ben")
    text = await make(store, ada)
    async with store.writing() as tx:
        with pytest.raises(ApiKeyNotFound) as anothers:
            await revoke_key(tx, text[3:11], ben.id)
        with pytest.raises(ApiKeyNotFound) as unknown:
            await revoke_key(tx, "zzzzzzzz", ben.id)
        assert str(anothers.value).replace(text[3:11], "zzzzzzzz") == str(unknown.value)
        assert await list_keys(tx, ben.id) == []
        await revoke_key(tx, text[3:11], ada.id)
        with pytest.raises(ApiKeyNotFound):
            await revoke_key(tx, text[3:11], ada.id)


async def test_making_and_revoking_a_key_is_in_the_audit_log(store: Driver) -> None:
    ada = await make_user(store)
    with acting(Acting(ada.id, "session")):
        text = await make(store, ada)
        async with store.writing() as tx:
            await revoke_key(tx, text[3:11])
    async with store.reading() as tx:
        rows = await list_rows(tx, AuditFilter())
    assert [(row.actor, row.action, row.object) for row in rows] == [
        (ada.id, "key.revoke", text[3:11]),
        (ada.id, "key.make", text[3:11]),
    ]
    assert text[12:] not in str(rows)


async def test_the_use_of_a_key_is_written_once_in_a_while(store: Driver) -> None:
    text = await make(store, await make_user(store))
    seen = []
    for _ in range(2):
        async with store.writing() as tx:
            await touch_key(tx, text[3:11])
            seen += [key.seen_at for key in await list_keys(tx)]
    assert seen[0] is not None and seen[0] == seen[1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "name has 1 to"),
        ({"name": "a\nb"}, "without control"),
        ({"scopes": []}, "needs a scope"),
        ({"scopes": ["chat", "root"]}, "root is no scope"),
        ({"agents": []}, "Name 1 to 200 agents"),
        ({"models": [""]}, "Name 1 to 200 models"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "expired already"),
        ({"budget": SpendingLimit(0, "money", "day")}, "above 0"),
        ({"budget": SpendingLimit(float("inf"), "money", "day")}, "above 0"),
        ({"parallel": 0}, "from 1 on"),
    ],
)
async def test_a_key_that_would_be_of_no_use_is_refused(store: Driver, fields: dict[str, Any], said: str) -> None:
    ada = await make_user(store)
    async with store.writing() as tx:
        with pytest.raises(InvalidInput, match=said):
            await create_key(tx, ada, NewKey(**{"name": "ci", "scopes": ["chat"]} | fields))


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], None),
        ([("Authorization", "Bearer sk-proj-1"), ("X-Api-Key", "sk-ant-1")], None),
        ([("Authorization", f"Bearer {KEY}")], KEY),
        ([("authorization", f"bearer   {KEY} ")], KEY),
        ([("Authorization", KEY)], KEY),
        ([("X-Api-Key", KEY)], KEY),
        ([("x-goog-api-key", KEY)], KEY),
        ([("Api-Key", KEY)], KEY),
        ([("X-Longthread-Key", KEY), ("Authorization", "Bearer sk-proj-1")], KEY),
        ([("X-Api-Key", KEY), ("Authorization", f"Bearer {KEY}")], KEY),
        ([("X-Longthread-Key", "sk-proj-1")], "sk-proj-1"),
        ([("X-Api-Key", "lt_short")], "lt_short"),
        ([("Cookie", KEY), ("X-Other", KEY)], None),
    ],
)
def test_a_key_is_found_in_any_of_its_headers(headers: list[tuple[str, str]], found: str | None) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    assert find_credential(raw) == found
    rest = remove_credential(raw)
    assert found is None or find_credential(rest) is None
    kept = [(name, value) for name, value in raw if found is None or found not in value.decode()]
    assert rest == kept


@pytest.mark.parametrize(
    ("first", "second"), [("Authorization", "X-Api-Key"), ("X-Api-Key", "x-api-key"), ("X-Longthread-Key", "X-Api-Key")]
)
def test_two_keys_of_ours_in_one_request_are_refused(first: str, second: str) -> None:
    headers = [(first.encode(), f"Bearer {KEY}".encode()), (second.encode(), OTHER.encode())]
    if first != "Authorization":
        headers[0] = (first.encode(), KEY.encode())
    with pytest.raises(SeveralKeys):
        find_credential(headers)


async def test_a_user_has_so_many_keys_and_no_more(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_KEYS", 3)
    async with store.writing() as tx:
        one, other = await create_user(tx, "one"), await create_user(tx, "other")
        made = [(await keys.create_key(tx, one, NewKey("k", ["read"])))[0] for _ in range(3)]
        with pytest.raises(InvalidInput, match="at most 3 keys"):
            await keys.create_key(tx, one, NewKey("k", ["read"]))
        await keys.create_key(tx, other, NewKey("k", ["read"]))
        await keys.revoke_key(tx, made[0].id)
        await keys.create_key(tx, one, NewKey("k", ["read"]))


def test_the_limits_of_a_key_are_short_together() -> None:
    names = [f"{number:0100}" for number in range(50)]
    keys.validate_key(NewKey("k", ["read"], agents=names, models=names))
    with pytest.raises(InvalidInput, match="10,000 characters together"):
        keys.validate_key(NewKey("k", ["read"], agents=names, models=names, sources=["s"]))


async def test_a_login_too_many_ends_the_one_least_used(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    async with store.writing() as tx:
        user, other = await create_user(tx, "one"), await create_user(tx, "other")
        kept = await sessions.begin_session(tx, other)
    tokens = []
    for _ in range(5):
        async with store.writing() as tx:
            tokens.append(await sessions.begin_session(tx, user))
        await asyncio.sleep(0.002)
    async with store.reading() as tx:
        found = [await sessions.find_session(tx, token) is not None for token in tokens]
        assert found == [False, False, True, True, True]
        assert await sessions.find_session(tx, kept) is not None
