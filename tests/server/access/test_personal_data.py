"""A person's data as a file, and accounts that are erased with all that is kept of them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.access.team import OTHER, PASSWORD, Team, code_of, team_of
from tests.server.access.test_uploads import upload
from tests.server.conftest import Serve

pytestmark = pytest.mark.one_backend

CANARY = "canary4711"


@pytest.fixture
def team(serve: Serve) -> Iterator[Team]:
    with team_of(serve([f"An answer {CANARY}."], auth="login")) as team:
        yield team


def ask(client: httpx.Client, question: str) -> str:
    asked = client.post("/api/chat", json={"question": question}).json()
    client.get(asked["events"])
    return str(asked["thread_id"])


def erase(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.request("DELETE", "/api/me", json=body)


def test_a_person_exports_all_that_is_kept(team: Team) -> None:
    bob = team.join("Bob")
    thread = ask(bob, f"What is {CANARY}?")
    ask(team.admin, "What is not Bob's?")
    answer = bob.get("/api/me/export")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
    assert json.loads(members["account.json"])["name"] == "bob"
    assert thread in members["conversations.jsonl"]
    assert CANARY in members["conversations.jsonl"]
    everything = "".join(members.values())
    assert "What is not Bob's?" not in everything
    assert "argon2" not in everything
    actions = [json.loads(line)["action"] for line in members["audit.jsonl"].splitlines()]
    assert actions[0] == "person.export"
    assert "user.add" in actions, "what an administrator did to Bob, too"
    assert code_of(team.visitor().get("/api/me/export")) == (401, "login_needed")


def test_an_account_is_erased_with_its_password(team: Team) -> None:
    bob = team.join("Bob", email=f"{CANARY}@example.org")
    me = bob.get("/api/me").json()["id"]
    thread = ask(bob, f"What is {CANARY}?")
    assert code_of(erase(bob, password=OTHER)) == (401, "login_failed")
    assert code_of(erase(bob)) == (401, "login_failed")
    assert bob.get("/api/chat/history", params={"thread_id": thread}).status_code == 200
    answer = erase(bob, password=PASSWORD)
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert code_of(bob.get("/api/me")) == (401, "login_needed")
    again = {"name": "Bob", "password": PASSWORD}
    assert code_of(team.visitor().post("/api/login", json=again)) == (401, "login_failed")
    assert [each["name"] for each in team.admin.get("/api/admin/users").json()["users"]] == ["ada"]
    rows = team.admin.get("/api/admin/audit").json()["rows"]
    assert me not in json.dumps(rows)
    assert rows[-1]["actor_name"] == "ada"
    [row] = [each for each in rows if each["action"] == "user.forget" and each["outcome"] == "done"]
    assert row["actor"] == row["object"]
    assert row["actor"].startswith("forgotten-")
    new = team.join("Bob")
    assert new.get("/api/conversations").json()["conversations"] == []


def test_an_administrator_erases_a_user_but_not_the_last_administrator(team: Team) -> None:
    bob = team.join("Bob")
    me = bob.get("/api/me").json()["id"]
    assert code_of(bob.delete(f"/api/admin/users/{me}")) == (403, "role_missing")
    assert team.admin.delete(f"/api/admin/users/{me}").status_code == 204
    assert code_of(bob.get("/api/me")) == (401, "login_needed")
    assert code_of(team.admin.delete(f"/api/admin/users/{me}")) == (404, "user_not_found")
    assert code_of(erase(team.admin, password=PASSWORD)) == (409, "last_admin")
    assert team.admin.get("/api/me").json()["role"] == "admin"


def test_files_that_became_no_source_go_with_their_user(team: Team) -> None:
    bob = team.join("Bob", role="admin")
    pending, kept = upload(bob), upload(bob, "b.csv")
    assert bob.post("/api/sources", json={"name": "b", "uploads": [kept]}).status_code == 201
    folder = team.running.folder / "data" / "uploads"
    assert (folder / pending).exists()
    assert erase(bob, password=PASSWORD).status_code == 204
    assert not (folder / pending).exists()
    assert [each["name"] for each in team.admin.get("/api/sources").json()["sources"]] == ["demo", "b"]
    assert team.admin.get("/api/sources/b/preview").status_code == 200
