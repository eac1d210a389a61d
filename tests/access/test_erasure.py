"""What is erased of a person: no row of any table says who it was, and what others have stays."""

from __future__ import annotations

from typing import Any

import pytest
from tests.access.person import WORD, plant_person
from tests.memory.canary import in_files, places

from longthread.access import audit
from longthread.access.audit import Acting, AuditFilter, acting
from longthread.access.users import create_user, find_user
from longthread.errors import LastAdmin, UserNotFound
from longthread.memory.forget import forget_user
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import read_rows

PERSON = f"{WORD}-id"
WANTED = [WORD.encode()]
_REPLACED = {
    *("access_grants.granted_by", "access_projects.created_by", "access_audit.actor", "access_audit.object"),
    *("access_audit.on_behalf", "access_audit.detail", "runs.asker", "queued_questions.asker", "approvals.decided_by"),
}


async def rows_of(store: Driver, *left_out: str) -> dict[str, list[Any]]:
    async with store.reading() as tx:
        tables = [each for each in (await read_tables(tx)).all if each.name not in left_out and each.thread is None]
        return {each.name: [row async for row in read_rows(tx, each)] for each in tables}


async def test_every_table_with_rows_of_users_has_some_of_the_person(store: Driver, store_address: str) -> None:
    await plant_person(store, PERSON, WORD, 1)
    planted = {place.partition(".")[0] for place in places(store_address, WANTED)}
    async with store.reading() as tx:
        tables = (await read_tables(tx)).all
    of_users = {each.name for each in tables if each.thread is None and "user_id" in each.by_name}
    derived = {"item_terms", "item_vectors", "recall_volumes", "recall_volume_postings"}
    assert of_users - derived <= planted
    of_access = {each.name for each in tables if each.name.startswith("access_")}
    assert of_access - {"access_groups", "access_secrets"} <= planted
    assert places(store_address, WANTED) >= _REPLACED


async def test_of_a_person_who_is_erased_there_is_nothing(store: Driver, store_address: str) -> None:
    await plant_person(store, "other", "nachtigall", 2)
    async with store.writing() as tx:
        await create_user(tx, "admin", role="admin", user_id="admin")
        pseudonym = await audit.make_pseudonym(tx, PERSON)
    before = await rows_of(store)
    await plant_person(store, PERSON, WORD, 1)
    assert in_files(store_address, WANTED)
    with acting(Acting("admin", "session")):
        gone = await forget_user(store, PERSON, anew=True)
    assert gone.problems == []
    assert places(store_address, WANTED) == in_files(store_address, WANTED) == set()
    assert places(store_address, [pseudonym.encode()]) == _REPLACED
    left = {"access_audit", "access_grants", "access_groups", "access_projects", "memory_sources"}
    after = await rows_of(store)
    for name in before.keys() - left - {"workers"}:
        assert after[name] == before[name], name
    for name in left:
        assert [row for row in after[name] if row in before[name]] == before[name], name


async def test_what_was_done_stays_under_a_pseudonym(store: Driver) -> None:
    async with store.writing() as tx:
        await create_user(tx, "admin", role="admin", user_id="admin")
    await plant_person(store, PERSON, WORD, 1)
    with acting(Acting(PERSON, "session", "10.9.8.7")):
        await forget_user(store, PERSON)
    async with store.reading() as tx:
        found = await audit.list_rows(tx, AuditFilter())
    [forgotten] = [each for each in found if each.action == "user.forget"]
    pseudonym = forgotten.actor
    assert pseudonym.startswith("forgotten-")
    assert (forgotten.action, forgotten.actor, forgotten.object) == ("user.forget", pseudonym, pseudonym)
    assert {each.address for each in found if each.actor == pseudonym} == {""}
    assert len(found) == 5


async def test_the_last_administrator_is_not_erased(store: Driver) -> None:
    async with store.writing() as tx:
        await create_user(tx, "admin", role="admin", user_id="admin")
        await tx.run(Sql("INSERT INTO access_groups VALUES ('g', 'g', 'local', '', '')"))
    before = await rows_of(store)
    with pytest.raises(LastAdmin):
        await forget_user(store, "admin")
    assert await rows_of(store) == before


async def test_who_is_being_erased_is_shut_out_first(store: Driver, monkeypatch: Any) -> None:
    """An interruption leaves a user who cannot log in, and the next call does the rest."""
    await plant_person(store, PERSON, WORD, 1)

    async def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("longthread.memory.forget.erase_access", fail)
        with pytest.raises(ZeroDivisionError):
            await forget_user(store, PERSON)
    async with store.reading() as tx:
        assert (await find_user(tx, PERSON)).status == "disabled"
    await forget_user(store, PERSON)
    async with store.reading() as tx:
        with pytest.raises(UserNotFound):
            await find_user(tx, PERSON)
