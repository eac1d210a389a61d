"""Administrators read no conversations of others, unless the settings say so; then each reading is in the audit log."""

from __future__ import annotations

import httpx
import pytest
from tests.server.access.team import Team, code_of, team_of
from tests.server.conftest import Serve

pytestmark = pytest.mark.one_backend

CANARY = "canary4711"


def ask(client: httpx.Client) -> str:
    asked = client.post("/api/chat", json={"question": f"What is {CANARY}?"}).json()
    client.get(asked["events"])
    return str(asked["thread_id"])


def read(client: httpx.Client, thread: str, user: str) -> httpx.Response:
    return client.get("/api/chat/history", params={"thread_id": thread}, headers={"X-Longthread-User": user})


def readings(team: Team) -> list[tuple[str, str, str]]:
    rows = team.admin.get("/api/admin/audit", params={"action": "admin.read"}).json()["rows"]
    return [(each["actor_name"], each["object"], each["detail"]["route"]) for each in reversed(rows)]


def test_by_default_an_administrator_reads_nothing_of_others(serve: Serve) -> None:
    with team_of(serve(["An answer."], auth="login")) as team:
        bob = team.join("Bob")
        thread = ask(bob)
        for user in ("Bob", "nobody"):
            assert code_of(read(team.admin, thread, user)) == (404, "thread_not_found")
        assert team.admin.get("/api/conversations", headers={"X-Longthread-User": "Bob"}).json()["conversations"] == []
        assert readings(team) == []


def test_where_it_is_allowed_each_reading_is_noted(serve: Serve) -> None:
    with team_of(serve(["An answer."], auth="login", admin_reads=True)) as team:
        bob = team.join("Bob Ä")
        me = bob.get("/api/me").json()["id"]
        thread = ask(bob)
        assert code_of(team.admin.get("/api/chat/history", params={"thread_id": thread})) == (404, "thread_not_found")
        answer = read(team.admin, thread, "bob%20%C3%A4")
        assert CANARY in answer.text
        header = {"X-Longthread-User": "Bob%20%C3%84"}
        found = team.admin.get("/api/conversations", headers=header).json()["conversations"]
        assert [each["id"] for each in found] == [thread]
        assert CANARY in team.admin.get(f"/api/conversations/{thread}/export", headers=header).text
        assert readings(team) == [
            ("ada", thread, "/api/chat/history"),
            ("ada", "", "/api/conversations"),
            ("ada", thread, "/api/conversations/{thread_id}/export"),
        ]
        rows = team.admin.get("/api/admin/audit", params={"action": "conversation.export"}).json()["rows"]
        assert [(each["actor_name"], each["on_behalf"]) for each in rows] == [("ada", me)]


def test_it_is_for_reading_and_for_administrators(serve: Serve) -> None:
    with team_of(serve(["An answer."], auth="login", admin_reads=True)) as team:
        bob, eve = team.join("Bob"), team.join("Eve", role="builder")
        thread, header = ask(bob), {"X-Longthread-User": "Bob"}
        for user in ("Bob", "unknown"):
            assert code_of(read(eve, thread, user)) == (403, "role_missing")
        assert code_of(read(team.admin, thread, "unknown")) == (404, "user_not_found")
        assert code_of(read(team.admin, ask(eve), "Bob")) == (404, "thread_not_found")
        change = team.admin.patch(f"/api/conversations/{thread}", json={"label": "Mine"}, headers=header)
        assert code_of(change) == (404, "thread_not_found")
        assert code_of(team.admin.delete(f"/api/conversations/{thread}", headers=header)) == (404, "thread_not_found")
        asked = team.admin.post("/api/chat", json={"question": "?", "thread_id": thread}, headers=header)
        assert asked.status_code == 404
        assert team.admin.get("/api/memories", headers=header).json()["memories"] == []
        assert bob.get("/api/me", headers={"X-Longthread-User": "ada"}).json()["name"] == "bob"


def test_what_is_noted_is_what_is_read(serve: Serve) -> None:
    with team_of(serve(["An answer."], auth="login", admin_reads=True)) as team:
        bob = team.join("Bob")
        harmless, other = ask(bob), ask(bob)
        header = {"X-Longthread-User": "Bob"}
        for query in (
            f"thread_id={harmless}&thread_id={other}",
            f"thread_id={harmless}&thread%5Fid={other}",
            f"thread_id={harmless}&thread_id={other.replace('-', '%2D')}",
        ):
            answer = team.admin.get(f"/api/chat/history?{query}", headers=header)
            assert answer.json()["thread_id"] == other
            assert readings(team)[-1][1] == other, query
        answer = team.admin.get(f"/api/chat/history?thread_id={harmless}&thread_id=", headers=header)
        assert readings(team)[-1][1] == "", "an empty one counts, too"
        assert answer.status_code != 200
