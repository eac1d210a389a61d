"""The built-in agents and skills have rows in every store, the same ones, that only an upgrade changes."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from tests.store.backends.test_migrations import rows_of_table
from tests.store.conftest import Plain
from tests.store.next_version import become_next

from longthread.model.catalog import ASSISTANT, BUILTIN, DATA, Definition
from longthread.model.memory import ANALYST
from longthread.store import catalog, memories, schema
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer.copy import copy_store

ROWS = {kind: {id_ for of, id_ in BUILTIN if of == kind} for kind in ("agent", "skill")}
LAST_CHANGE = (49, "98e4291a58bbc9eb")
"""The schema version that wrote today's rows, and their digest."""


def expect_rows(address: str) -> None:
    for kind, wanted in ROWS.items():
        assert {str(row["id"]) for row in rows_of_table(address, f"{kind}s")} >= wanted
    builtin = {str(row["id"]) for row in rows_of_table(address, "skills") if row["is_builtin"]}
    assert builtin >= ROWS["skill"]


async def test_a_new_store_has_them_and_they_are_listed_once(store: Driver, store_address: str) -> None:
    expect_rows(store_address)
    async with store.reading() as tx:
        every = [(each.definition.kind, each.definition.id) for each in await catalog.definitions(tx)]
        named = await catalog.some(tx, "agent", ids=[ANALYST], names=["analyst"])
    assert sorted(every) == sorted(BUILTIN)
    assert [(each.definition, each.recorded) for each in named] == [(BUILTIN["agent", ANALYST], True)]


async def test_they_say_what_the_code_says(store: Driver) -> None:
    async with store.reading() as tx:
        rows = [
            catalog._decode_definition(row).definition
            for row in await tx.fetch("select_definitions", kind=None, ids="[]", names="[]")
        ]
    assert {row.id for row in rows} == ROWS["agent"] | ROWS["skill"]
    for row in rows:
        wanted = BUILTIN[row.kind, row.id]
        assert (row.name, row.body, row.created_at, row.updated_at) == (
            wanted.name,
            wanted.body,
            wanted.created_at,
            wanted.updated_at,
        )


def change(address: str, *statements: str) -> None:
    if "://" not in address:
        with closing(sqlite3.connect(address)) as file, file:
            for sql in statements:
                file.execute(sql)
        return
    with psycopg.connect(address, autocommit=True) as server:
        for sql in statements:
            server.execute(sql.encode())


async def upgrade_with(address: str, definition: Definition, patch: pytest.MonkeyPatch) -> None:
    """Open a store with a Longthread of the next schema version, in which another definition is built in."""
    patch.setattr(schema, "BUILTIN", {**BUILTIN, (definition.kind, definition.id): definition})
    become_next(patch)
    async with open_store(address):
        pass


