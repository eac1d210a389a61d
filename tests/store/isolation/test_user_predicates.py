"""Each predicate on `user_id` in the named SQL matters: without it, a statement reads or changes what is another's.

Every statement with such a predicate runs on a store where amy and bob have a row in each table. With amy's values and
bob's id it finds nothing of amy's; without one of its predicates it finds more. The values follow from the columns that
a statement compares with them; `VALUES` has those that do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.store.samples import drafts, sample_of

from longthread.errors import StoreError
from longthread.model.catalog import BUILTIN
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.queries import Sql, queries
from longthread.store.tables import StoreTable, Tables, read_tables
from longthread.store.transfer.threads import read_rows, write_rows

AMY, BOB = "0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f", "0192f0c1-5a0e-7cc3-98c4-dc0c0c07b0b0"
AMYS, BOBS = "canary-of-amy", "thread-of-bob"
TIME, LATER, EARLIER = (f"{year}-01-02T00:00:00+00:00" for year in (2026, 2999, 2020))
_PREDICATE = re.compile(
    r"(?<!SET )(?<![\w.])(?:\w+\.)?(?:user_id = (?:\w+\.user_id|coalesce\(CAST\(:user_id AS TEXT\), t\.user_id\)|:id\b"
    r"|\(SELECT p\.user_id FROM threads p WHERE p\.id = :thread_id\))"
    r"|(?:user_id|id|to_id|actor|on_behalf|object|made_by) = :user_id)"
)
"""A comparison of a row's user."""
_COMPARED = re.compile(r"(?:\w+\.)?\b(\w+)(?: AS TEXT\))? (?:=|>=|<=|<|>) (?:CAST\()?:(\w+)")
_NAMED = re.compile(r"(?<![:\w]):([a-z]\w*)")
_OPTIONAL = re.compile(r"CAST\(:(\w+) AS \w+\) IS NULL")
_TABLE = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)

ALWAYS: Mapping[str, Any] = {
    "after": "",
    "alive_at": EARLIER,
    "archived": 1,
    "before": LATER,
    "before_id": "~",
    "below": 1,
    "buckets": "[1]",
    "dims": 1536,
    "first": "",
    "last": "~",
    "limit": 1000,
    "most": 1000,
    "noted": "%",
    "now": EARLIER,
    "part": "canary",
    "pattern": "%",
    "prefix": "",
    "since": EARLIER,
    "tag": "",
    "threads": json.dumps([AMYS]),
    "until": LATER,
}
"""Values by their names, with which a statement finds much."""
_OF_CHECKPOINTS = {"before": "~", "after_id": "~", "after_ns": "~", "after_thread": "~"}
_EXPIRED = {"now": LATER}
VALUES: Mapping[str, Mapping[str, Any]] = {
    "archive_thread": {"archived_at": LATER},
    "copy_thread": {"target": "copy"},
    "count_expired_memories": _EXPIRED,
    "delete_expired_item": _EXPIRED,
    "delete_expired_memories": _EXPIRED,
    "delete_joint_memories": {"thread_id": AMYS},
    "delete_memories_of_thread": {"thread_id": AMYS},
    "delete_memory_sources_of_thread": {"thread_id": AMYS},
    "delete_memory_that_says": _EXPIRED,
    "delete_old_idempotency_keys": {"since": LATER},
    "delete_sessions_of_user": {"kept": ""},
    "extend_expiry": {"id": f"{AMYS}-stray", "expires_at": LATER},
    "forget_audit_object": {"pseudonym": "gone"},
    "hold_known_place": {"head": f"2 1 checkpoint of {AMYS}"},
    "index_item": {"form": 7},
    "put_memory_said": {"said": f"memories said {BOBS}"},
    "refresh_item": {"expires_at": LATER},
    "rehome_memories": {"thread_id": AMYS},
    "select_answers": {"thread_id": AMYS, "run_id": "asking"},
    "select_cards": {"id": None},
    "select_checkpoints_of_ns": _OF_CHECKPOINTS,
    "select_checkpoints_of_thread": _OF_CHECKPOINTS,
    "select_checkpoints_of_user": _OF_CHECKPOINTS,
    "select_checkpoints_with_metadata": _OF_CHECKPOINTS,
    "select_children": {"id": AMYS},
    "select_expired_items": _EXPIRED,
    "select_expired_threads": _EXPIRED,
    "select_item_terms": {"terms": "[1]"},
    "select_items": {"after_namespace": "", "after_key": "", "updated_at": LATER},
    "select_items_at": {"places": '[["namespace", "key"]]'},
    "select_known_replies": {"nodes": "[1]"},
    "select_loose_threads": {"also": AMYS},
    "select_memories_without_vector": {"model": "another"},
    "select_place": {"id": AMYS},
    "select_signatures": {"first": 0},
    "select_signatures_of_user": {"first": 0},
    "select_sources_of_memories": {"ids": json.dumps([AMY])},
    "select_spending": {"by": "user", "since": "", "until": "~"},
    "select_stale_items": {"form": 7},
    "select_thread_above": {"id": f"{AMYS}-stray"},
    "select_threads_below": {"id": AMYS},
    "select_usual_checkpoints": _OF_CHECKPOINTS,
    "select_volume_members": {"volumes": json.dumps([AMY])},
    "update_expiry": {"expires_at": LATER},
    "update_metadata": {"metadata": '{"new": 1}'},
    "update_own_title": {"title": "new"},
    "update_session_status": {"id": AMYS, "status": "completed"},
    "update_tags": {"tags": '["new"]'},
    "update_title": {"title": "new"},
    "update_user": {"name": "new"},
}
"""Values of single statements."""
_MEMBERS = ("access_members", "access_project_members")
"""Of amy's group and amy's project: bob is in neither."""
EQUIVALENT: Mapping[tuple[str, str], str] = {
    ("select_loose_threads", "user_id = :user_id"): "a trigger keeps it equal to the thread's, which is compared, too",
}
"""Predicates that may be left out, with their statements, and why."""


