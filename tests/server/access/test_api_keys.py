"""API keys and usage over HTTP: each user has the own ones, administrators see all, and limits hold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.access.team import Team, code_of, team_of
from tests.server.conftest import Serve

from longthread.access.spending import SpentCall, note_spending
from longthread.model.run import RunAsker
from longthread.settings import Settings
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend


@pytest.fixture
def team(serve: Serve) -> Iterator[Team]:
    with team_of(serve([], auth="login")) as team:
        yield team


def make_key(client: httpx.Client, **about: Any) -> dict[str, Any]:
    answer = client.post("/api/me/keys", json={"name": "ci", "scopes": ["read"], **about})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def with_key(team: Team, key: str, header: str = "Authorization") -> httpx.Client:
    client = team.visitor()
    client.headers[header] = f"Bearer {key}" if header == "Authorization" else key
    return client


def test_a_user_makes_and_revokes_keys(team: Team) -> None:
    bob = team.join("bob")
    limits = {"agents": ["main"], "requests_per_minute": 60, "budget": {"amount": 20, "unit": "money"}}
    made = make_key(bob, **limits, expires_at="2099-01-01T00:00:00Z")
    assert made["user"] == "bob" and made["budget"] == {"amount": 20.0, "unit": "money", "period": "month"}
    assert (made["agents"], made["models"], made["requests_per_minute"]) == (["main"], None, 60)
    [listed] = bob.get("/api/me/keys").json()["keys"]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    for header in ("Authorization", "X-Api-Key", "x-goog-api-key", "X-Longthread-Key"):
        answer = with_key(team, made["key"], header).get("/api/me")
        assert (answer.status_code, answer.json()["name"], answer.json()["via"]) == (200, "bob", "key")
    assert bob.delete(f"/api/me/keys/{made['id']}").status_code == 204
    assert code_of(with_key(team, made["key"]).get("/api/me")) == (401, "login_needed")
    assert code_of(bob.delete(f"/api/me/keys/{made['id']}")) == (404, "api_key_not_found")


def test_a_key_does_what_its_scopes_say(team: Team) -> None:
    bob = team.join("bob")
    key = with_key(team, make_key(bob)["key"])
    assert key.get("/api/conversations").status_code == 200
    assert code_of(key.post("/api/chat", json={"message": "Hello"})) == (403, "scope_missing")
    assert code_of(key.get("/api/memories")) == (403, "scope_missing")
    # A key makes no key, whatever it is for, and has no more than its user.
    admin_key = with_key(team, make_key(bob, scopes=["admin", "chat"])["key"])
    body = {"name": "more", "scopes": ["chat"]}
    assert code_of(admin_key.post("/api/me/keys", json=body)) == (403, "scope_missing")
    assert code_of(admin_key.get("/api/admin/keys")) == (403, "role_missing")
    of_admin = with_key(team, make_key(team.admin, scopes=["admin"])["key"])
    assert of_admin.get("/api/admin/keys").status_code == 200
    assert code_of(of_admin.get("/api/conversations")) == (403, "scope_missing")


def test_another_users_key_is_unknown(team: Team) -> None:
    bob, eve = team.join("bob"), team.join("eve")
    key_id = make_key(bob)["id"]
    theirs, unknown = eve.delete(f"/api/me/keys/{key_id}"), eve.delete("/api/me/keys/zzzzzzzz")
    assert code_of(theirs) == code_of(unknown) == (404, "api_key_not_found")
    assert theirs.text.replace(key_id, "zzzzzzzz") == unknown.text
    assert eve.get("/api/me/keys").json() == {"keys": []}
    assert code_of(eve.get("/api/admin/keys")) == (403, "role_missing")
    [seen] = team.admin.get("/api/admin/keys").json()["keys"]
    assert (seen["id"], seen["user"]) == (key_id, "bob")
    assert team.admin.delete(f"/api/admin/keys/{key_id}").status_code == 204
    assert bob.get("/api/me/keys").json() == {"keys": []}


def test_a_disabled_users_key_stops_working(team: Team) -> None:
    bob = team.join("bob")
    key = with_key(team, make_key(bob)["key"])
    assert key.get("/api/me").status_code == 200
    bob_id = bob.get("/api/me").json()["id"]
    assert team.admin.patch(f"/api/admin/users/{bob_id}", json={"status": "disabled"}).status_code == 200
    assert code_of(key.get("/api/me")) == (401, "login_needed")


def test_two_keys_in_one_request_are_refused(team: Team) -> None:
    first, second = make_key(team.admin)["key"], make_key(team.admin)["key"]
    client = with_key(team, first)
    assert code_of(client.get("/api/me", headers={"X-Api-Key": second})) == (422, "several_keys")


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"agents": []},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"budget": {"amount": 0}},
        {"parallel": 0},
        {"other": 1},
        {"name": ""},
    ],
)
def test_a_key_that_would_be_of_no_use_is_refused(team: Team, wrong: dict[str, Any]) -> None:
    answer = team.admin.post("/api/me/keys", json={"name": "ci", "scopes": ["read"], **wrong})
    assert answer.status_code == 422, answer.text


def test_a_key_sends_as_many_requests_a_minute_as_it_may(team: Team) -> None:
    key = with_key(team, make_key(team.admin, requests_per_minute=3)["key"])
    answers = [key.get("/api/me") for _ in range(5)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json()["code"] == "too_many_requests"
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert team.admin.get("/api/me").status_code == 200


def test_usage_is_told_to_the_user_and_to_administrators(team: Team, store_address: str) -> None:
    bob = team.join("bob")
    me, key = bob.get("/api/me").json(), make_key(bob)
    settings = Settings.of(prices={"gpt": {"input": 1_000_000, "output": 0}})

    async def spend() -> None:
        async with open_store(store_address) as store, store.writing() as tx:
            for model in ("gpt", "unpriced"):
                call = SpentCall((model,), tokens_in=2, tokens_out=1)
                await note_spending(tx, RunAsker(me["id"], key["id"]), call, settings)
            await note_spending(tx, RunAsker(team.ada["id"]), call, settings)

    asyncio.run(spend())
    own = bob.get("/api/me/usage", params={"by": "model"}).json()
    assert (own["by"], own["currency"], own["until"]) == ("model", "USD", time.strftime("%Y-%m-%d", time.gmtime()))
    counts = {"requests": 1, "tokens_in": 2, "tokens_out": 1}
    assert own["rows"] == [
        {"id": "gpt", "name": "gpt", **counts, "cost": 2.0, "unpriced": 0},
        {"id": "unpriced", "name": "unpriced", **counts, "cost": 0.0, "unpriced": 3},
    ]
    every = team.admin.get("/api/admin/usage").json()["rows"]
    assert {row["name"].casefold(): row["requests"] for row in every} == {"ada": 1, "bob": 2}
    by_key = team.admin.get("/api/admin/usage", params={"by": "key"}).json()["rows"]
    assert {row["name"]: row["requests"] for row in by_key} == {None: 1, "ci": 2}
    early = {"since": "2020-01-01", "until": "2020-01-31"}
    assert team.admin.get("/api/admin/usage", params=early).json()["rows"] == []
    backwards = {"since": "2020-01-31", "until": "2020-01-01"}
    assert code_of(team.admin.get("/api/admin/usage", params=backwards)) == (422, "invalid_input")
    assert code_of(bob.get("/api/admin/usage")) == (403, "role_missing")


def test_what_a_page_asks_first_is_bound_by_a_keys_limits(team: Team) -> None:
    told = {"auth": {"mode": "login", "user": None, "setup": False, "issuers": [], "share": "users"}}
    with with_key(team, make_key(team.admin, scopes=["gateway"])["key"]) as narrow:
        assert narrow.get("/api/info").json() == told
    with with_key(team, make_key(team.admin, scopes=["read"], requests_per_minute=3)["key"]) as slow:
        answers = [slow.get("/api/info") for _ in range(4)]
    assert answers[0].json()["auth"]["user"]["name"] == "ada"
    assert [each.status_code for each in answers] == [200, 200, 200, 429]
