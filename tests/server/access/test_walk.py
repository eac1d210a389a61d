"""Every route, walked by everyone who must not get what is another user's.

`amy` has a conversation, a memory, a board, a tag and a key whose texts are canaries. All that others are answered is
searched for these, and what is hers answers others exactly as what does not exist.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any

import httpx
import pytest
from tests.server.access.team import Team, team_of
from tests.server.conftest import Serve

from longthread.server import authentication
from longthread.server.access_table import ACCESS, Rule

CANARY = "canary7f3a"
"""In each of amy's texts."""
STREAMS = {"GET /api/events", "GET /health/stream"}
NO_ID = "0192f0c1-5a0e-7cc3-98c4-dc0c0c07ffff"
FORMS = {"index": "0", "kind": "tools", "name": "x", "provider": "openai", "agent": "analyst", "issuer": "sso"}
ASKS = {"threadId": "{thread_id}", "runId": "{run_id}", "tools": [], "context": [], "state": {}}
ASKS |= {"messages": [{"id": "m1", "role": "user", "content": "Mine?"}]}
BODIES: dict[str, Any] = {
    "POST /api/chat": {"question": "Mine?", "thread_id": "{thread_id}"},
    "POST /ag-ui/{agent}": ASKS,
    "POST /api/conversations/{thread_id}/messages": {"role": "user", "content": "Mine?"},
    "PATCH /api/conversations/{thread_id}": {"label": "Mine now"},
    "PATCH /api/conversations/{thread_id}/messages/{message_id}": {"metadata": {"mine": True}},
    "POST /api/conversations/{thread_id}/messages/{message_id}/edit": {"question": "Mine?"},
    "PUT /api/conversations/{thread_id}/messages/{message_id}/feedback": {"opinion": "up"},
    "PUT /api/conversations/{thread_id}/branch": {"message": "{message_id}"},
    "POST /api/conversations/{thread_id}/steps/{index}/edit": {"sql": "SELECT 1"},
    "POST /api/conversations/{thread_id}/steps/{index}/try": {"sql": "SELECT 1"},
    "POST /api/conversations/{thread_id}/approvals": {"decisions": {"c": {"type": "approve"}}},
    "POST /api/threads/{thread_id}/approvals": {"decisions": {"c": {"type": "approve"}}},
    "POST /api/conversations/{thread_id}/project": {"project": None},
    "PATCH /api/projects/{project_id}": {"name": "Mine"},
    "PATCH /api/memories/{memory_id}": {"content": "Mine."},
    "PATCH /api/boards/{board_id}": {"title": "Mine"},
    "POST /api/boards/{board_id}/cards": {"thread_id": "{thread_id}", "message_id": "{message_id}"},
    "PATCH /api/boards/{board_id}/cards/{card_id}": {"title": "Mine"},
}
QUERIES = {name: {"thread_id": "{thread_id}"} for name in ("GET /api/chat/history", "GET /api/state")}
QUERIES |= {"GET /api/conversations": {"q": CANARY}, "GET /api/memories": {"q": CANARY}, "GET /api/tags": {}}


@dataclass
class Walk:
    """Two servers on one store, amy's ids, and clients of others. Others ask the second server."""

    team: Team
    amy: httpx.Client
    ids: dict[str, str]

    def client(self, **headers: str) -> httpx.Client:
        client = self.team.visitor()
        client.headers.update(headers)
        return client

    def ask(self, client: httpx.Client, operation: str, ids: dict[str, str]) -> tuple[int, str]:
        """Return the status and the text of an answer, of a stream only its beginning."""
        method, path = operation.split()
        path = path.replace(":path}", "}")
        values = {name: ids.get(name, FORMS.get(name, "x")) for _, name, _, _ in Formatter().parse(path) if name}
        about = {"params": _fill(QUERIES.get(operation, {}), ids)}
        if method in ("POST", "PUT", "PATCH"):
            about["json"] = _fill(BODIES.get(operation, {}), ids)
        if operation == "GET /api/events":
            about["params"] = {"run": f"{ids['thread_id']}/{ids['run_id']}"}
        if operation not in STREAMS:
            answer = client.request(method, path.format(**values), **about)
            return answer.status_code, answer.text
        with client.stream(method, path, timeout=5, **about) as answer:
            begun = ""
            try:
                for piece in answer.iter_text():
                    begun += piece
                    if len(begun) > 300 or answer.status_code != 200:
                        break
            except httpx.ReadTimeout:
                pass
            return answer.status_code, begun