@dataclass(frozen=True)
class Filled:
    """A store with amy's and bob's rows, and amy's rows by table."""

    store: Driver
    tables: Tables
    rows: Mapping[str, Mapping[str, Any]]

    def values(self, name: str, sql: str) -> dict[str, Any]:
        """Return the values of a statement with which it finds what is amy's."""
        mentioned = [each for each in _TABLE.findall(sql) if each in self.rows]
        columns = {value: column for column, value in _COMPARED.findall(sql)}
        optional = {*_OPTIONAL.findall(sql)} - {"user_id"}
        found: dict[str, Any] = {"user_id": AMY}
        for value in {*_NAMED.findall(sql)} - optional - {"user_id"}:
            column = columns.get(value, value)
            rows = [self.rows[each] for each in mentioned if column in self.rows[each]]
            found[value] = ALWAYS[value] if value in ALWAYS else rows[0][column] if rows else None
        return found | dict.fromkeys(optional) | dict(VALUES.get(name, {}))

    async def result(self, sql: str, values: Mapping[str, Any]) -> Any:
        """Return what a statement finds, or the table that it leaves. It is undone."""
        code = _COMMENT.sub("", sql)
        found: Any = None
        try:
            async with self.store.writing() as tx:
                written = _WRITTEN.search(code)
                if written is None or "RETURNING" in code:
                    found = sorted(repr(dict(row)) for row in await tx.fetch(Sql(sql), **values))
                else:
                    await tx.run(Sql(sql), **values)
                    found = sorted(repr(dict(row)) for row in await tx.fetch(Sql(f"SELECT * FROM {written[1]}")))
                raise _Undone
        except _Undone:
            return found

    async def result_or_error(self, sql: str, values: Mapping[str, Any]) -> Any:
        try:
            return await self.result(sql, values)
        except StoreError as error:
            return type(error)


