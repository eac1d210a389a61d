"""What a team's server writes into its audit log, who reads it, and what is never in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.access.team import OTHER, PASSWORD, Team, code_of, team_of
from tests.server.conftest import Serve

pytestmark = pytest.mark.one_backend

CANARY = "canary4711"


@pytest.fixture
def team(serve: Serve) -> Iterator[Team]:
    with team_of(serve([f"An answer {CANARY}."], auth="login")) as team:
        yield team


def log_of(team: Team, **wanted: Any) -> list[dict[str, Any]]:
    answer = team.admin.get("/api/admin/audit", params=wanted)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["rows"]
    return rows


def actions(team: Team, **wanted: Any) -> list[tuple[str, str, str]]:
    return [(each["actor_name"] or "", each["action"], each["outcome"]) for each in reversed(log_of(team, **wanted))]


def test_logins_and_what_administrators_do_are_noted(team: Team) -> None:
    bob = team.join("Bob")
    me = bob.get("/api/me").json()
    visitor = team.visitor()
    visitor.headers["x-request-id"] = "of-the-proxy-1"
    assert visitor.post("/api/login", json={"name": "Bob", "password": OTHER}).status_code == 401
    assert visitor.post("/api/login", json={"name": CANARY, "password": OTHER}).status_code == 401
    bob.put("/api/me/password", json={"current": PASSWORD, "password": OTHER})
    group = team.admin.post("/api/admin/groups", json={"name": "analysts"}).json()["id"]
    team.admin.put(f"/api/admin/groups/{group}/members/{me['id']}")
    team.admin.patch(f"/api/admin/users/{me['id']}", json={"role": "builder"})
    assert actions(team) == [
        ("ada", "link.use", "done"),
        ("ada", "login", "done"),
        ("ada", "user.add", "done"),
        ("ada", "link.make", "done"),
        ("bob", "link.use", "done"),
        ("bob", "login", "done"),
        ("", "login", "failed"),
        ("", "login", "failed"),
        ("bob", "password.change", "done"),
        ("ada", "group.add", "done"),
        ("ada", "member.add", "done"),
        ("ada", "user.change", "done"),
    ]
    unknown, wrong = (each for each in log_of(team, action="login") if each["outcome"] == "failed")
    assert (wrong["object"], wrong["request_id"], wrong["address"]) == (me["id"], "of-the-proxy-1", "127.0.0.1")
    assert unknown["object"] == "", "a password may be typed where the name goes"
    assert log_of(team, action="user.change")[0]["detail"] == {
        "role": "builder",
        "status": "active",
        "changed": "role",
    }
    assert {each["actor"] for each in log_of(team, actor=me["id"])} == {me["id"]}


def test_shares_exports_deletions_and_definitions_are_noted_without_contents(team: Team) -> None:
    asked = team.admin.post("/api/chat", json={"question": f"What is {CANARY}?"}).json()
    team.admin.get(asked["events"])
    thread = f"/api/conversations/{asked['thread_id']}"
    link = team.admin.post(f"{thread}/shares").json()
    team.admin.delete(f"{thread}/shares/{link['id']}")
    team.admin.get(f"{thread}/export")
    agent = {"definition": {"system_prompt": CANARY}}
    assert team.admin.put("/api/catalog/agents/helper", json=agent).status_code == 200
    assert team.admin.delete("/api/catalog/agents/helper").status_code == 204
    assert team.admin.delete(thread).status_code == 204
    found = log_of(team)
    assert [each["action"] for each in reversed(found)] == [
        "link.use",
        "login",
        "share.make",
        "share.revoke",
        "conversation.export",
        "catalog.change",
        "catalog.delete",
        "conversation.delete",
    ]
    [shared] = log_of(team, action="share.make")
    assert (shared["object"], shared["detail"]) == (asked["thread_id"], {"link": link["id"]})
    text = json.dumps(found)
    for secret in (CANARY, PASSWORD, link["token"], team.setup_token):
        assert secret not in text


def test_the_log_is_for_administrators(team: Team) -> None:
    bob = team.join("Bob", role="builder")
    for path in ("/api/admin/audit", "/api/admin/audit/export"):
        assert code_of(bob.get(path)) == (403, "role_missing")
        assert code_of(team.visitor().get(path)) == (401, "login_needed")


def test_the_log_is_read_in_pages_and_exported_whole(team: Team) -> None:
    for number in range(5):
        team.admin.post("/api/admin/groups", json={"name": f"group {number}"})
    pages, before = [], None
    while True:
        given = {"limit": 2} | ({"before": before} if before is not None else {})
        page = team.admin.get("/api/admin/audit", params=given).json()
        pages += page["rows"]
        if (before := page["before"]) is None:
            break
    assert len(pages) == len({each["id"] for each in pages}) == 7
    answer = team.admin.get("/api/admin/audit/export")
    assert answer.headers["content-type"].startswith("application/jsonl")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[0]["action"] == "audit.export"
    assert lines[1:] == pages
    assert code_of(team.admin.get("/api/admin/audit", params={"before": "x"})) == (404, "cursor_unknown")


def test_a_server_without_login_writes_no_log(serve: Serve) -> None:
    alone = serve(["An answer."])
    asked = alone.answer("Is this noted?")
    alone.client.post(f"/api/conversations/{asked['thread_id']}/shares")
    alone.client.delete(f"/api/conversations/{asked['thread_id']}")
    answer: httpx.Response = alone.client.get("/api/admin/audit")
    assert answer.json() == {"rows": [], "before": None}
