"""Calls that wait for approval, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.server.apps import define_clerk

pytestmark = pytest.mark.one_backend

MAILS = [
    [{"thought": "", "action": "send_mail", "args": {"to": who}} for who in ("ada", "eve")],
    {"finish": "Both were told."},
]


def told(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def asked(running: Any) -> tuple[dict[str, str], list[str]]:
    """A run that waits, and the ids of its calls."""
    given = running.ask("Write to both.", agent="clerk")
    events = told(running.client.get(given["events"]).text)
    assert [event["type"] for event in events][-1] == "RUN_FINISHED"
    asks = events[-1]["outcome"]["interrupts"]
    assert [each["metadata"]["longthread"]["args"] for each in asks] == [{"to": "ada"}, {"to": "eve"}]
    return given, [each["id"] for each in asks]


def test_calls_are_decided_over_http(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve(MAILS)
    given, [ada, eve] = asked(running)
    path = f"/api/conversations/{given['thread_id']}/approvals"
    found = running.client.get(path).json()
    assert ([call["id"] for call in found["pending"]], found["decided"]) == ([ada, eve], [])
    assert running.client.get(f"/api/threads/{given['thread_id']}/approvals").json() == found
    [listed] = running.client.get("/api/conversations").json()["conversations"]
    history = running.history(given["thread_id"])
    assert (listed["status"], history["run"]["status"]) == ("waiting", "waiting")
    assert [call["id"] for call in history["run"]["outcome"]["calls"]] == [ada, eve]
    last = running.client.get(given["events"], headers={"Last-Event-ID": "99"})
    assert last.status_code == 204, "a browser that has read all connects no more"

    def decide(decisions: Any) -> Any:
        return running.client.post(path, json={"decisions": decisions})

    bad = {"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": 5}}}
    for decisions, status, code in (
        ({eve: {"type": "approve"}, "call_x": {"type": "approve"}}, 409, "not_pending"),
        ({ada: bad, eve: {"type": "approve"}}, 422, "arguments_invalid"),
        ({ada: {"type": "perhaps"}}, 422, "invalid_input"),
        ({}, 422, "invalid_input"),
    ):
        answer = decide(decisions)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    resumed = running.client.post(f"/api/conversations/{given['thread_id']}/resume")
    assert (resumed.status_code, resumed.json()["code"]) == (409, "run_waiting")

    answer = decide({ada: {"type": "reject", "message": "No."}})
    assert answer.status_code == 200
    assert [call["id"] for call in answer.json()["pending"]] == [eve]
    assert [(call["decision"], call["by"]) for call in answer.json()["decided"]] == [("reject", "default")]
    assert decide({ada: {"type": "approve"}}).status_code == 409
    answer = decide({eve: {"type": "approve"}})
    assert (answer.status_code, answer.json()["run_id"]) == (202, given["run_id"])
    events = told(running.client.get(given["events"]).text)
    kinds = [event["type"] for event in events]
    assert kinds.count("RUN_STARTED") == kinds.count("RUN_FINISHED") == 2
    assert [json.loads(each["content"])["ok"] for each in events if each["type"] == "TOOL_CALL_RESULT"] == [False, True]
    assert events[-1]["result"]["answer"] == "Both were told."
    assert running.client.get("/api/conversations/none/approvals").status_code == 404
    assert (
        running.client.post(
            "/api/conversations/none/approvals", json={"decisions": {eve: {"type": "approve"}}}
        ).status_code
        == 404
    )


def test_a_run_that_waits_is_stopped_over_http(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve(MAILS)
    given, calls = asked(running)
    path = f"/api/conversations/{given['thread_id']}"
    for _ in range(2):  # what has stopped stays so
        stopped = running.client.post(f"{path}/stop")
        assert (stopped.status_code, stopped.json()["run"]["status"]) == (200, "paused")
        assert stopped.json()["run"]["outcome"]["reason"] == "stopped"
    assert running.client.get(f"{path}/approvals").json()["pending"] == []
    events = told(running.client.get(given["events"]).text)
    assert events[-1]["outcome"]["type"] == "cancelled"
    late = running.client.post(f"{path}/approvals", json={"decisions": {calls[0]: {"type": "approve"}}})
    assert (late.status_code, late.json()["code"]) == (409, "not_pending")
    again = running.client.post(f"{path}/resume")
    assert again.status_code == 202
    assert told(running.client.get(again.json()["events"]).text)[-1]["result"]["answer"] == "Both were told."