_WRITTEN = re.compile(r"\b(?:UPDATE|INSERT INTO|DELETE FROM)\s+(\w+)\s+(?:SET|\(|USING|WHERE)")


class _Undone(Exception):
    pass


async def fill_for(tx: Transaction, tables: Tables, thread_id: str, user_id: str) -> None:
    """Make a thread, and a row in each table that has users' or threads' rows."""
    await log.create_thread(tx, thread_id, user_id=user_id, title="title", source="source")
    await log.extend(tx, thread_id, drafts(["text", "more"]))
    for table in tables.all:
        rows = [row async for row in read_rows(tx, table, thread_id)] if table.thread else []
        is_shared = not table.thread and "user_id" not in table.by_name and table.name != "access_users"
        if not rows and not (user_id == BOB and (is_shared or table.name in _MEMBERS)):
            await write_rows(tx, table, [row_of(table, thread_id, user_id)])


def row_of(table: StoreTable, thread_id: str, user_id: str, **about: Any) -> dict[str, Any]:
    row = sample_of(table, thread_id)
    own = {"memory_id", "board_id", "link_id", "user_id", *(["id"] if row.get("id") == AMY else [])}
    return row | dict.fromkeys(own & row.keys(), user_id) | about


async def fill_further(tx: Transaction, tables: Tables, thread_id: str, user_id: str) -> None:
    """Make what single statements look for: threads below a thread, runs that wait, something unique to the user."""
    for end in ("child", "busy", "due"):
        await log.create_thread(tx, f"{thread_id}-{end}", user_id=user_id)
    runs = {"status": "running", "parent_run_id": None, "waiting_since": None}
    child, busy, due = (f"{thread_id}-{end}" for end in ("child", "busy", "due"))
    waits = row_of(tables["runs"], child, user_id, **runs | {"waiting_since": TIME})
    answers = row_of(tables["runs"], child, user_id, id="answering", status="finished", parent_run_id="asking")
    await write_rows(tx, tables["runs"], [waits, answers, row_of(tables["runs"], busy, user_id, **runs)])
    await write_rows(tx, tables["queued_questions"], [row_of(tables["queued_questions"], due, user_id)])
    usual = row_of(tables["checkpoints"], thread_id, user_id, n=2, id=f"checkpoint of {thread_id}", metadata="5")
    await write_rows(tx, tables["checkpoints"], [usual])
    await write_rows(tx, tables["items"], [row_of(tables["items"], thread_id, user_id, namespace=thread_id)])
    said_again = row_of(tables["memory_sources"], thread_id, user_id, session_id=child)
    await write_rows(tx, tables["memory_sources"], [said_again])
    await tx.run(Sql("UPDATE threads SET parent_thread_id = :id WHERE id = :child"), id=thread_id, child=child)


