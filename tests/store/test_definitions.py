"""The catalog's rows: on both backends the same, with versions that are only added to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.store.conftest import Plain

from longthread.model.catalog import Body, Definition, Kind, Version
from longthread.model.ids import new_id
from longthread.store import catalog
from longthread.store.driver import Driver

BODIES: dict[Kind, Body] = {
    "agent": {
        "description": None,
        "system_prompt": "Help. 帮助",
        "config": {"temperature": 0.5, "model": "demo", "max_tokens": 10},
        "skills": ["b", "a"],
        "sub_agents": [],
        "is_active": True,
    },
    "skill": {
        "description": "d",
        "trigger_keywords": ["查询", "a,b", '"'],
        "tools": [{"tool_id": "x", "required": True, "default_params": {"z": 1, "a": None}}],
        "config": {},
    },
    "tool": {
        "type": "api",
        "description": "d",
        "schema": {"name": "f", "parameters": {"type": "object", "properties": {"zz": {}, "a": {}}}},
        "implementation": {"endpoint": "https://example.com/?a={{zz}}"},
        "is_active": False,
    },
    "source": {"description": None, "address": "postgresql://u:${PASSWORD}@h/d", "is_active": True},
}


def definition(kind: Kind, **body: object) -> Definition:
    return Definition(kind, new_id(), f"my {kind}", {**BODIES[kind], **body})


async def mine(store: Driver) -> dict[Kind, catalog.StoredDefinition]:
    async with store.reading() as tx:
        every = await catalog.definitions(tx)
    return {each.definition.kind: each for each in every if not each.definition.is_builtin}


async def write(store: Driver, made: Definition) -> None:
    async with store.writing() as tx:
        await catalog.lock(tx)
        await catalog.put(tx, made)
        at = datetime(2026, 5, 1, tzinfo=UTC)
        await catalog.record(tx, Version(made.kind, made.id, made.version, made.name, made.body, at, "ada"))


@pytest.mark.parametrize("kind", BODIES)
async def test_what_is_written_is_read(store: Driver, kind: Kind) -> None:
    made = definition(kind)
    await write(store, made)
    found = (await mine(store))[kind]
    assert found.recorded
    assert (found.definition.id, found.definition.name, found.definition.version) == (made.id, made.name, 1)
    assert (dict(found.definition.body), found.definition.by) == (dict(made.body), "ada")
    assert repr(found.definition.body) == repr(made.body), "keys stay in their order"
    assert found.definition.created_at is not None


@pytest.mark.parametrize("kind", BODIES)
async def test_a_change_by_another_program_is_a_version_of_its_own(store: Driver, plain: Plain, kind: Kind) -> None:
    await write(store, definition(kind))
    plain(f"UPDATE {kind}s SET description = 'by hand'")
    found = (await mine(store))[kind]
    assert not found.recorded
    assert (found.definition.version, found.definition.by) == (2, None)
    assert found.definition.body == {**BODIES[kind], "description": "by hand"}


async def test_rows_that_another_program_made_have_a_first_version(store: Driver, plain: Plain) -> None:
    plain("INSERT INTO agents (name, system_prompt) VALUES ('theirs', 's')")
    plain("INSERT INTO agents (name, system_prompt, config, is_active) VALUES ('bare', 's', '{}', NULL)")
    async with store.reading() as tx:
        found = {each.definition.name: each for each in await catalog.definitions(tx)}
    assert (found["theirs"].definition.version, found["theirs"].recorded) == (1, False)
    assert found["theirs"].definition.body["config"]["model"] == "gpt-4o"
    bare = found["bare"].definition.body
    assert (bare["config"], bare["skills"], bare["is_active"]) == ({}, [], False)


async def test_numbers_say_the_same_however_a_database_writes_them(store: Driver) -> None:
    await write(store, definition("agent", config={"temperature": 1.0, "timeout_seconds": 1e2, "deep": [0.10, True]}))
    assert (await mine(store))["agent"].recorded


async def test_versions_stay_when_a_definition_goes(store: Driver) -> None:
    made = definition("tool")
    await write(store, made)
    at = datetime(2026, 5, 2, tzinfo=UTC)
    async with store.writing() as tx:
        await catalog.delete(tx, "tool", made.id)
        await catalog.record(tx, Version("tool", made.id, 2, made.name, None, at))
    assert await mine(store) == {}
    async with store.reading() as tx:
        first, last = await catalog.versions(tx, "tool", made.id)
        assert await catalog.version(tx, "tool", made.id, 1) == first
        assert await catalog.version(tx, "tool", made.id, 3) is None
        assert await catalog.list_deleted(tx) == [last]
    assert (first.body, first.by, last.body, last.at) == (made.body, "ada", None, at)


async def test_who_changed_what_is_forgotten_with_the_user(store: Driver) -> None:
    made = definition("source")
    await write(store, made)
    async with store.writing() as tx:
        assert await catalog.forget_maker(tx, "nobody") == 0
        assert await catalog.forget_maker(tx, "ada") == 1
    async with store.reading() as tx:
        [version] = await catalog.versions(tx, "source", made.id)
    assert (version.by, version.body) == (None, made.body)
