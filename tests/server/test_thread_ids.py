"""A thread's id may hold any character, on every route."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from longthread.server.fields import segment

pytestmark = pytest.mark.one_backend

ODD = [
    "a/b c",
    "100%?#x",
    "%2F",
    "a%252Fb",
    "..",
    ".",
    "a..b/../c",
    "火箭/一号",
    "#/c/x",
    "back\\slash",
    "é+&=;:@",
    "/",
    "🚀\t'\"<b>",
]
LOOK = {"thought": "Look.", "action": "list_tables"}


def encoded(thread_id: str) -> str:
    """As any client may write it; a dot alone means the folder to clients, unless it is encoded too."""
    return quote(thread_id, safe="").replace(".", "%2E")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("thread_id", ODD)
def test_a_conversation_of_any_id_is_reached_by_every_route(serve: Any, thread_id: str) -> None:
    running = serve([LOOK, {"finish": "Yes."}])
    asked = running.ask("How many?", thread_id=thread_id, max_steps=1)
    at = f"/api/conversations/{encoded(thread_id)}"
    events = running.client.get(f"{at}/runs/{asked['run_id']}/events")
    assert events.status_code == 200
    assert json.loads(events.text.split("data: ")[1].splitlines()[0])["threadId"] == thread_id
    if thread_id not in {".", ".."}:
        assert asked["events"] == f"/api/conversations/{segment(thread_id)}/runs/{asked['run_id']}/events"
        assert running.client.get(asked["events"]).status_code == 200
    history = running.history(thread_id)
    assert history["thread_id"] == thread_id
    step = history["steps"][asked["run_id"]][0]["step"]
    assert running.client.get(f"{at}/steps/{step}").json()["action"] == "list_tables"
    assert running.client.get(f"{at}/steps/{step}/chart").status_code == 404
    assert running.client.get(f"{at}/approvals").json()["pending"] == []
    assert running.client.get("/api/state", params={"thread_id": thread_id}).json()["question"] == "How many?"
    assert running.client.post(f"{at}/resume").status_code == 202
    assert running.client.post(f"{at}/stop").status_code == 200
    message = history["messages"][0]["id"]
    assert running.client.patch(f"{at}/messages/{message}", json={"metadata": {"a": 1}}).status_code == 200
    assert running.client.patch(at, json={"tags": ["x"]}).json()["id"] == thread_id
    assert running.client.delete(at).status_code == 204
    assert running.client.get("/api/chat/history", params={"thread_id": thread_id}).status_code == 404


@pytest.mark.parametrize("thread_id", ["", "x\0y", "x" * 1001])
def test_what_is_no_id_is_refused(serve: Any, thread_id: str) -> None:
    running = serve([{"finish": "Yes."}])
    answer = running.client.post("/api/chat", json={"question": "How many?", "thread_id": thread_id})
    assert answer.status_code == 422, answer.text
