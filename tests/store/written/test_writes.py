"""The documents' names are written by SQL, on a plain connection, and the product goes on with what was written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest
from tests.store.conftest import Plain
from tests.store.talk import talk

from longthread.errors import ThreadNotFound
from longthread.model.entry import Draft, ToolCall
from longthread.model.thread import Scope, title_of
from longthread.store import attributes, listing, log, states, summaries
from longthread.store.driver import Driver

pytestmark = pytest.mark.sampled(2)

REFUSED = (sqlite3.IntegrityError, psycopg.errors.Error)


def value(found: Any) -> Any:
    """A JSON value, of either backend."""
    return json.loads(found) if isinstance(found, str) and found[:1] in ("[", "{") else found


def one(plain: Plain, sql: str, *values: Any) -> Any:
    [[found]] = plain(sql, values)
    return value(found)


async def branch_of(store: Driver, thread_id: str) -> Sequence[Any]:
    async with store.reading() as tx:
        row = await log.find_row(tx, thread_id, user_id=await log.owner(tx, thread_id))
        return await log.branch(tx, thread_id, row["tip"], limit=100)


ASKED = {
    "question": "有多少？",
    "messages": [{"role": "user", "content": "有多少？"}, {"role": "assistant", "content": "54"}],
}
WRITTEN: list[tuple[str, str, Sequence[Any], str, Any]] = [
    ("sessions", "INSERT INTO sessions (id, user_id, title) VALUES ('n', 'ann', '火箭')", (),
     "SELECT title FROM sessions WHERE id = 'n' AND user_id = 'ann' AND status = 'active'", "火箭"),
    ("sessions", "UPDATE sessions SET status = 'completed' WHERE id = 't'", (),
     "SELECT status FROM sessions WHERE id = 't' AND ended_at IS NOT NULL", "completed"),
    ("sessions", "UPDATE sessions SET status = 'paused' WHERE id = 't'", (),
     "SELECT status FROM sessions WHERE id = 't' AND ended_at IS NULL", "paused"),
    ("sessions", "UPDATE sessions SET title = 'New', metadata = '{\"a\": [1]}' WHERE id = 't'", (),
     "SELECT metadata FROM sessions WHERE id = 't' AND title = 'New'", {"a": [1]}),
    ("messages", "INSERT INTO messages (session_id, role, content) VALUES ('t', 'user', '继续吗？')", (),
     "SELECT content FROM messages WHERE session_id = 't' AND parent_id = 'written' AND role = 'user'", "继续吗？"),
    ("messages", "UPDATE messages SET metadata = '{\"stars\": 5}' WHERE session_id = 't' AND id = 'written'", (),
     "SELECT metadata FROM messages WHERE session_id = 't' AND id = 'written'", {"stars": 5}),
    ("conversations", "INSERT INTO conversations (thread_id) VALUES ('n')", (),
     "SELECT state_data FROM conversations WHERE thread_id = 'n' AND user_id = 'default'", {"messages": []}),
    ("conversations", "INSERT INTO conversations (thread_id, title, state_data) VALUES ('n', 'x', ?)",
     (json.dumps(ASKED),), "SELECT state_data FROM conversations WHERE thread_id = 'n'", ASKED),
    ("conversations", "UPDATE conversations SET title = 'x', tags = '[\"甲\"]' WHERE thread_id = 't'", (),
     "SELECT tags FROM conversations WHERE thread_id = 't' AND title = 'x'", ["甲"]),
    ("thread_activity", "INSERT INTO thread_activity (thread_id, label) VALUES ('n', '会话 1')", (),
     "SELECT label FROM thread_activity WHERE thread_id = 'n' AND last_active_at IS NOT NULL", "会话 1"),
    ("thread_activity", "UPDATE thread_activity SET label = 'L', last_active_at = '2026-05-01T10:00:00+08:00'"
     " WHERE thread_id = 't'", (), "SELECT label FROM thread_activity WHERE thread_id = 't'", "L"),
    ("conversation_state", "INSERT INTO conversation_state (scid, client_type, authoritative_history, created_at,"
     " updated_at) VALUES ('n', 'cursor', '[]', '2026-01-17', '2026-01-17')", (),
     "SELECT client_type FROM conversation_state WHERE scid = 'n'", "cursor"),
    ("conversation_state", "UPDATE conversation_state SET expires_at = '2036-01-17T00:00:00', last_signature = 's',"
     " access_count = 7 WHERE scid = 't'", (),
     "SELECT access_count FROM conversation_state WHERE last_signature = 's' AND expires_at IS NOT NULL", 7),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "sql", "values", "question", "told"), WRITTEN)
async def test_what_is_written_is_read_back(
    store: Driver, plain: Plain, relation: str, sql: str, values: Sequence[Any], question: str, told: Any
) -> None:
    await talk(store, "t", user_id="default")
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft("written", "assistant", "Yes.")])
    assert not plain(sql, values)
    found = one(plain, question)
    assert {key: found[key] for key in told} == told if isinstance(told, dict) else found == told
    assert plain(f"SELECT 1 FROM {relation}")
    async with store.reading() as tx:
        threads = await listing.list_threads(tx, user_id="default")  # each row can be decoded
        assert "t" in {each.id for each in threads}


REFUSALS = [
    ("INSERT INTO sessions (id) VALUES ('n')", "user_id"),
    ("INSERT INTO sessions (id, user_id) VALUES ('t', 'u')", "unique|UNIQUE|duplicate"),
    ("INSERT INTO sessions (user_id, status) VALUES ('u', 'done')", "active, paused, completed or failed"),
    ("INSERT INTO sessions (user_id, metadata) VALUES ('u', '[]')", "JSON object"),
    ("INSERT INTO sessions (user_id, agent_id) VALUES ('u', '00000000-0000-4000-8000-000000000000')", "names no agent"),
    ("UPDATE sessions SET status = 'done' WHERE id = 't'", "active, paused, completed or failed"),
    ("UPDATE sessions SET user_id = 'other' WHERE id = 't'", "do not change"),
    ("INSERT INTO messages (session_id, role, content) VALUES ('none', 'user', 'x')", "INSERT it first"),
    ("INSERT INTO messages (session_id, role, content) VALUES ('t', 'bot', 'x')", "system, user, assistant or tool"),
    ("INSERT INTO messages (session_id, role) VALUES ('t', 'user')", "content"),
    ("INSERT INTO messages (session_id, role, content, parent_id) VALUES ('t', 'user', 'x', 'no')", "names no message"),
    ("INSERT INTO messages (session_id, id, role, content) VALUES ('t', 'written', 'user', 'x')", "do not change"),
    ("INSERT INTO messages (session_id, role, content, tool_calls) VALUES ('t', 'assistant', '',"
     " '[{\"id\": \"c\", \"function\": {\"name\": \"f\", \"arguments\": \"[\"}}]')", "no JSON object"),
    ("INSERT INTO messages (session_id, role, content, tool_calls) VALUES ('t', 'assistant', '', '[{\"id\": \"c\"}]')",
     "tool_calls"),
    ("INSERT INTO messages (session_id, role, content, tool_call_id) VALUES ('t', 'user', 'x', 'c')", "tool's message"),
    ("UPDATE messages SET content = 'other' WHERE session_id = 't'", "does not change"),
    ("DELETE FROM messages WHERE session_id = 't'", "DELETE the session"),
    ("UPDATE conversations SET state_data = '{}' WHERE thread_id = 't'", "computed"),
    ("UPDATE conversations SET tags = '[1]' WHERE thread_id = 't'", "texts"),
    ("INSERT INTO conversations (thread_id) VALUES ('t')", "UNIQUE|duplicate"),
    ("INSERT INTO conversations (thread_id, state_data) VALUES ('n', '{\"steps\": [{\"action\": \"list_tables\"}]}')",
     "longthread import"),
    ("INSERT INTO conversation_steps (thread_id, step_index, step_data) VALUES ('t', 9, '{\"action\": \"f\"}')",
     "number of steps"),
    ("UPDATE conversation_steps SET step_data = '{}' WHERE thread_id = 't'", "does not change"),
    ("DELETE FROM conversation_steps WHERE thread_id = 't'", "DELETE the conversation"),
    ("INSERT INTO thread_activity (thread_id) VALUES ('t')", "UNIQUE|duplicate"),
    ("INSERT INTO conversation_state (scid, client_type, authoritative_history) VALUES ('n', 'vim', '[]')", "cursor"),
    ("INSERT INTO conversation_state (scid, client_type, authoritative_history) VALUES ('n', 'cursor', '{}')", "list"),
    ("UPDATE conversation_state SET authoritative_history = '[{\"role\": \"bot\"}]' WHERE scid = 't'", "role"),
    ("INSERT INTO conversation_state (scid, client_type, authoritative_history) VALUES ('anns', 'cursor', '[]')",
     "another user"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "reason"), REFUSALS)
async def test_what_cannot_be_written_is_refused_with_the_reason(
    store: Driver, plain: Plain, sql: str, reason: str
) -> None:
    await talk(store, "t", user_id="default")
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft("written", "assistant", "Yes.")])
        await log.create_thread(tx, "anns", user_id="ann")
    before = plain("SELECT id, tip, entry_count, title, status, updated_at, tags FROM threads ORDER BY id")
    with pytest.raises(REFUSED, match=reason):
        plain(sql)
    assert plain("SELECT id, tip, entry_count, title, status, updated_at, tags FROM threads ORDER BY id") == before


async def test_messages_are_entries_with_calls_and_branches(store: Driver, plain: Plain) -> None:
    plain("INSERT INTO sessions (id, user_id) VALUES ('s', 'u')")
    call = [{"id": "c1", "type": "function", "function": {"name": "run_sql", "arguments": '{"sql": "SELECT \'是\'"}'}}]
    for id_, role, content, calls, of, parent in (
        ("q", "user", "多少枚火箭？", None, None, None),
        ("a", "assistant", "", json.dumps(call), None, None),
        ("r", "tool", '{"ok": true}', None, "c1", None),
        ("b", "assistant", "54", None, None, None),
        ("q2", "user", "How many?", None, None, "b"),
        ("other", "assistant", "55", None, None, "r"),
    ):
        plain(
            "INSERT INTO messages (id, session_id, role, content, tool_calls, tool_call_id, parent_id, tokens_used)"
            " VALUES (?, 's', ?, ?, ?, ?, ?, 7)",
            (id_, role, content, calls, of, parent),
        )
    entries = await branch_of(store, "s")
    assert [entry.id for entry in entries] == ["q", "a", "r", "other"]
    assert entries[1].tool_calls == (ToolCall("c1", "run_sql", {"sql": "SELECT '是'"}),)
    assert {entry.tokens for entry in entries} == {7}
    assert value(one(plain, "SELECT tool_calls FROM messages WHERE id = 'a'"))[0]["function"]["name"] == "run_sql"
    assert one(plain, "SELECT title FROM sessions WHERE id = 's'") == "多少枚火箭？"
    async with store.writing() as tx:  # the product goes on
        await log.extend(tx, "s", [Draft("next", "user", "Go on")])
    assert one(plain, "SELECT parent_id FROM messages WHERE id = 'next'") == "other"


async def test_steps_are_calls_with_results_and_the_answer(store: Driver, plain: Plain) -> None:
    plain("INSERT INTO conversations (thread_id, title) VALUES ('c', '运载火箭有哪些？')")
    plain("INSERT INTO messages (session_id, role, content) VALUES ('c', 'user', '运载火箭有哪些？')")
    listed = {
        "step_index": 0, "step_type": "action", "thought": "需要列出所有表", "action": "list_tables", "args": {},
        "observation": {"ok": True, "data": {"tables": ["rockets"]}}, "content": "{}",
        "timestamp": "2024-01-01T10:00:00",
    }  # fmt: skip
    ended = {
        "step_index": 1, "step_type": "finish", "thought": "", "action": "finish", "args": {}, "observation": None,
        "content": "长征二号丁", "timestamp": "2024-01-01T10:01:00",
    }  # fmt: skip
    for number, step in enumerate((listed, ended)):
        plain(
            "INSERT INTO conversation_steps (thread_id, step_index, step_data) VALUES ('c', ?, ?)",
            (number, json.dumps(step)),
        )
    rows = plain("SELECT step_index, step_data FROM conversation_steps WHERE thread_id = 'c' ORDER BY step_index")
    assert [(number, value(step)) for number, step in rows] == [(0, listed), (1, ended)]
    state = one(plain, "SELECT state_data FROM conversations WHERE thread_id = 'c'")
    assert (state["known_tables"], state["done"], state["answer"]["data"]) == (["rockets"], True, "长征二号丁")
    assert [message["content"] for message in state["messages"]] == ["运载火箭有哪些？", "长征二号丁"]
    assert [entry.role for entry in await branch_of(store, "c")] == ["user", "assistant", "tool", "assistant"]


HISTORY = [
    {"role": "user", "content": "开始新对话"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "想", "signature": "s"},
                                      {"type": "tool_use", "id": "u1", "name": "ls", "input": {"path": "/"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u1", "content": "bin etc"},
                                 {"type": "text", "text": "请继续"}]},
    {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "cat", "arguments": "{\"file\":  \"a\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "text"},
    {"role": "assistant", "content": "你好!", "extra": 1.0},
]  # fmt: skip


async def test_a_history_is_stored_appended_to_and_changed(store: Driver, plain: Plain) -> None:
    def write(history: list[Any], escapes: bool = True) -> None:
        plain("UPDATE conversation_state SET authoritative_history = ? WHERE scid = 'c'",
              (json.dumps(history, ensure_ascii=escapes),))  # fmt: skip

    def there() -> Any:
        return one(plain, "SELECT authoritative_history FROM conversation_state WHERE scid = 'c'")

    plain("INSERT INTO conversation_state (scid, client_type, authoritative_history) VALUES ('c', 'claude_code', ?)",
          (json.dumps(HISTORY[:1]),))  # fmt: skip
    for count in range(1, len(HISTORY) + 1):
        write(HISTORY[:count], escapes=bool(count % 2))
        assert there() == HISTORY[:count]
    assert one(plain, "SELECT entry_count FROM threads WHERE id = 'c'") == 7  # nothing was written twice
    entries = await branch_of(store, "c")
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "user", "assistant", "tool", "assistant"]
    assert [call.name for entry in entries for call in entry.tool_calls] == ["ls", "cat"]
    assert (entries[2].text, entries[2].tool_call_id, entries[3].text) == ("bin etc", "u1", "请继续")
    other = [*HISTORY[:3], {"role": "assistant", "content": "No."}]
    write(other)
    assert there() == other
    assert one(plain, "SELECT count(*) FROM messages WHERE session_id = 'c'") == 8  # the other branch stays
    write([])
    assert there() == []
    async with store.writing() as tx:
        state = await states.read_state(tx, "c", user_id="default")
        assert state is not None
        assert (state["client_type"], state["authoritative_history"]) == ("claude_code", [])
        await states.update_state(tx, "c", HISTORY, user_id="default", signature="new")
    assert there() == HISTORY
    plain("INSERT INTO conversation_state (scid, client_type, authoritative_history) VALUES ('c', 'cursor', '[]')")
    assert there() == []  # storing again replaces, as the document says


@pytest.mark.parametrize("relation", ["conversations", "sessions", "conversation_state", "thread_activity"])
@pytest.mark.parametrize("keys", [True, False])
async def test_a_deleted_conversation_leaves_no_trace(
    store: Driver, plain: Plain, store_address: str, relation: str, keys: bool
) -> None:
    await talk(store, "t", user_id="default")
    async with store.writing() as tx:
        await log.create_thread(tx, "below", user_id="default", parent="t")
        await log.extend(tx, "below", [Draft("x", "user", "below")])
        await attributes.set_message_metadata(tx, "t", "again", {"a": 1}, user_id="default")
    plain("INSERT INTO memory_vectors (id, thread_id, chunk, topics) VALUES ('v', 't', 'about rockets', ?)",
          ('["rockets"]' if store.dialect == "sqlite" else ["rockets"],))  # fmt: skip
    plain("INSERT INTO conversation_summaries (thread_id, summary) VALUES ('t', 'told')")
    plain("INSERT INTO thread_clients (thread_id) VALUES ('t')")
    key = {"sessions": "id", "conversation_state": "scid"}.get(relation, "thread_id")
    if store.dialect == "sqlite":
        with closing(sqlite3.connect(store_address, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA foreign_keys = {int(keys)}")
            connection.execute(f"DELETE FROM {relation} WHERE {key} = 't'")
        names = [name for (name,) in plain("SELECT name FROM sqlite_master WHERE type = 'table'")]
    else:
        plain(f"DELETE FROM {relation} WHERE {key} = 't'")
        names = [name for (name,) in plain("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    shared = {"longthread_migrations", "agents", "skills"}
    left = {name for name in names if name not in shared and not name.startswith("sqlite_")
            and plain(f'SELECT 1 FROM "{name}" LIMIT 1')}  # fmt: skip
    assert left == set()
    async with store.reading() as tx:
        with pytest.raises(ThreadNotFound):
            await log.find_thread(tx, "t", user_id="default")


def test_every_row_goes_with_its_parent_without_foreign_keys(sqlite_template: str) -> None:
    with closing(sqlite3.connect(sqlite_template)) as connection:
        triggers = {}
        for table, sql in connection.execute("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"):
            triggers[table] = triggers.get(table, "") + (sql if " AFTER DELETE ON " in sql else "")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        keys: dict[tuple[str, int, str], list[str]] = {}
        for name in names:
            for number, _, parent, column, of, _, on_delete, _ in connection.execute(
                f"PRAGMA foreign_key_list('{name}')"
            ).fetchall():
                if on_delete == "CASCADE":
                    keys.setdefault((name, number, parent), []).append(f"{column} = OLD.{of}")
        assert {parent for _, _, parent in keys} == {
            "threads",
            "runs",
            "memories",
            "agents",
            "items",
            "boards",
            "board_links",
            "access_users",
            "access_groups",
            "access_projects",
        }
        for (name, _, parent), columns in keys.items():
            assert f"DELETE FROM {name} WHERE {' AND '.join(columns)};" in triggers[parent], (name, parent)


MEMORY = "00000000-0000-4000-8000-00000000000"
GROWN = [
    f"INSERT INTO agents (id, name, system_prompt) VALUES ('{MEMORY}1', 'A', 'p')",
    f"INSERT INTO memories (id, agent_id, session_id, content) VALUES ('{MEMORY}2', '{MEMORY}1', 't', '喜欢斑马')",
    f"INSERT INTO memory_sources (memory_id, session_id, seqs, content, said_at)"
    f" VALUES ('{MEMORY}2', 't', '[1]', '喜欢斑马', '2026-01-01T00:00:00.000000+00:00')",
    "INSERT INTO runs (thread_id, id, status, question, model, protocol, max_steps, first_step, started_at)"
    " VALUES ('t', 'r', 'finished', 'q', 'm', 'json', 1, 0, '2026-01-01T00:00:00+00:00')",
    f"INSERT INTO memory_uses (session_id, run_id, memory_id, how, place, shown)"
    f" VALUES ('t', 'r', '{MEMORY}2', 'given', 0, '喜欢斑马')",
    "INSERT INTO items (user_id, namespace, key, value, created_at, updated_at, fields, form, words, embedded)"
    " VALUES ('u', 'n', 'k', '{}', '', '', '[]', 1, 1, '')",
    "INSERT INTO item_terms (user_id, term, namespace, key, count) VALUES ('u', 1, 'n', 'k', 1)",
]


@pytest.mark.parametrize(
    ("sql", "emptied"),
    [
        ("DELETE FROM memories", {"memories", "memory_sources", "memory_uses"}),
        (f"DELETE FROM agents WHERE id = '{MEMORY}1'", {"memories", "memory_sources", "memory_uses"}),
        ("DELETE FROM runs", {"memory_uses", "runs"}),
        ("DELETE FROM items", {"items", "item_terms"}),
    ],
)
@pytest.mark.parametrize("keys", [True, False])
async def test_a_deletion_leaves_no_trace_without_foreign_keys(
    store: Driver, plain: Plain, keys: bool, sql: str, emptied: set[str]
) -> None:
    await talk(store, "t", user_id="default")
    for statement in GROWN:
        plain(statement)
    if store.dialect == "sqlite":
        plain(f"PRAGMA foreign_keys = {int(keys)}")
    plain(sql)
    tables = ("memories", "memory_sources", "memory_uses", "runs", "items", "item_terms")
    assert {name for name in tables if not plain(f"SELECT 1 FROM {name}")} == emptied


async def test_a_status_that_was_set_holds_until_something_happens(store: Driver, plain: Plain) -> None:
    await talk(store, "t")
    run = (
        "INSERT INTO runs (thread_id, id, status, question, model, protocol, max_steps, first_step, started_at,"
        " ended_at) VALUES ('t', ?, ?, 'q', 'm', 'json', 1, 0, '2026-01-01T00:00:00+00:00', ?)"
    )
    plain(run, ("1", "finished", "2026-01-01T00:00:01+00:00"))
    assert plain("SELECT status FROM sessions WHERE id = 't'") == [("completed",)]
    plain("UPDATE sessions SET status = 'failed', ended_at = '2026-02-01T00:00:00+00:00' WHERE id = 't'")
    [[status, ended]] = plain("SELECT status, ended_at FROM sessions WHERE id = 't'")
    assert (status, str(ended)[:10]) == ("failed", "2026-02-01")
    plain(run, ("2", "running", None))
    assert plain("SELECT status, ended_at FROM sessions WHERE id = 't'") == [("active", None)]
    plain("UPDATE sessions SET status = 'paused' WHERE id = 't'")
    assert plain("SELECT status FROM sessions WHERE id = 't'") == [("paused",)]
    with pytest.raises(REFUSED, match="run is being executed"):
        plain("INSERT INTO messages (session_id, role, content) VALUES ('t', 'user', 'x')")
    plain("UPDATE runs SET status = 'finished', ended_at = '2026-01-01T00:00:02+00:00' WHERE id = '2'")
    assert plain("SELECT status FROM sessions WHERE id = 't'") == [("completed",)]


async def test_a_chunk_that_no_message_says_becomes_an_entry_with_its_topics(store: Driver, plain: Plain) -> None:
    entries = await talk(store, "t", user_id="u")
    size = one(plain, "SELECT entry_count FROM threads WHERE id = 't'")
    named = '["预算"]' if store.dialect == "sqlite" else ["预算"]
    plain("INSERT INTO memory_vectors (id, thread_id, chunk, topics) VALUES ('v', 't', '预算是700元', ?)", (named,))
    plain("INSERT INTO memory_vectors (id, thread_id, chunk) VALUES ('w', 't', ?)", (entries[0].text,))
    assert one(plain, "SELECT entry_count FROM threads WHERE id = 't'") == size + 1
    assert [entry.id for entry in await branch_of(store, "t")] == [entry.id for entry in entries]
    plain("INSERT INTO memory_topics (thread_id, topic) VALUES ('t', '火箭')")
    async with store.reading() as tx:
        scope = Scope("u", "t")
        assert set(await summaries.list_topic_names(tx, scope)) >= {"预算", "火箭"}
        [span] = (await summaries.find_topic_spans(tx, scope, "预算"))["t"]
        assert (span.first, span.last) == (size + 1, size + 1)
        [span] = (await summaries.find_topic_spans(tx, scope, "火箭"))["t"]
        assert (span.first, span.last) == (1, size + 1)


def test_times_of_any_form_are_stored_as_utc(plain: Plain) -> None:
    for id_, given, told in (
        ("a", "2024-01-01T10:00:00", "2024-01-01T10:00:00.000000+00:00"),
        ("b", "2024-01-01 10:00:00.123456", "2024-01-01T10:00:00.123456+00:00"),
        ("c", "2024-01-01T10:00:00.5+08:00", "2024-01-01T02:00:00.500000+00:00"),
        ("d", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00.000000+00:00"),
        ("e", "2024-01-01", "2024-01-01T00:00:00.000000+00:00"),
        ("f", "2024-01-01T10:00:00.999999-01:30", "2024-01-01T11:30:00.999999+00:00"),
        ("g", "2026-01-17 10:00:00.123+08", "2026-01-17T02:00:00.123000+00:00"),
        ("h", "2026-01-17T10:00:00.123+0800", "2026-01-17T02:00:00.123000+00:00"),
        ("i", "2026-01-17T10:00:00-0530", "2026-01-17T15:30:00.000000+00:00"),
        ("j", "2026-01-17 10:00+08", "2026-01-17T02:00:00.000000+00:00"),
    ):
        plain("INSERT INTO sessions (id, user_id, created_at) VALUES (?, 'u', ?)", (id_, given))
        assert one(plain, "SELECT created_at FROM threads WHERE id = ?", id_) == told


def refuses(plain: Plain, sql: str, values: Sequence[Any]) -> bool:
    try:
        plain(sql, values)
    except REFUSED:
        return True
    return False


TIMED = [
    "INSERT INTO sessions (id, user_id, created_at) VALUES ('n', 'default', ?)",
    "INSERT INTO sessions (id, user_id, started_at) VALUES ('n', 'default', ?)",
    "UPDATE sessions SET ended_at = ? WHERE id = 't'",
    "INSERT INTO messages (session_id, role, content, created_at) VALUES ('t', 'user', 'x', ?)",
    "INSERT INTO conversations (thread_id, created_at) VALUES ('n', ?)",
    "INSERT INTO conversations (thread_id, updated_at) VALUES ('n', ?)",
    "INSERT INTO conversation_steps (thread_id, step_index, step_data, created_at)"
    " VALUES ('t', (SELECT count(*) FROM conversation_steps WHERE thread_id = 't'), '{\"action\": \"f\"}', ?)",
    "INSERT INTO conversation_state (scid, client_type, authoritative_history, created_at)"
    " VALUES ('n', 'cursor', '[]', ?)",
    "UPDATE conversation_state SET expires_at = ? WHERE scid = 't'",
    "INSERT INTO thread_activity (thread_id, last_active_at) VALUES ('n', ?)",
    "UPDATE thread_activity SET last_active_at = ? WHERE thread_id = 't'",
    "INSERT INTO memory_vectors (id, thread_id, chunk, created_at) VALUES ('v', 't', '预算是700元', ?)",
]
NO_TIMES = ("2026-02-30T10:00:00", "2026-13-01", "2026-01-17T25:00:00", "12:00", "2026-01-17T10:00:00+99", "soon")
NO_YEARS = ("12026-01-17 10:00:00+00", "0044-03-15 10:00:00+00 BC", "infinity", "-infinity")


@pytest.mark.parametrize("sql", TIMED)
async def test_a_time_that_would_not_come_back_is_refused(store: Driver, plain: Plain, sql: str) -> None:
    await talk(store, "t", user_id="default")
    for time in (*NO_TIMES, *NO_YEARS):
        assert refuses(plain, sql, (time,)), time
    plain(sql, ("2026-02-28T10:00:00+08",))
    async with store.reading() as tx:
        assert len(await listing.list_threads(tx, user_id="default")) >= 1  # each row can be decoded
    assert await branch_of(store, "t")


TEXTS = [
    "INSERT INTO sessions (id, user_id) VALUES (?, 'default')",
    "INSERT INTO sessions (id, user_id) VALUES ('n', ?)",
    "INSERT INTO sessions (id, user_id, title) VALUES ('n', 'default', ?)",
    "UPDATE sessions SET title = ? WHERE id = 't'",
    "INSERT INTO messages (session_id, role, content) VALUES ('t', 'user', ?)",
    "INSERT INTO messages (session_id, role, content, id) VALUES ('t', 'user', 'x', ?)",
    "INSERT INTO messages (session_id, role, content, tool_call_id) VALUES ('t', 'tool', 'x', ?)",
    "INSERT INTO conversations (thread_id) VALUES (?)",
    "INSERT INTO conversations (thread_id, user_id) VALUES ('n', ?)",
    "INSERT INTO conversations (thread_id, title) VALUES ('n', ?)",
    "UPDATE conversations SET title = ? WHERE thread_id = 't'",
    "INSERT INTO conversation_state (scid, client_type, authoritative_history) VALUES (?, 'cursor', '[]')",
    "INSERT INTO conversation_state (scid, client_type, authoritative_history, last_signature)"
    " VALUES ('n', 'cursor', '[]', ?)",
    "UPDATE conversation_state SET last_signature = ? WHERE scid = 't'",
    "INSERT INTO thread_activity (thread_id) VALUES (?)",
    "INSERT INTO thread_activity (thread_id, label) VALUES ('n', ?)",
    "UPDATE thread_activity SET label = ? WHERE thread_id = 't'",
    "INSERT INTO memory_vectors (id, thread_id, chunk) VALUES ('v', 't', ?)",
]


@pytest.mark.parametrize("sql", TEXTS)
async def test_a_text_is_no_bytes(store: Driver, plain: Plain, sql: str) -> None:
    await talk(store, "t", user_id="default")
    # PostgreSQL writes bytes into a text as a text, `\xfffe`.
    for value in ("火\x00箭", *((b"\xff\xfe", "火箭".encode()) if store.dialect == "sqlite" else ())):
        if store.dialect == "sqlite":
            assert refuses(plain, sql, (value,)), value
        else:
            with pytest.raises(psycopg.DataError):
                plain(sql, (value,))
    plain(sql, ("火箭",))
    async with store.reading() as tx:
        assert "t" in {each.id for each in await listing.list_threads(tx, user_id="default")}


@pytest.mark.parametrize(
    "text", ["a  b\tc\n\nd", "  x  ", "火箭\u3000\u3000预算\r\n多少", "\u2003a\xa0\x85b\x1fc", "x" * 49 + "  yz"]
)
def test_a_title_is_the_same_however_a_message_is_written(plain: Plain, text: str) -> None:
    plain("INSERT INTO sessions (id, user_id) VALUES ('s', 'u')")
    plain("INSERT INTO messages (session_id, role, content) VALUES ('s', 'user', ?)", (text,))
    assert one(plain, "SELECT title FROM sessions WHERE id = 's'") == title_of(text)


@pytest.mark.parametrize(
    ("chunk", "is_kept"),
    [
        ("5", True),
        ("不", True),
        ("👎", True),
        ("5 orders were shipped", True),
        ("预算是700", True),
        ("15 orders were shipped", False),
        ("我不知道预算是7000元的事情", False),
        ("  15 orders were shipped today.\r\n", False),
        ("Nein", False),
        (" \n", False),
    ],
)
def test_a_chunk_inside_a_word_of_a_message_is_not_said(plain: Plain, chunk: str, is_kept: bool) -> None:
    plain("INSERT INTO sessions (id, user_id) VALUES ('s', 'u')")
    said = ("15 orders were shipped today.", "我不知道预算是7000元的事情，谢谢", "Ja\nNein\nOui")
    for text in said:
        plain("INSERT INTO messages (session_id, role, content) VALUES ('s', 'user', ?)", (text,))
    plain("INSERT INTO memory_vectors (id, thread_id, chunk) VALUES ('v', 's', ?)", (chunk,))
    kept = plain("SELECT text FROM entries WHERE thread_id = 's' AND role = 'system'")
    assert kept == ([(chunk,)] if is_kept else [])
