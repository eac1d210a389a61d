"""What is remembered, through the API: by whom, from where, pinned, edited and forgotten."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from longthread.memory.user_memories import remember
from longthread.model.memory import ANALYST, MemorySource, Statement
from longthread.store import log, summaries
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.summaries import Span, ThreadSummary

pytestmark = pytest.mark.one_backend

SAYS = [{"finish": "Yes."}]
LATER = "2040-05-08T12:00:00+00:00"


def derive(address: str, thread_id: str) -> str:
    """Give a thread a summary, a topic and a memory, whose id is returned."""

    async def write() -> str:
        async with open_store(address) as store, store.writing() as tx:
            await log.position(tx, thread_id)
            await summaries.save(tx, thread_id, ThreadSummary("About rockets.", 2, "hash", 1, 2, "m"))
            await summaries.add_topics(tx, thread_id, [Span("rockets", 1, 2, 3, LATER)])
            source = MemorySource(thread_id, (1, 99))
            owner = Owner("default", ANALYST)
            return (await remember(tx, owner, Statement("Ann likes rockets.", source=source))).memory.id

    return asyncio.run(write())


def test_a_memory_is_added_listed_found_pinned_edited_and_forgotten(serve: Any) -> None:
    running = serve(SAYS)
    made = running.client.post("/api/memories", json={"content": "  用户要欧元。 ", "type": "procedural"})
    assert made.status_code == 201
    memory = made.json()
    path = f"/api/memories/{memory['id']}"
    assert (memory["content"], memory["pinned"], memory["sources"], memory["thread_id"]) == (
        "用户要欧元。",
        False,
        [],
        None,
    )
    other = running.client.post("/api/memories", json={"content": "The audit is in March.", "expires_at": LATER}).json()
    assert running.client.patch(path, json={"pinned": True}).json()["importance"] == 1.0
    listed = running.client.get("/api/memories").json()
    assert [each["id"] for each in listed["memories"]] == [memory["id"], other["id"]], "the pinned one first"
    assert running.client.get("/api/memories", params={"type": "semantic"}).json()["memories"] == [other]
    assert running.client.get("/api/memories", params={"q": "欧元"}).json()["memories"] == [listed["memories"][0]]
    edited = running.client.patch(path, json={"content": "The user wants dollars.", "pinned": False}).json()
    assert (edited["id"], edited["content"], edited["importance"]) == (memory["id"], "The user wants dollars.", 0.5)
    assert running.client.get(path).json() == edited
    kept = running.client.patch(f"/api/memories/{other['id']}", json={"expires_at": None}).json()
    assert kept == other | {"expires_at": None}
    same = running.client.patch(path, json={"content": "the audit is in March"})
    assert (same.status_code, same.json()["code"]) == (422, "invalid_input")
    assert running.client.delete(path).status_code == 204
    for method in ("GET", "DELETE"):
        gone = running.client.request(method, path)
        assert (gone.status_code, gone.json()["code"]) == (404, "memory_not_found")


def test_a_conversation_tells_its_summary_topics_and_memories_with_their_messages(
    serve: Any, store_address: str
) -> None:
    running = serve(SAYS)
    thread = running.answer("Does Ann like rockets?")["thread_id"]
    empty = running.client.get(f"/api/conversations/{thread}/memory").json()
    nothing: dict[str, Any] = {key: [] for key in ("topics", "memories", "said", "used", "only_here")}
    assert empty == {"thread_id": thread, "summary": None, **nothing}
    memory = derive(store_address, thread)
    question, answer = [each["id"] for each in running.history(thread)["messages"]]
    told = running.client.get(f"/api/conversations/{thread}/memory").json()
    span = {"first": question, "last": answer}
    assert told["summary"] == {"text": "About rockets.", "messages": 2, **span, "model": "m"}
    assert told["topics"] == [{"topic": "rockets", "mentions": 3, "spans": [span]}]
    assert told["said"] == told["only_here"] == [memory]
    [listed] = told["memories"]
    assert listed["sources"] == [{"thread_id": thread, "entries": [question]}], "what was deleted has no id"
    running.answer("What about Ann and rockets?", thread_id=thread)
    assert running.client.get(f"/api/conversations/{thread}/memory").json()["used"] == [memory]
    edited = running.client.patch(f"/api/memories/{memory}", json={"content": "Ann loves rockets."}).json()
    assert (edited["thread_id"], edited["sources"]) == (None, listed["sources"])
    assert running.client.get(f"/api/conversations/{thread}/memory").json()["only_here"] == [], "it is the user's own"
    running.client.delete(f"/api/conversations/{thread}?memories=delete")
    assert [each["content"] for each in running.client.get("/api/memories").json()["memories"]] == [
        "Ann loves rockets."
    ]


def listed(running: Any) -> dict[str, Any]:
    return {each["id"]: each for each in running.client.get("/api/memories").json()["memories"]}


@pytest.mark.parametrize("query", ["", "?undo_seconds=1"])
@pytest.mark.parametrize("choice", ["", "keep", "delete"])
def test_a_memory_outlives_its_conversation_unless_told(
    serve: Any, store_address: str, query: str, choice: str
) -> None:
    running = serve(SAYS)
    thread = running.answer("Does Ann like rockets?")["thread_id"]
    memory = derive(store_address, thread)
    path = f"/api/conversations/{thread}{query or '?'}" + (f"&memories={choice}" if choice else "")
    assert running.client.delete(path).status_code == (202 if query else 204)
    wait_until_gone(store_address, thread)
    there = listed(running)
    assert list(there) == ([] if choice == "delete" else [memory])
    for found in there.values():
        assert (found["thread_id"], found["sources"]) == (None, [])
        assert datetime.fromisoformat(found["source_deleted_at"]) <= datetime.now(UTC)


def wait_until_gone(address: str, thread_id: str) -> None:
    async def rows() -> int:
        async with open_store(address) as store, store.reading() as tx:
            return len(await tx.fetch(Sql("SELECT id FROM threads WHERE id = :id"), id=thread_id))

    while asyncio.run(rows()):
        pass


def test_another_choice_about_memories_is_refused(serve: Any) -> None:
    running = serve(SAYS)
    thread = running.answer("Does Ann like rockets?")["thread_id"]
    refused = running.client.delete(f"/api/conversations/{thread}?memories=some")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert "keep" in refused.json()["detail"] and running.history(thread)


def test_another_users_memories_do_not_exist(serve: Any) -> None:
    ada, grace = serve(SAYS, user="ada"), serve(SAYS, user="grace")
    memory = ada.client.post("/api/memories", json={"content": "Ada's secret."}).json()["id"]
    assert grace.client.get("/api/memories").json()["memories"] == []
    for method, body in (("GET", None), ("PATCH", {"pinned": True}), ("DELETE", None)):
        answer = grace.client.request(method, f"/api/memories/{memory}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "memory_not_found")


WRONG: list[tuple[str, str, Any]] = [
    ("POST", "", {"content": ""}),
    ("POST", "", {"content": " \t"}),
    ("POST", "", {"content": "a\0b"}),
    ("POST", "", {"content": "?!"}),
    ("POST", "", {"content": "x" * 2001}),
    ("POST", "", {"content": ["x"]}),
    ("POST", "", {"content": "x", "importance": 1.1}),
    ("POST", "", {"content": "x", "importance": 10**400}),
    ("POST", "", {"content": "x", "type": "none"}),
    ("POST", "", {"content": "x", "expires_at": (datetime.now(UTC) - timedelta(days=1)).isoformat()}),
    ("POST", "", {"content": "x", "expires_at": 7}),
    ("POST", "", {"content": "x", "more": 1}),
    ("PATCH", "/x", {}),
    ("PATCH", "/x", {"importance": 0.5, "pinned": True}),
    ("PATCH", "/x", {"pinned": 1.5}),
    ("GET", "?limit=0", None),
    ("GET", "?limit=99999999999999999999", None),
    ("GET", "?q=%00", None),
    ("GET", "/%00", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRONG)
def test_what_is_no_memory_is_refused(serve: Any, method: str, path: str, body: Any) -> None:
    answer = serve(SAYS).client.request(method, f"/api/memories{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text


def test_an_unknown_agent_or_id_is_told(serve: Any) -> None:
    running = serve(SAYS)
    answer = running.client.post("/api/memories", json={"content": "x y", "agent": "nobody"})
    assert (answer.status_code, answer.json()["code"]) == (404, "definition_not_found")
    assert running.client.get("/api/memories/%2F..%2F").status_code == 404
