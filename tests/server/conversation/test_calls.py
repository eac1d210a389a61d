"""The calls of the model in a conversation, what each saw, and how that differs from the call before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import talked

LOOK = {"thought": "Look.", "action": "list_tables"}
SCRIPT = [LOOK, {"finish": "There are some."}]


def calls(running: Any, thread: str, **query: Any) -> dict[str, Any]:
    answer = running.client.get(f"/api/conversations/{thread}/calls", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def call(running: Any, thread: str, step: int, **query: Any) -> dict[str, Any]:
    answer = running.client.get(f"/api/conversations/{thread}/calls/{step}", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_calls_are_listed_page_by_page_and_by_run(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.answer("a")
    thread = asked["thread_id"]
    second = running.answer("b", thread_id=thread)
    whole = calls(running, thread)["calls"]
    assert [(each["run_id"], each["number"], each["of"]) for each in whole] == [
        (asked["run_id"], 1, 2),
        (asked["run_id"], 2, 2),
        (second["run_id"], 1, 2),
        (second["run_id"], 2, 2),
    ]
    assert all(0 < each["tokens"] <= each["budget"] and each["model"] for each in whole)
    pages, before = [], {}
    while True:
        page = calls(running, thread, limit=3, **before)
        pages.append([each["step"] for each in page["calls"]])
        if page["before"] is None:
            break
        before = {"before": page["before"]}
    steps = [each["step"] for each in whole]
    assert pages == [steps[1:], steps[:1]]
    assert [each["step"] for each in calls(running, thread, run=second["run_id"])["calls"]] == steps[2:]
    assert calls(running, thread, run="none")["calls"] == []


def test_a_call_shows_what_the_model_saw_and_what_is_new(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.answer("How many?")
    thread = asked["thread_id"]
    [first, second] = calls(running, thread)["calls"]
    question = running.history(thread)["messages"][0]
    seen = call(running, thread, second["step"])
    assert seen.items() >= second.items()
    assert [entry["role"] for entry in seen["entries"]] == ["user", "assistant", "tool"]
    assert (seen["entries"][0]["id"], seen["entries"][0]["text"]) == (question["id"], "How many?")
    assert seen["entries"][2]["call_id"] == running.history(thread)["steps"][asked["run_id"]][0]["call_id"]
    assert (seen["tokens"], seen["why_planned"]) == (sum(entry["tokens"] for entry in seen["entries"]), "")
    assert "list_tables" in seen["tools"] and seen["system"]
    assert sum(segment["tokens"] for segment in seen["segments"]) == seen["tokens"]
    difference = seen["difference"]
    assert (difference["step"], difference["same_tokens"]) == (first["step"], seen["entries"][0]["tokens"])
    assert [entry["id"] for entry in difference["entered"]] == [entry["id"] for entry in seen["entries"][1:]]
    assert (difference["left"], difference["changed"]) == ([], [])
    assert call(running, thread, first["step"])["difference"] is None
    back = call(running, thread, first["step"], against=second["step"])["difference"]
    assert [entry["id"] for entry in back["left"]] == [entry["id"] for entry in seen["entries"][1:]]


@pytest.mark.parametrize("path", ["calls/1", "calls/99", "calls/0?against=1"])
def test_a_step_that_is_no_call_of_the_model_has_no_view(serve: Any, path: str) -> None:
    running = serve(SCRIPT)
    thread = running.answer("a")["thread_id"]
    answer = running.client.get(f"/api/conversations/{thread}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "entry_not_found")


def test_a_thread_without_runs_has_no_calls(serve: Any, store_address: str) -> None:
    talked(store_address, "app")
    assert calls(serve(SCRIPT), "app") == {"thread_id": "app", "calls": [], "before": None}