async def cross(tx: Transaction, tables: Tables) -> None:
    """Make what refers to another user's, as another program could have written it."""
    for user_id, thread_id, parent in (
        (AMY, f"{AMYS}-stray", BOBS),
        (BOB, f"{BOBS}-stray", AMYS),
        (BOB, f"{BOBS}-deep", f"{AMYS}-child"),
    ):
        await log.create_thread(tx, thread_id, user_id=user_id)
        await tx.run(Sql("UPDATE threads SET parent_thread_id = :parent WHERE id = :id"), parent=parent, id=thread_id)
    answers = row_of(tables["runs"], f"{BOBS}-stray", BOB, status="finished", parent_run_id="asking")
    await write_rows(tx, tables["runs"], [answers])
    await write_rows(tx, tables["board_cards"], [row_of(tables["board_cards"], AMYS, AMY, id=BOB, asked_in=BOBS)])
    memory = "0192f0c1-5a0e-7cc3-98c4-dc0c0c07b0b1"
    astray = row_of(tables["memories"], BOBS, BOB, id=memory, session_id=AMYS, said="astray")
    await write_rows(tx, tables["memories"], [astray])
    source = row_of(tables["memory_sources"], BOBS, BOB, memory_id=memory, session_id=AMYS)
    await write_rows(tx, tables["memory_sources"], [source])
    await write_rows(tx, tables["access_projects"], [row_of(tables["access_projects"], BOBS, BOB, id=BOB)])
    alone = row_of(tables["access_project_members"], BOBS, BOB, project_id=BOB)
    await write_rows(tx, tables["access_project_members"], [alone])
    for change in (
        "UPDATE pending_deletions SET root = thread_id",
        "UPDATE threads SET tags = '[\"word\"]'",
        f"UPDATE threads SET expires_at = '{TIME}' WHERE id IN ('{AMYS}', '{BOBS}')",
        "UPDATE thread_clients SET owner = NULL",
        "UPDATE access_keys SET revoked_at = NULL",
        f"UPDATE access_grants SET to_kind = 'group', to_id = '{AMY}'",
        "INSERT INTO access_grants (kind, item, to_kind, to_id, may, granted_by, granted_at) "
        "SELECT kind, item, 'user', to_id, 'edit', granted_by, granted_at FROM access_grants",
        f"UPDATE access_audit SET actor = '{AMY}'",
        "INSERT INTO access_audit (id, at, actor, on_behalf, via, action, object) "
        f"SELECT 'for', at, via, '{AMY}', via, action, object FROM access_audit WHERE id = '{AMY}'",
        "INSERT INTO access_audit (id, at, actor, on_behalf, via, action, object) "
        f"SELECT 'to', at, via, via, via, action, '{AMY}' FROM access_audit WHERE id = '{AMY}'",
        f"UPDATE catalog_versions SET made_by = '{AMY}'",
        f"UPDATE background_jobs SET subject = '{AMY}' WHERE subject LIKE '%{AMYS}'",
        "UPDATE memory_sources SET content = ''",
        "UPDATE recall_signatures SET stamp = '2:' || thread_id",
    ):
        await tx.run(Sql(change))


@pytest.fixture
async def filled(store: Driver) -> Filled:
    async with store.writing() as tx:
        tables = await read_tables(tx, whole=True)
        for thread_id, user_id in ((AMYS, AMY), (BOBS, BOB)):
            await fill_for(tx, tables, thread_id, user_id)
            await fill_further(tx, tables, thread_id, user_id)
        await cross(tx, tables)
    rows: dict[str, Mapping[str, Any]] = {}
    builtin = {each for _, each in BUILTIN}
    async with store.reading() as tx:
        for table in tables.all:
            found = [row async for row in read_rows(tx, table, AMYS)]
            own = [row for row in found if row.get("user_id", AMY) == AMY and row.get("id") not in builtin]
            rows |= {table.name: own[0]} if own else {}
        [thread] = await tx.fetch("select_thread", id=AMYS, user_id=AMY)
    return Filled(store, tables, rows | {"threads": thread})


_HERS = re.compile(rf" {AMYS}|'(?:thread_)?id': '{AMYS}")
"""In rows of amy's."""


async def test_each_predicate_on_the_user_matters(filled: Filled) -> None:
    unneeded, found_hers, compared = set[tuple[str, str]](), [], 0
    for name, sql in queries(filled.store.dialect).items():
        for place in _PREDICATE.finditer(sql):
            amys = filled.values(name, sql)
            bobs = amys | {"user_id": BOB} | ({"id": BOB} if "user_id = :id" in sql else {})
            mutant = f"{sql[: place.start()]}({place[0]} OR 1 = 1){sql[place.end() :]}"
            right = [await filled.result(sql, values) for values in (amys, bobs)]
            if right == [await filled.result_or_error(mutant, values) for values in (amys, bobs)]:
                unneeded.add((name, place[0]))
            if ":user_id" in sql and _WRITTEN.search(sql) is None and _HERS.search(str(right[1])):
                found_hers.append(name)
            compared += 1
    assert unneeded == EQUIVALENT.keys(), "give values in VALUES with which the predicate matters"
    assert found_hers == []
    assert compared > 140
