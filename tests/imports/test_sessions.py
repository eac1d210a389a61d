"""The tables of document 002 come along."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from tests.imports.conftest import Fetch, Take
from tests.imports.old import CALLS, SEARCH, UUIDS, agents

from longthread import Catalog
from longthread.errors import NothingToImport
from longthread.store import log
from longthread.store.driver import Driver
from longthread.tools.analysis.address import SourceUrl

pytestmark = [pytest.mark.postgres, pytest.mark.one_backend]


@pytest.fixture
def old(old_url: str) -> str:
    agents(old_url)
    return old_url


async def test_everything_comes_and_is_counted(take: Take, old: str) -> None:
    report = await take(old, user="default")
    assert (report.left, report.there) == ([], report.here)
    wanted = {
        "tools": 3,
        "skills": 1,
        "agents": 2,
        "sessions": 1,
        "messages": 5,
        "memories": 2,
        "vectors of memories": 2,
    }
    assert {name: report.here[name] for name in wanted} == wanted
    assert any("LONGTHREAD_SECRET_API_KEY" in note for note in report.notes)
    again = await take(old, user="default")
    assert (again.left, again.here, again.already["sessions"], again.already["memories"]) == ([], report.here, 1, 2)


async def test_a_session_and_its_messages(take: Take, fetch: Fetch, store: Driver, old: str) -> None:
    await take(old)
    [row] = await fetch("SELECT * FROM threads")
    assert (row["id"], row["agent_id"], row["user_id"]) == (UUIDS["session"], UUIDS["agent"], "ada")
    assert (row["title"], row["status"], json.loads(row["metadata"])) == ("调研", "completed", {"channel": "web"})
    assert (row["created_at"], row["ended_at"]) == (
        "2025-03-01T02:00:00.000000+00:00",
        "2025-03-01T02:00:09.000000+00:00",
    )
    found = await fetch("SELECT id, parent_id, role, content, tool_call_id, tokens_used, latency_ms FROM messages")
    names = {id_: name for name, id_ in UUIDS.items()}
    parents = {names[each["id"]]: each["parent_id"] and names[each["parent_id"]] for each in found}
    assert parents == {"m1": None, "m2": "m1", "m3": "m2", "m4": "m3", "m2b": "m1"}
    assert {(each["tokens_used"], each["latency_ms"]) for each in found} == {(7, 40)}
    async with store.reading() as tx:
        tip, _ = await log.position(tx, UUIDS["session"])
        branch = await log.branch(tx, UUIDS["session"], tip)
    assert [entry.text for entry in branch] == ["Find AI agents", "I know it: 四."]
    [call] = [each for each in found if names[each["id"]] == "m2"]
    [calls] = await fetch("SELECT CAST(tool_calls AS TEXT) AS calls FROM messages WHERE tool_calls IS NOT NULL")
    [given] = json.loads(calls["calls"])
    assert (given["id"], json.loads(given["function"]["arguments"])) == (CALLS[0]["id"], {"query": "AI agents"})
    assert call["content"] == ""


async def test_the_catalog_works_with_what_came(take: Take, store: Driver, old: str) -> None:
    await take(old)
    catalog = Catalog(store)
    agent = await catalog.agent("agent")
    assert (agent.id, agent.sub_agents, agent.config["model"]) == (UUIDS["agent"], (UUIDS["sub"],), "gpt-4o")
    [skill] = [await catalog.skill(id_) for id_ in agent.skills]
    assert (skill.name, skill.trigger_keywords) == ("检索", ("查", "find"))
    tool = await catalog.tool(skill.tools[0].tool_id)
    assert (tool.name, tool.implementation) == ("search_web", SEARCH)


async def test_memories_with_their_vectors(take: Take, fetch: Fetch, old: str) -> None:
    await take(old, user="bob")
    found = {row["content"].split()[0]: row for row in await fetch("SELECT * FROM memories")}
    assert {name: row["user_id"] for name, row in found.items()} == {"memory": "ada", "loose": "bob"}
    kept = found["memory"]
    assert (str(kept["id"]), kept["session_id"], kept["memory_type"]) == (UUIDS["memory"], UUIDS["session"], "semantic")
    assert kept["importance"] == 0.75 and str(kept["expires_at"]).startswith("2040-01-01")
    assert kept["model"] is None and kept["embedding"] is not None


async def test_messages_that_name_no_parent_follow_each_other(take: Take, fetch: Fetch, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("UPDATE messages SET parent_id = NULL WHERE id <> %s", (UUIDS["m2b"],))
    assert (await take(old)).left == []
    names = {id_: name for name, id_ in UUIDS.items()}
    found = {names[row["id"]]: row["parent_id"] for row in await fetch("SELECT id, parent_id FROM messages")}
    assert {name: names.get(id_) for name, id_ in found.items()} == {
        "m1": None, "m2": "m1", "m3": "m2", "m4": "m3", "m2b": "m1"
    }  # fmt: skip


async def test_an_edited_first_message_begins_a_branch(take: Take, fetch: Fetch, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("INSERT INTO messages VALUES (gen_random_uuid(), %s, NULL, 'user', 'edited')", (UUIDS["session"],))
    assert (await take(old)).left == []
    [row] = await fetch("SELECT parent_id FROM messages WHERE content = 'edited'")
    assert row["parent_id"] is None


DAMAGE: list[tuple[str, str]] = [
    ("ALTER TABLE messages DROP CONSTRAINT messages_parent_id_fkey; "
     "UPDATE messages SET parent_id = gen_random_uuid() WHERE role = 'tool'", "messages.parent_id of"),
    (f"UPDATE messages SET parent_id = '{UUIDS['m4']}' WHERE id = '{UUIDS['m1']}'", "in a circle"),
    ("UPDATE messages SET tool_calls = '[3]' WHERE role = 'user'", "messages.tool_calls of message"),
    ("UPDATE tools SET schema = '[]' WHERE type = 'code'", "tools.schema of run_python: it is not an object"),
]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("sql", "why"), DAMAGE)
async def test_what_is_damaged_is_named_and_the_rest_comes(take: Take, old: str, sql: str, why: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute(sql.encode())
    report = await take(old)
    assert len(report.left) == 1 and why in report.left[0]
    assert report.here["messages"] == 5


async def test_names_that_are_taken_here_are_named(take: Take, store: Driver, old: str) -> None:
    given: dict[str, Any] = {"kind": "tool", "name": "run_python", "type": "code"}
    given["implementation"] = {"runtime": "python", "code": "def execute():\n    return 2"}
    given["schema"] = {"name": "run_python", "parameters": {"type": "object", "properties": {}}}
    await Catalog(store).apply([given])
    report = await take(old)
    assert report.left == ["tool run_python: there is another tool of this name here"]
    assert (report.there["tools"], report.here["tools"], report.here["agents"]) == (3, 2, 2)


async def test_a_table_that_may_not_be_read_is_named(take: Take, fetch: Fetch, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("CREATE TABLE secrets (id INT); DROP ROLE IF EXISTS old_reader; CREATE ROLE old_reader LOGIN")
        db.execute("GRANT SELECT ON agents, skills, tools, sessions, messages TO old_reader")
        reader = str(replace(SourceUrl.parse(old), username="old_reader").text())
        try:
            with pytest.raises(NothingToImport, match="this user may not read memories"):
                await take(reader)
            assert await fetch("SELECT id FROM threads") == []
            db.execute("GRANT SELECT ON memories TO old_reader")
            report = await take(reader)
            assert (report.left, report.there) == ([], report.here)
        finally:
            db.execute("DROP OWNED BY old_reader; DROP ROLE old_reader")


async def test_nothing_in_the_old_database_changes(take: Take, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        count = (
            "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del), (SELECT count(*) FROM pg_class) FROM pg_stat_user_tables"
        )
        before = db.execute(count).fetchone()
        await take(old)
        assert db.execute(count).fetchone() == before