def _fill(node: Any, ids: dict[str, str]) -> Any:
    if isinstance(node, str):
        return re.sub(r"\{(\w+)\}", lambda name: ids.get(name[1], "x"), node)
    if isinstance(node, dict):
        return {key: _fill(each, ids) for key, each in node.items()}
    return [_fill(each, ids) for each in node] if isinstance(node, list) else node


@pytest.fixture
def walk(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    monkeypatch.setattr(authentication, "FRESH_SECONDS", 0.5)
    sql = {"action": "run_sql", "args": {"sql": f"SELECT '{CANARY}' AS word"}}
    first = serve([sql, {"finish": f"The answer is {CANARY}."}], auth="login")
    with team_of(first) as team:
        amy = team.join("Amy")
        asked = amy.post("/api/chat", json={"question": f"What is {CANARY}?", "source": "demo"}).json()
        amy.get(asked["events"])
        ids = {"thread_id": asked["thread_id"], "run_id": asked["run_id"]}
        history = amy.get("/api/chat/history", params={"thread_id": ids["thread_id"]}).json()
        ids["message_id"] = ids["question_id"] = history["messages"][0]["id"]
        ids["memory_id"] = amy.post("/api/memories", json={"content": f"Amy likes {CANARY}."}).json()["id"]
        ids["board_id"] = amy.post("/api/boards", json={"title": f"Board {CANARY}"}).json()["id"]
        amy.patch(f"/api/conversations/{ids['thread_id']}", json={"label": CANARY, "tags": [CANARY]})
        amy.post(f"/api/conversations/{ids['thread_id']}/shares")
        ids["share_id"] = amy.get(f"/api/conversations/{ids['thread_id']}/shares").json()["shares"][0]["id"]
        second = serve(["Never asked."], auth="login")
        team.running = second
        yield Walk(team, amy, ids)


def rules(*who: str) -> list[tuple[str, Rule]]:
    return [(operation, rule) for operation, rule in ACCESS.items() if rule.who in who and " /" in operation]


def test_the_canaries_are_there(walk: Walk) -> None:
    found = "".join(walk.ask(walk.amy, operation, walk.ids)[1] for operation in (*QUERIES, "GET /api/boards"))
    assert found.count(CANARY) > 8


def test_who_is_not_logged_in_gets_nothing(walk: Walk) -> None:
    bob = walk.team.join("Bob")
    me = bob.get("/api/me").json()
    key = bob.post("/api/me/keys", json={"name": "k", "scopes": ["chat", "memories", "sources", "catalog"]})
    keys = [key.json()["key"]] if key.status_code == 201 else []
    assert walk.team.admin.patch(f"/api/admin/users/{me['id']}", json={"status": "disabled"}).status_code == 200
    while bob.get("/api/me").status_code == 200:  # the other server has looked a moment ago
        time.sleep(0.2)
    wrong = f"lt_abcdefgh_{'x' * 43}"
    strangers = [walk.client(), bob, *(walk.client(authorization=f"Bearer {each}") for each in [*keys, wrong])]
    for stranger in strangers:
        for operation, _ in rules("user", "reader"):
            status, text = walk.ask(stranger, operation, walk.ids)
            assert status == 401, (operation, text)
            assert json.loads(text)["code"] == "login_needed", (operation, text)
            assert CANARY not in text
        for operation, _ in rules("visitor", "anyone"):
            assert CANARY not in walk.ask(stranger, operation, walk.ids)[1], operation


def test_a_key_without_the_scope_gets_nothing(walk: Walk) -> None:
    made = walk.amy.post("/api/me/keys", json={"name": "k", "scopes": ["mcp", "gateway"]})
    assert made.status_code == 201, made.text
    client = walk.client(**{"X-Api-Key": made.json()["key"]})
    for operation, _ in rules("user"):
        status, text = walk.ask(client, operation, walk.ids)
        assert (status, json.loads(text)["code"]) == (403, "scope_missing"), operation
        assert CANARY not in text


@pytest.mark.parametrize(("role", "is_in_project"), [("member", False), ("admin", False), ("member", True)])
def test_what_is_anothers_answers_as_what_does_not_exist(walk: Walk, role: str, is_in_project: bool) -> None:
    """Administrators read no contents either. Who is in another project does not reach this one."""
    other = walk.team.join("Bob", role=role)
    if is_in_project:
        assert other.post("/api/projects", json={"name": "Bob's"}).status_code == 201
        project = walk.amy.post("/api/projects", json={"name": CANARY, "instructions": CANARY}).json()["id"]
        moved = walk.amy.post(f"/api/conversations/{walk.ids['thread_id']}/project", json={"project": project})
        assert moved.status_code == 200, moved.text
        walk.ids["project_id"] = project
    before = walk.amy.get("/api/chat/history", params={"thread_id": walk.ids["thread_id"]}).text
    unknown = dict.fromkeys(walk.ids, NO_ID)
    compared = 0
    for operation, rule in rules("user", "reader", "visitor", "anyone"):
        if operation in LEFT_OUT:
            continue
        status, text = walk.ask(other, operation, walk.ids)
        assert CANARY not in text, operation
        assert status < 500 or " /api" not in operation, (operation, text)
        if rule.role == "admin" and role != "admin":
            assert (status, json.loads(text)["code"]) == (403, "role_missing"), operation
        elif operation in ("POST /api/chat", "POST /ag-ui/{agent}"):
            assert status in (200, 404), (operation, text)  # an unknown UUID begins a conversation
        elif _names(operation) & walk.ids.keys() and operation not in STREAMS:
            theirs, none = walk.ask(other, operation, walk.ids), walk.ask(other, operation, unknown)
            for name, value in walk.ids.items():
                theirs = theirs[0], theirs[1].replace(value, NO_ID if name in _names(operation) else value)
            assert theirs == none, operation
            assert status in (404, 204, 403, 409, 422), (operation, text)
            compared += 1
    assert compared > 40
    assert walk.amy.get("/api/chat/history", params={"thread_id": walk.ids["thread_id"]}).text == before
    assert walk.amy.get(f"/api/memories/{walk.ids['memory_id']}").status_code == 200
    assert walk.amy.get(f"/api/boards/{walk.ids['board_id']}").status_code == 200


@pytest.mark.parametrize("path", ["/api/chat", "/api/conversations", "/ag-ui/analyst"])
def test_an_id_that_can_be_guessed_is_refused_whether_anybody_has_it(walk: Walk, serve: Serve, path: str) -> None:
    local = serve(["An answer."])
    local.ask("Whose?", thread_id="customer-42")  # of the time before the users
    bob = walk.team.join("Bob")
    answers = []
    for thread_id in ("customer-42", "customer-43"):
        body = {"/api/chat": {"question": "Mine?", "thread_id": thread_id}, "/api/conversations": {"id": thread_id}}
        sent = body.get(path) or _fill(ASKS, {"thread_id": thread_id, "run_id": "r"})
        answer = bob.post(path, json=sent)
        answers.append((answer.status_code, answer.text.replace(thread_id, "")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 422
    again = walk.team.admin.post("/api/chat", json={"question": "Mine?", "thread_id": "customer-42"})
    assert again.status_code == 202, "its owner goes on"


LEFT_OUT = {"POST /api/logout", "DELETE /api/me/sessions", "DELETE /api/me", "POST /api/admin/users/{user_id}/logout"}
"""They end the walker's own login; tests of their own have them."""


def _names(operation: str) -> set[str]:
    path = {name for _, name, _, _ in Formatter().parse(operation) if name}
    given = f"{QUERIES.get(operation, '')}{BODIES.get(operation, '')}"
    return path | set(re.findall(r"\{(\w+)\}", given))
