"""A budget over HTTP: a run under way pauses, and the next question gets 429 with the time to wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.access.team import Team, team_of
from tests.server.conftest import Serve

pytestmark = pytest.mark.one_backend

ASKS = {"question": "How many missions are there?"}
SQL = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT count(*) FROM missions"}}


@pytest.fixture
def team(serve: Serve) -> Iterator[Team]:
    with team_of(serve([SQL], auth="login", model="demo")) as team:
        yield team


def ask_and_wait(client: httpx.Client) -> dict[str, Any]:
    """Ask a question, wait for the end of its run, and return that."""
    answer = client.post("/api/chat", json=ASKS)
    assert answer.status_code == 202, answer.text
    assert client.get(answer.json()["events"]).status_code == 200
    found = client.get("/api/chat/history", params={"thread_id": answer.json()["thread_id"]}).json()
    return {**found["runs"][-1], "thread_id": answer.json()["thread_id"]}


@pytest.mark.parametrize("whose", ["user", "key"])
def test_a_spent_budget_pauses_a_run_and_refuses_the_next_question(team: Team, whose: str) -> None:
    bob, tiny = team.join("bob"), {"amount": 1, "unit": "tokens", "period": "day"}
    if whose == "user":
        bob_id = bob.get("/api/me").json()["id"]
        assert team.admin.patch(f"/api/admin/users/{bob_id}", json={"budget": tiny}).status_code == 200
        client = bob
    else:
        made = bob.post("/api/me/keys", json={"name": "ci", "scopes": ["chat"], "budget": tiny}).json()
        client = team.visitor()
        client.headers["Authorization"] = f"Bearer {made['key']}"
    run = ask_and_wait(client)
    assert (run["status"], run["outcome"]["reason"]) == ("paused", "budget_spent")
    refused = client.post("/api/chat", json=ASKS)
    assert (refused.status_code, refused.json()["code"]) == (429, "budget_spent")
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400
    resumed = client.post(f"/api/conversations/{run['thread_id']}/resume")
    assert (resumed.status_code, resumed.json()["code"]) == (429, "budget_spent")
    [row] = bob.get("/api/me/usage", params={"by": "model"}).json()["rows"]
    assert row["requests"] == 1 and row["tokens_in"] > 0
    others = team.admin.post("/api/chat", json=ASKS)
    assert others.status_code == 202
