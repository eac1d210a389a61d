"""Conversations that are deleted so that it can be undone, and archived ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longthread.store.maintenance import deletions
from longthread.store.open import open_store
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend

ANSWER = {"finish": "Yes."}


def listed(running: Any, **query: Any) -> list[str]:
    found = running.client.get("/api/conversations", params=query)
    assert found.status_code == 200, found.text
    return [item["label"] for item in found.json()["conversations"]]


def without_times(history: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in history.items() if key != "last_active_at"}


def test_a_deleted_conversation_is_gone_and_restored_with_all_that_it_had(serve: Any) -> None:
    running = serve([ANSWER])
    kept, thread = (running.answer(f"Are there {each}?")["thread_id"] for each in ("rockets", "launches"))
    path = f"/api/conversations/{thread}"
    running.client.patch(path, json={"tags": ["kept"], "metadata": {"n": 1}})
    before, items = running.history(thread), running.client.get("/api/conversations").json()
    answer = running.client.delete(path, params={"undo_seconds": 3600})
    assert answer.status_code == 202
    assert answer.json()["id"] == thread
    assert listed(running) == listed(running, q="there") == ["Are there rockets?"]
    for method, route, body in (
        ("GET", f"/api/chat/history?thread_id={thread}", None),
        ("PATCH", path, {"label": "Mine"}),
        ("POST", "/api/chat", {"question": "And now?", "thread_id": thread}),
        ("DELETE", path, None),
        ("DELETE", f"{path}?undo_seconds=9", None),
        ("POST", f"/api/conversations/{kept}/restore", None),
    ):
        refused = running.client.request(method, route, json=body)
        assert (refused.status_code, refused.json()["code"]) == (404, "thread_not_found"), (method, route)
    restored = running.client.post(f"{path}/restore")
    assert restored.json() == items["conversations"][0]
    assert (running.history(thread), running.client.get("/api/conversations").json()) == (before, items)
    assert running.client.post(f"{path}/restore").status_code == 404
    running.answer("And now?", thread_id=thread)
    assert running.client.delete(path).status_code == 204
    assert running.client.post(f"{path}/restore").status_code == 404


@pytest.mark.parametrize("seconds", ["0", "3601", "x", "1.5", "9" * 30, "\0"])
def test_the_time_to_undo_is_an_hour_at_most(serve: Any, seconds: str) -> None:
    running = serve([ANSWER])
    answer = running.client.delete("/api/conversations/x", params={"undo_seconds": seconds})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


def test_its_run_is_stopped_and_its_queue_waits_until_it_is_restored(serve: Any) -> None:
    running = serve(lambda messages: ANSWER)
    running.model.shut.set()
    asked = running.ask("How many rockets?")
    thread = asked["thread_id"]
    queued = running.client.post(
        "/api/chat", json={"question": "And by country?", "thread_id": thread, "when_busy": "enqueue"}
    ).json()
    path = f"/api/conversations/{thread}"
    assert running.client.delete(path, params={"undo_seconds": 3600}).status_code == 202
    assert running.client.post(f"{path}/restore").status_code == 200
    running.model.shut.clear()
    assert running.client.get(queued["events"]).status_code == 200
    history = running.history(thread)
    assert [(run["status"], run["question"]) for run in history["runs"]] == [
        ("paused", "How many rockets?"),
        ("finished", "And by country?"),
    ]


def test_a_server_deletes_what_another_one_was_to_delete(serve: Any, store_address: str) -> None:
    running = serve([ANSWER])
    thread = running.answer("Are there rockets?")["thread_id"]
    running.stop()

    async def rows(*, begins: bool = False) -> int:
        async with open_store(store_address) as store, store.writing() as tx:
            if begins:
                await deletions.begin(tx, thread, user_id="default", seconds=0)
            return len(await tx.fetch(Sql("SELECT id FROM threads")))

    assert asyncio.run(rows(begins=True)) == 1
    other = serve([ANSWER])
    while asyncio.run(rows()):
        pass
    assert other.client.post(f"/api/conversations/{thread}/restore").status_code == 404


def test_the_time_to_undo_is_measured_and_not_read_from_a_clock_that_is_set_back(
    serve: Any, store_address: str
) -> None:
    running = serve([ANSWER])
    thread = running.answer("Are there rockets?")["thread_id"]
    assert running.client.delete(f"/api/conversations/{thread}", params={"undo_seconds": 1}).status_code == 202

    async def rows(*, later: int = 0) -> int:
        async with open_store(store_address) as store, store.writing() as tx:
            await tx.run(Sql("UPDATE background_jobs SET due_at = due_at + :later"), later=later)
            return len(await tx.fetch(Sql("SELECT id FROM threads")))

    asyncio.run(rows(later=3_000_000))
    while asyncio.run(rows()):
        pass


def test_an_archived_conversation_is_listed_and_found_on_request(serve: Any) -> None:
    running = serve([ANSWER])
    threads = [running.answer(f"Are there {each}?")["thread_id"] for each in ("rockets", "launches")]
    path = f"/api/conversations/{threads[0]}"
    archived = running.client.patch(path, json={"archived": True}).json()
    assert archived["archived_at"] is not None
    assert running.history(threads[0])["archived_at"] == archived["archived_at"]
    both = ["Are there launches?", "Are there rockets?"]
    for query in ({}, {"q": "there"}):
        assert listed(running, **query) == both[:1]
        assert listed(running, **query, archived="include") == both
        assert listed(running, **query, archived="only") == both[1:]
    assert running.client.get("/api/conversations", params={"archived": "yes"}).status_code == 422
    assert running.client.patch(path, json={"archived": None}).status_code == 200, "nothing is said of it"
    assert listed(running) == both[:1]
    assert running.client.patch(path, json={"archived": False}).json()["archived_at"] is None
    assert listed(running) == both


async def test_a_conversation_whose_run_cannot_be_read_is_deleted_and_restored_too(
    serve: Any, store_address: str
) -> None:
    running = serve([ANSWER])
    path = f"/api/conversations/{running.answer('Are there rockets?')['thread_id']}"
    async with open_store(store_address) as store, store.writing() as tx:
        await tx.run(Sql("UPDATE runs SET started_at = 'x'"))
    assert running.client.delete(path, params={"undo_seconds": 3600}).status_code == 202
    assert listed(running) == []
    running.client.post(f"{path}/restore")
    assert listed(running) == ["Are there rockets?"]
