"""Projects over a real socket: what members share, what stays theirs, and what ends when one leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.server.access.team import Team, code_of, team_of
from tests.server.conftest import Serve


@dataclass
class Shared:
    """A project of Amy's, in which Bob works; Eve does not."""

    team: Team
    amy: httpx.Client
    bob: httpx.Client
    eve: httpx.Client
    id: str

    def path(self, rest: str = "") -> str:
        return f"/api/projects/{self.id}{rest}"


@pytest.fixture
def shared(serve: Serve) -> Iterator[Shared]:
    with team_of(serve(["An answer."] * 8, auth="login")) as team:
        amy, bob, eve = (team.join(name) for name in ("Amy", "Bob", "Eve"))
        made = amy.post("/api/projects", json={"name": "Sales", "instructions": "Be brief."})
        assert made.status_code == 201, made.text
        project = Shared(team, amy, bob, eve, made.json()["id"])
        assert amy.put(project.path("/members/bob")).status_code == 204
        time.sleep(0.1)
        yield project


def ask(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/chat", json={"question": "What is new?", "source": "demo", **body})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    client.get(found["events"])
    return found


def labels(client: httpx.Client, **query: str) -> list[str]:
    return [each["id"] for each in client.get("/api/conversations", params=query).json()["conversations"]]


def test_members_see_ask_and_hear_who_asked(shared: Shared) -> None:
    begun = ask(shared.amy, project=shared.id)
    thread = begun["thread_id"]
    assert labels(shared.bob, project=shared.id) == [thread]
    assert labels(shared.bob) == labels(shared.amy) == []
    again = ask(shared.bob, thread_id=thread)
    assert again["thread_id"] == thread
    history = shared.bob.get("/api/chat/history", params={"thread_id": thread}).json()
    assert [each["asked_by"] for each in history["runs"]] == ["Amy", "Bob"]
    assert len(history["messages"]) == 4
    for path in ("usage", "memory", "calls", "export", "queue", "approvals", "shares"):
        assert shared.bob.get(f"/api/conversations/{thread}/{path}").status_code == 200, path
    assert shared.bob.get("/api/state", params={"thread_id": thread}).status_code == 200
    assert shared.bob.patch(f"/api/conversations/{thread}", json={"label": "Ours"}).json()["label"] == "Ours"
    for client in (shared.eve, shared.team.admin):
        assert code_of(client.get("/api/chat/history", params={"thread_id": thread})) == (404, "thread_not_found")
        assert code_of(client.get("/api/conversations", params={"project": shared.id})) == (404, "project_not_found")
        assert code_of(client.get(shared.path())) == (404, "project_not_found")
        refused = client.post("/api/chat", json={"question": "Mine?", "project": shared.id})
        assert code_of(refused) == (404, "project_not_found")
        assert code_of(client.post("/api/chat", json={"question": "Mine?", "thread_id": thread}))[0] == 404


def test_the_same_key_of_two_members_is_two_questions(shared: Shared) -> None:
    thread = ask(shared.amy, project=shared.id)["thread_id"]
    body, key = {"question": "And now?", "thread_id": thread}, {"Idempotency-Key": "k"}
    runs = []
    for client in (shared.amy, shared.bob):
        answer = client.post("/api/chat", json=body, headers=key)
        assert answer.status_code == 202, answer.text
        client.get(answer.json()["events"])
        assert client.post("/api/chat", json=body, headers=key).json() == answer.json()
        runs.append(answer.json()["run_id"])
    assert len(set(runs)) == 2


def test_memories_of_a_project_are_its_members(shared: Shared) -> None:
    project = {"project": shared.id}
    made = shared.amy.post("/api/memories", params=project, json={"content": "We close in May."})
    assert made.status_code == 201, made.text
    own = shared.bob.post("/api/memories", json={"content": "I like teal."}).json()
    seen = shared.bob.get("/api/memories", params=project).json()["memories"]
    assert [each["content"] for each in seen] == ["We close in May."]
    assert [each["content"] for each in shared.bob.get("/api/memories").json()["memories"]] == ["I like teal."]
    assert code_of(shared.bob.get(f"/api/memories/{made.json()['id']}")) == (404, "memory_not_found")
    assert code_of(shared.amy.get(f"/api/memories/{own['id']}", params=project)) == (404, "memory_not_found")
    assert code_of(shared.eve.get("/api/memories", params=project)) == (404, "project_not_found")


def test_a_conversation_moves_in_and_out(shared: Shared) -> None:
    thread = ask(shared.bob)["thread_id"]
    move = f"/api/conversations/{thread}/project"
    link = shared.bob.post(f"/api/conversations/{thread}/shares").json()
    assert code_of(shared.amy.post(move, json={"project": shared.id})) == (404, "thread_not_found")
    assert code_of(shared.eve.post(move, json={"project": None})) == (404, "thread_not_found")
    elsewhere = shared.eve.post("/api/projects", json={"name": "Eve's"}).json()["id"]
    assert code_of(shared.bob.post(move, json={"project": elsewhere})) == (404, "project_not_found")
    assert shared.bob.post(move, json={"project": shared.id}).status_code == 200
    assert labels(shared.amy, project=shared.id) == [thread]
    assert shared.amy.get(f"/api/shared/{link['token']}").status_code == 404
    assert shared.bob.post(move, json={"project": None}).status_code == 200
    assert (labels(shared.bob), labels(shared.amy, project=shared.id)) == ([thread], [])
    managed = ask(shared.amy, project=shared.id)["thread_id"]
    assert code_of(shared.bob.post(f"/api/conversations/{managed}/project", json={"project": None})) == (
        403,
        "manager_needed",
    )


def test_who_uses_a_project_does_not_manage_it(shared: Shared) -> None:
    eve = shared.eve.get("/api/me").json()["id"]
    bob = shared.bob.get("/api/me").json()["id"]
    amy = shared.amy.get("/api/me").json()["id"]
    needed = (403, "manager_needed")
    assert code_of(shared.bob.patch(shared.path(), json={"name": "Mine"})) == needed
    assert code_of(shared.bob.put(shared.path(f"/members/{eve}"))) == needed
    assert code_of(shared.bob.delete(shared.path(f"/members/{amy}"))) == needed
    assert code_of(shared.bob.delete(shared.path())) == needed
    assert code_of(shared.amy.delete(shared.path(f"/members/{amy}"))) == (409, "last_manager")
    assert code_of(shared.amy.put(shared.path("/members/nobody"))) == (404, "user_not_found")
    assert shared.amy.patch(shared.path(), json={"instructions": "Be long."}).json()["instructions"] == "Be long."
    assert code_of(shared.amy.patch(shared.path(), json={"sources": ["nowhere"]})) == (403, "not_granted")
    assert shared.amy.patch(shared.path(), json={"sources": ["demo"]}).json()["sources"] == ["demo"]
    assert shared.bob.delete(shared.path(f"/members/{bob}")).status_code == 204, "everybody may leave"


def test_rights_end_within_seconds(shared: Shared) -> None:
    thread = ask(shared.amy, project=shared.id)["thread_id"]
    asked = {"params": {"thread_id": thread}}
    assert shared.bob.get("/api/chat/history", **asked).status_code == 200
    bob = shared.bob.get("/api/me").json()["id"]
    begun = time.monotonic()
    with shared.bob.stream("GET", "/api/events", params={"project": shared.id}, timeout=30) as stream:
        assert stream.status_code == 200
        assert shared.amy.delete(shared.path(f"/members/{bob}")).status_code == 204
        for _ in stream.iter_text():
            pass
    assert time.monotonic() - begun < 15
    assert code_of(shared.bob.get("/api/chat/history", **asked)) == (404, "thread_not_found")
    assert labels(shared.amy, project=shared.id) == [thread]


def test_a_project_is_deleted_with_its_conversations_if_that_is_said(shared: Shared) -> None:
    thread = ask(shared.bob, project=shared.id)["thread_id"]
    assert code_of(shared.amy.delete(shared.path())) == (409, "project_not_empty")
    assert shared.amy.delete(shared.path(), params={"conversations": "delete"}).status_code == 204
    assert shared.amy.get("/api/projects").json() == {"projects": []}
    assert code_of(shared.bob.get("/api/chat/history", params={"thread_id": thread})) == (404, "thread_not_found")


def test_without_a_login_a_project_is_a_folder(serve: Serve) -> None:
    local = serve(["An answer."] * 2)
    made = local.client.post("/api/projects", json={"name": "Sales"})
    assert made.status_code == 201, made.text
    project = made.json()["id"]
    begun = local.answer("What is new?", project=project)
    thread = begun["thread_id"]
    assert labels(local.client, project=project) == [thread]
    assert labels(local.client) == []
    assert local.client.get("/api/chat/history", params={"thread_id": thread}).json()["runs"][0]["asked_by"] is None
    assert local.client.post(f"/api/conversations/{thread}/project", json={"project": None}).status_code == 200
    assert labels(local.client) == [thread]