async def test_an_upgraded_store_has_them_and_what_another_program_made_of_them_goes(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = replace(BUILTIN["agent", ASSISTANT], id=str(uuid4()), name="later")
    change(
        store_address,
        f"INSERT INTO agents (id, name, system_prompt) VALUES ('{wanted.id}', 'theirs', 'Rhyme.')",
        "INSERT INTO agents (name, system_prompt) VALUES ('mine', 's')",
    )
    await upgrade_with(store_address, wanted, monkeypatch)
    expect_rows(store_address)
    agents = rows_of_table(store_address, "agents")
    assert {row["name"] for row in agents} == {"analyst", "assistant", "later", "mine"}
    [row] = [row for row in agents if str(row["id"]) == wanted.id]
    assert (row["name"], row["system_prompt"]) == ("later", wanted.body["system_prompt"])
    assert str(row["updated_at"]).startswith("2026-01-01"), "no trigger dates it"


async def test_a_skill_of_another_program_keeps_its_name_in_an_upgrade(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(store_address, "INSERT INTO skills (name, description) VALUES ('later', 'theirs')")
    await upgrade_with(store_address, replace(BUILTIN["skill", DATA], id=str(uuid4()), name="later"), monkeypatch)
    rows = rows_of_table(store_address, "skills")
    assert [row["description"] for row in rows if row["name"] == "later"] == ["theirs"]


async def test_a_newer_schema_writes_them_again(
    store: Driver, store_address: str, plain: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an upgrade runs last, as a Longthread with other definitions has it."""
    newer = replace(BUILTIN["agent", ANALYST], body={**BUILTIN["agent", ANALYST].body, "description": "It's ; new."})
    monkeypatch.setattr(schema, "BUILTIN", {**BUILTIN, ("agent", ANALYST): newer})
    async with store.writing() as tx:
        await memories.make_agent(tx, ANALYST)
        plain_rows = plain("SELECT count(*) FROM agents")
    script = schema._builtins(store.dialect)
    if store.dialect == "sqlite":
        with closing(sqlite3.connect(store_address)) as file:
            file.executescript(script)
    else:
        with psycopg.connect(store_address, autocommit=True) as server:
            server.execute(script.encode())
    assert plain("SELECT count(*) FROM agents") == plain_rows
    [(description, updated_at)] = plain("SELECT description, updated_at FROM agents WHERE name = 'analyst'")
    assert (description, str(updated_at)[:10]) == ("It's ; new.", "2026-01-01")
    plain("UPDATE agents SET description = 'theirs'")
    assert plain("SELECT count(*) FROM agents WHERE description = 'theirs'") == [(0,)], "they are kept again"


def test_who_changes_one_makes_a_schema_version() -> None:
    written = "".join(schema._render_row(each, "sqlite") for each in BUILTIN.values() if each.kind in ROWS)
    digest = hashlib.sha256(written.encode()).hexdigest()[:16]
    assert digest == LAST_CHANGE[1], "increase SCHEMA_VERSION, so that every store gets the new row; then say so here"
    assert LAST_CHANGE[0] <= SCHEMA_VERSION


@pytest.mark.parametrize("kind", ["agent", "skill"])
@pytest.mark.parametrize("statement", ["UPDATE {}s SET description = 'theirs'", "DELETE FROM {}s"])
async def test_a_statement_leaves_them_and_takes_the_others(plain: Plain, kind: str, statement: str) -> None:
    prompt = {"agent": ("system_prompt", "'s'"), "skill": ("tools", "'[]'")}[kind]
    for number in range(3):
        plain(f"INSERT INTO {kind}s (name, {prompt[0]}) VALUES ('own {number}', {prompt[1]})")
    builtin = f"SELECT * FROM {kind}s WHERE name NOT LIKE 'own%' ORDER BY name"
    before = plain(builtin)
    for where in ("", *(f" WHERE id = '{id_}'" for id_ in ROWS[kind])):
        plain(statement.format(kind) + where)
    assert plain(builtin) == before
    assert len(before) == 2
    own = plain(f"SELECT description FROM {kind}s WHERE name LIKE 'own%'")
    assert own == ([] if statement.startswith("DELETE") else [("theirs",)] * 3)


async def test_what_belongs_to_a_built_in_agent_stays_with_it(plain: Plain) -> None:
    plain("INSERT INTO memories (agent_id, content) VALUES (?, 'c')", [ANALYST])
    plain("DELETE FROM agents")
    assert plain("SELECT content FROM memories") == [("c",)]


@pytest.mark.parametrize("backend", ["postgres"])
async def test_postgresql_says_what_to_do_instead(store: Driver, store_address: str) -> None:
    said: list[str | None] = []
    with psycopg.connect(store_address, autocommit=True) as server:
        server.add_notice_handler(lambda notice: said.append(notice.message_primary))
        server.execute("DELETE FROM agents WHERE name = 'analyst'")
    assert said == ["agents: analyst is built in, and stays as it is; make one of your own"]


async def test_a_copy_neither_carries_nor_refuses_them(store: Driver, other_address: str) -> None:
    async with open_store(other_address) as other:
        outcome = await copy_store(store, other, lambda *_: None)
    assert (outcome.rows, outcome.refused) == (0, [])


async def test_a_copy_names_a_skill_whose_name_is_taken_and_takes_the_rest(
    store: Driver, plain: Plain, other_address: str
) -> None:
    """A skill of an upgraded store may have a built-in one's name."""
    for name in ("own", "taken"):
        plain("INSERT INTO skills (name) VALUES (?)", [name])
    change(other_address, "INSERT INTO skills (name) VALUES ('taken')")
    async with open_store(other_address) as other:
        outcome = await copy_store(store, other, lambda *_: None)
    [refused] = outcome.refused
    assert "another one there is called taken; rename one of them" in refused.reason
    assert {row["name"] for row in rows_of_table(other_address, "skills")} == {"data", "memory", "own", "taken"}


async def test_processes_that_open_a_store_at_once_write_them_once(store_address: str) -> None:
    async def open_and_close() -> None:
        async with open_store(store_address):
            return

    await asyncio.gather(*(open_and_close() for _ in range(3)))
    for kind, wanted in ROWS.items():
        assert sorted(str(row["id"]) for row in rows_of_table(store_address, f"{kind}s")) == sorted(wanted)
