"""One user's conversations do not exist for another, whichever route is asked."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

BODIES: dict[str, dict[str, Any]] = {
    "/api/conversations/{thread_id}/messages/{message_id}/feedback": {"opinion": "up"},
    "/api/conversations/{thread_id}": {"label": "Mine now"},
    "/api/conversations/{thread_id}/messages": {"role": "user", "content": "Mine?"},
    "/api/conversations/{thread_id}/messages/{message_id}": {"metadata": {"mine": True}},
    "/api/conversations/{thread_id}/messages/{message_id}/edit": {"question": "Mine?"},
    "/api/conversations/{thread_id}/steps/{index}/edit": {"sql": "SELECT 1"},
    "/api/conversations/{thread_id}/steps/{index}/try": {"sql": "SELECT 1"},
    "/api/conversations/{thread_id}/branch": {"message": "x"},
    "/api/conversations/{thread_id}/project": {"project": None},
    "/api/conversations/{thread_id}/approvals": {"decisions": {"c": {"type": "approve"}}},
}


def test_no_route_reaches_another_users_conversation(serve: Any) -> None:
    ada = serve([{"finish": "Yes."}], user="ada")
    grace = serve([{"finish": "No."}], user="grace")
    asked = ada.answer("Is this mine?")
    before = ada.history(asked["thread_id"])
    first = before["messages"][0]["id"]
    values = {**asked, "index": 0, "message_id": first, "question_id": first, "share_id": "x"}
    tried = 0
    for path, methods in grace.client.get("/api/openapi.json").json()["paths"].items():
        for method, about in methods.items():
            named = {each["name"]: each["in"] for each in about.get("parameters", ())}
            if "thread_id" not in named:
                continue
            query = {"thread_id": asked["thread_id"]} if named["thread_id"] == "query" else {}
            query |= {"q": "mine"} if "q" in named else {}
            body = {"json": BODIES.get(path, {})} if "requestBody" in about else {}
            answer = grace.client.request(method.upper(), path.format(**values), params=query, **body)
            assert (answer.status_code, answer.json()["code"]) == (404, "thread_not_found"), (method, path, answer.text)
            tried += 1
    assert tried >= 12
    assert grace.client.get("/api/conversations", params={"parent": asked["thread_id"]}).status_code == 404
    assert grace.client.get("/api/conversations").json()["conversations"] == []
    assert grace.client.get("/api/conversations", params={"q": "mine"}).json()["conversations"] == []
    taken = grace.client.post("/api/chat", json={"question": "And mine?", "thread_id": asked["thread_id"]})
    assert (taken.status_code, taken.json()["code"]) == (404, "thread_not_found")
    assert ada.history(asked["thread_id"]) == before
    assert [each["label"] for each in ada.client.get("/api/conversations").json()["conversations"]] == ["Is this mine?"]
