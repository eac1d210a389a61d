"""Agents over HTTP: which there are, how their conversations hang together, and their charts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import CLERK, EDITOR, HELPER, define, played

from longthread.model.memory import ANALYST

pytestmark = pytest.mark.one_backend

SHOP: dict[str, object] = {"kind": "source", "name": "航天", "address": "demo"}
OWN: dict[str, object] = {
    "kind": "agent",
    "name": "own",
    "description": "Asks its own source.",
    "system_prompt": "You ask.",
    "skills": ["data"],
    "config": {"source": "航天"},
}
OFF: dict[str, object] = {"kind": "agent", "name": "off", "system_prompt": "You are off.", "is_active": False}


def test_the_agents_that_can_be_asked_are_listed(serve: Any, store_address: str) -> None:
    define(store_address, *CLERK, HELPER, EDITOR, SHOP, OWN, OFF)
    found = serve(played).client.get("/api/agents").json()["agents"]
    assert [each["name"] for each in found] == ["analyst", "assistant", "clerk", "editor", "own", "研究员"]
    assert found[0]["id"] == ANALYST
    assert [each["name"] for each in found if each["asks_source"]] == ["analyst", "editor", "own"]
    assert [each["source"] for each in found] == [None, None, None, None, "航天", None]
    assert found[-1].keys() == {"id", "name", "description", "asks_source", "source", "model"}


def test_a_conversation_says_where_it_stands(serve: Any, store_address: str) -> None:
    define(store_address, *CLERK, HELPER, EDITOR)
    running = serve(played)
    thread = running.answer("发射了多少次？", agent="editor")["thread_id"]
    above = running.history(thread)
    assert (above["agent"]["name"], above["parent"]) == ("editor", None)
    assert (above["run"]["agent"]["name"], above["run"]["agent"]["version"]) == ("editor", 1)
    asked = {each["agent"]: each for each in above["run"]["asked"]}  # they begin at once, whichever is first
    assert {name: each["status"] for name, each in asked.items()} == {"研究员": "finished", "clerk": "waiting"}
    helper, clerk = asked["研究员"], asked["clerk"]
    assert {step["call_id"] for step in above["steps"][above["run"]["id"]]} == {helper["call_id"], clerk["call_id"]}
    assert above["waiting_below"] == [{"id": clerk["thread_id"], "label": "给 Ada 写信。", "agent": "clerk"}]
    [listed] = running.client.get("/api/conversations").json()["conversations"]
    assert (listed["status"], listed["waiting_below"]) == ("finished", [clerk["thread_id"]])
    assert listed["agent"]["name"] == "editor"
    below = running.history(clerk["thread_id"])
    assert (below["agent"]["name"], below["parent"]) == ("clerk", {"id": thread, "label": "发射了多少次？"})
    assert (below["run"]["id"], below["run"]["asked"], below["waiting_below"]) == (clerk["run_id"], [], [])
    [call] = below["run"]["outcome"]["calls"]
    path = f"/api/conversations/{clerk['thread_id']}/approvals"
    answer = running.client.post(path, json={"decisions": {call["id"]: {"type": "approve"}}})
    assert running.client.get(answer.json()["events"]).status_code == 200
    after = running.history(thread)
    assert (after["waiting_below"], {each["status"] for each in after["run"]["asked"]}) == ([], {"finished"})


def test_a_chart_comes_with_its_rows(serve: Any) -> None:
    running = serve(played)
    asked = running.answer("各国发射了多少次？")
    query, chart, failed = running.history(asked["thread_id"])["steps"][asked["run_id"]]
    path = f"/api/conversations/{asked['thread_id']}/steps"
    found = running.client.get(f"{path}/{chart['step']}/chart").json()
    assert found["data"]["values"][2] == {"国家": "俄罗斯联邦", "次数": 18}
    assert found | {"data": {"name": "q1"}} == chart["observation"]["data"]["spec"]
    assert failed["ok"] is False
    for step in (query, failed, {"step": 999}):
        answer = running.client.get(f"{path}/{step['step']}/chart")
        assert (answer.status_code, answer.json()["code"]) == (404, "entry_not_found")
    other = running.client.get(f"/api/conversations/other/steps/{chart['step']}/chart")
    assert other.status_code == 404
