"""The audit log as it is stored: who is noted, what stays of a user who is forgotten, and how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from longthread.access import audit
from longthread.access.audit import Acting, AuditFilter, acting, acting_as
from longthread.access.principal import KeyLimits, Principal
from longthread.access.users import create_user
from longthread.store.driver import Driver
from longthread.store.queries import Sql

EVERYTHING = AuditFilter()
ADA, BOB = Acting("u1", "session", "10.0.0.1", "r1"), Acting("u2", "key k", "10.0.0.2", "r2")


async def note(store: Driver, who: Acting | None, action: audit.AuditAction, object_: str = "", **about: str) -> None:
    with acting(who):
        await audit.note_alone(store, action, object_, **about)


async def rows(store: Driver, wanted: AuditFilter = EVERYTHING) -> list[audit.AuditRow]:
    async with store.reading() as tx:
        return await audit.list_rows(tx, wanted)


async def test_only_what_somebody_does_is_noted(store: Driver) -> None:
    await note(store, None, "login", "u1")
    async with store.writing() as tx:
        await audit.note(tx, "login", "u1")
    assert await rows(store) == []
    await note(store, ADA, "share.make", "t", link="l")
    [row] = await rows(store)
    assert (row.actor, row.via, row.address, row.request_id) == ("u1", "session", "10.0.0.1", "r1")
    assert (row.action, row.object, row.outcome, dict(row.detail)) == ("share.make", "t", "done", {"link": "l"})


async def test_a_row_is_written_with_what_it_is_about_or_not_at_all(store: Driver) -> None:
    with acting(ADA), pytest.raises(ZeroDivisionError):
        async with store.writing() as tx:
            await audit.note(tx, "group.add", "g")
            raise ZeroDivisionError
    assert await rows(store) == []


def test_a_request_is_of_a_session_or_a_key_and_has_an_id() -> None:
    key = KeyLimits("abc", frozenset({"read"}))
    by_key = acting_as(Principal("u1", "ada", "member", "key", key=key), address="::1", request_id="of-the.proxy:1")
    assert by_key == Acting("u1", "key abc", "::1", "of-the.proxy:1")
    for given in (None, "", "two words", "x" * 101, "a\nb"):
        made = acting_as(None, address="", request_id=given)
        assert (made.actor, made.via) == ("", "")
        assert len(made.request_id) == 36


async def test_rows_are_found_by_user_action_and_time_and_listed_in_pages(store: Driver) -> None:
    for number in range(5):
        await note(store, ADA if number % 2 else BOB, "key.make" if number < 3 else "key.revoke", str(number))
    assert [each.object for each in await rows(store)] == ["4", "3", "2", "1", "0"]
    assert [each.object for each in await rows(store, AuditFilter(actor="u1"))] == ["3", "1"]
    assert [each.object for each in await rows(store, AuditFilter(action="key.revoke"))] == ["4", "3"]
    hour = timedelta(hours=1)
    assert await rows(store, AuditFilter(since=datetime.now(UTC) + hour)) == []
    assert await rows(store, AuditFilter(until=datetime.now(UTC) - hour)) == []
    async with store.reading() as tx:
        first = await audit.list_rows(tx, EVERYTHING, limit=2)
        assert [each.object for each in await audit.list_rows(tx, EVERYTHING, before=first[-1].id, limit=2)] == [
            "2",
            "1",
        ]


async def test_of_a_forgotten_user_a_pseudonym_stays(store: Driver) -> None:
    async with store.writing() as tx:
        await create_user(tx, "Ada", user_id="u1")
    await note(store, ADA, "share.make", "thread-of-ada")
    await note(store, ADA, "grant.add", "source-of-all", to_id="u1", kind="u1 and more")
    await note(store, BOB, "user.change", "u1")
    await note(store, BOB, "admin.read", "thread-of-ada", on_behalf="u1")
    await note(store, Acting("", "", "10.0.0.1"), "login", "u1", outcome="failed")
    await note(store, BOB, "group.add", "g")
    async with store.reading() as tx:
        assert len(await audit.list_rows_about(tx, "u1")) == 5
        assert len(await audit.list_rows_about(tx, "u2")) == 3
    async with store.writing() as tx:
        assert await audit.forget_actor(tx, "u1") == 5
    found = await rows(store)
    pseudonym = found[-1].actor
    assert pseudonym.startswith("forgotten-")
    assert [(each.actor, each.object, each.on_behalf, each.address) for each in found] == [
        ("u2", "g", None, "10.0.0.2"),
        ("", pseudonym, None, ""),
        ("u2", "", pseudonym, "10.0.0.2"),
        ("u2", pseudonym, None, "10.0.0.2"),
        (pseudonym, "source-of-all", None, ""),
        (pseudonym, "", None, ""),
    ]
    assert {each.actor_name for each in found} == {None}
    assert found[4].detail == {"to_id": pseudonym, "kind": "u1 and more"}


async def test_a_pseudonym_is_the_same_for_one_user_and_another_in_each_store(
    store: Driver, other_address: str
) -> None:
    for _ in range(2):
        await note(store, ADA, "login", "u1")
        async with store.writing() as tx:
            await audit.forget_actor(tx, "u1")
    await note(store, BOB, "login", "u2")
    async with store.writing() as tx:
        await audit.forget_actor(tx, "u2")
    bob, *ada = [each.actor for each in await rows(store)]
    assert len(set(ada)) == 1
    assert bob not in ada


async def test_old_rows_are_deleted(store: Driver) -> None:
    for days in (0, 9, 11):
        await note(store, ADA, "login", str(days))
        at = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")
        async with store.writing() as tx:
            await tx.run(Sql("UPDATE access_audit SET at = :at WHERE object = :days"), at=at, days=str(days))
    assert await audit.delete_old_rows(store, 10) == 1
    assert [each.object for each in await rows(store)] == ["9", "0"]
