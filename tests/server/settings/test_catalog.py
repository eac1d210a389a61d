"""The catalog through the API: definitions, versions, and tools that are tried."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import define, define_clerk

from longthread.tools.catalog.definitions import power_of

pytestmark = pytest.mark.one_backend

SAYS = [{"finish": "Yes."}]
PARAMETERS_OF_FIND = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS: list[dict[str, object]] = [
    {"kind": "source", "name": "main", "address": "demo"},
    {
        "kind": "tool",
        "name": "find",
        "type": "query",
        "schema": {"name": "find_rockets", "parameters": PARAMETERS_OF_FIND},
        "implementation": {
            "database": "main",
            "sql_template": "SELECT count(*) AS n FROM rockets WHERE name LIKE '%{{name}}%'",
        },
    },
]


def test_an_agent_is_made_changed_switched_off_and_deleted(serve: Any) -> None:
    running = serve(SAYS)
    path = "/api/catalog/agents/clerk"
    made = running.client.put(path, json={"definition": {"system_prompt": "You write."}})
    assert (made.status_code, made.json()["action"]) == (200, "created"), made.text
    assert (
        running.client.put(path, json={"definition": {"system_prompt": "You write."}}).json()["action"] == "unchanged"
    )
    changed = running.client.put(
        path, json={"definition": {"system_prompt": "You edit.", "description": "改稿。"}}
    ).json()
    assert (changed["action"], changed["item"]["version"], changed["item"]["by"]) == ("changed", 2, "default")
    assert running.client.get(path).json() == changed["item"]
    assert running.client.get(path, params={"version": 1}).json()["definition"]["system_prompt"] == "You write."
    missing = running.client.get(path, params={"version": 9})
    assert (missing.status_code, missing.json()["code"]) == (404, "version_not_found")
    thread = running.answer("Hello?", agent="clerk")["thread_id"]
    off = running.client.patch(path, json={"is_active": False}).json()
    assert (off["item"]["version"], off["item"]["is_active"]) == (3, False)
    assert off["item"]["definition"]["description"] == "改稿。"
    assert running.client.post("/api/chat", json={"question": "More?", "agent": "clerk"}).status_code == 409
    assert "clerk" in [each["name"] for each in running.client.get("/api/catalog/agents").json()["items"]]
    used = running.client.delete(path)
    assert (used.status_code, used.json()["code"]) == (409, "definition_in_use")
    assert running.client.delete(path, params={"force": True}).status_code == 204
    assert running.client.get("/api/chat/history", params={"thread_id": thread}).status_code == 404
    told = running.client.get(f"{path}/versions").json()["versions"]
    assert [(each["version"], each["deleted"]) for each in told] == [(1, False), (2, False), (3, False), (4, True)]


PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}}


def asking(**more: object) -> dict[str, object]:
    return {
        "type": "api",
        "description": "Asks.",
        "schema": {"name": "asks", "parameters": PARAMETERS},
        "implementation": {"endpoint": "https://api.example/search", "body_template": {"q": "{{q}}"}, "method": "POST"}
        | more,
    }


MCP = {"url": "https://mcp.example/x", "tool_name": "x"}
POWERFUL: list[tuple[str, dict[str, object]]] = [
    ("code", {"type": "code", "implementation": {"code": "def execute(q=1):\n    return q"}}),
    ("program", {"type": "mcp", "implementation": {"command": "sh", "args": ["-c", "id"], "tool_name": "x"}}),
    ("secret", asking(headers={"Authorization": "Bearer ${API_KEY}"})),
    ("secret", asking(secrets=["API_KEY"])),
    ("secret", {"type": "mcp", "implementation": MCP | {"headers": {"X": "${API_KEY}"}}}),
    ("private", asking(allow_private=True)),
]


@pytest.mark.parametrize("url", [None, "", "https://mcp.example/x"])
def test_a_command_starts_a_program_whatever_stands_beside_it(url: str | None) -> None:
    assert power_of({"type": "mcp", "implementation": {"url": url, "command": "sh", "tool_name": "x"}}) == "program"


@pytest.mark.parametrize(("power", "definition"), POWERFUL)
def test_what_acts_as_the_servers_user_is_defined_on_the_command_line(
    serve: Any, store_address: str, power: str, definition: dict[str, Any]
) -> None:
    running, path = serve(SAYS), "/api/catalog/tools/strong"
    definition = {"schema": {"name": "strong", "parameters": PARAMETERS}} | definition
    for method, at in (("PUT", path), ("POST", f"{path}/run")):
        refused = running.client.request(method, at, json={"definition": definition})
        assert (refused.status_code, refused.json()["code"]) == (403, "tool_on_command_line"), refused.text
    assert running.client.get(path).status_code == 404
    define(store_address, {"kind": "tool", "name": "strong"} | definition)
    there = running.client.get(path).json()
    assert there["power"] == power
    told = running.client.put(path, json={"definition": there["definition"] | {"description": "Better said."}})
    assert told.json()["item"]["version"] == 2, told.text
    assert running.client.patch(path, json={"is_active": False}).json()["item"]["is_active"] is False
    other = there["definition"] | {"implementation": definition["implementation"] | {"timeout_seconds": 9}}
    if definition["type"] == "mcp":
        other["implementation"] = definition["implementation"] | {"retry_safe": True}
    changed = running.client.put(path, json={"definition": other})
    assert (changed.status_code, changed.json()["code"]) == (403, "tool_on_command_line"), changed.text
    named = running.client.put(
        "/api/catalog/tools/other", json={"definition": {**there["definition"], "name": "other"}}
    )
    assert named.status_code == 403


def test_a_tool_is_made_through_the_api_and_tried_before_it_is_stored(serve: Any, store_address: str) -> None:
    define(store_address, TOOLS[0])
    running = serve(SAYS)
    definition = {key: value for key, value in TOOLS[1].items() if key not in ("kind", "name")}
    path, given = "/api/catalog/tools/find", {"args": {"name": "Falcon"}}
    draft = running.client.post(f"{path}/run", json=given | {"definition": definition}).json()
    assert (draft["tool"], draft["observation"]["ok"]) == ("find_rockets", True), draft
    assert running.client.get(path).status_code == 404
    made = running.client.put(path, json={"definition": definition})
    assert (made.status_code, made.json()["action"]) == (200, "created"), made.text
    assert (made.json()["item"]["power"], made.json()["item"]["used_by"]) == (None, [])
    schemas = {
        each["name"]: each["definition"]["schema"]["parameters"]
        for each in running.client.get("/api/catalog/tools").json()["items"]
    }
    assert set(schemas["recall_memory"]["properties"]) >= {"query", "entry_id", "scope"}
    assert schemas["run_sql"]["required"] == ["sql"] and schemas["find"] == PARAMETERS_OF_FIND
    stored = running.client.post(f"{path}/run", json=given).json()
    assert stored["observation"]["data"]["rows"] == draft["observation"]["data"]["rows"]
    skill = running.client.put("/api/catalog/skills/rockets", json={"definition": {"tools": ["find"]}})
    assert skill.status_code == 200, skill.text
    assert running.client.get(path).json()["used_by"] == [{"kind": "skill", "name": "rockets"}]
    assert running.client.put("/api/catalog/tools/asks", json={"definition": asking()}).status_code == 200


def test_each_wrong_field_of_a_definition_is_named(serve: Any) -> None:
    running = serve(SAYS)
    config = {"temperature": 9, "max_steps": "x"}
    wrong = running.client.put("/api/catalog/agents/x", json={"definition": {"config": config, "skils": []}}).json()
    at = [each["at"].removeprefix("body.definition.") for each in wrong["errors"]]
    assert at == ["system_prompt", "config.temperature", "config.max_steps", "skils"]
    assert [each["kind"] for each in wrong["errors"]] == ["missing", "not_number", "not_number", "unknown_field"]
    assert (wrong["code"], wrong["errors"][0]["message"]) == ("catalog_invalid", "it is missing. Give a text.")
    names = {"system_prompt": "x", "skills": ["nope"], "config": {"source": "nowhere"}}
    wrong = running.client.put("/api/catalog/agents/x", json={"definition": names}).json()
    assert [each["at"] for each in wrong["errors"]] == ["body.definition.skills[0]", "body.definition.config.source"]
    assert {each["kind"] for each in wrong["errors"]} == {"unknown_name"}
    query = {"type": "query", "implementation": {"database": "main", "sql_template": "DROP TABLE t"}}
    wrong = running.client.put("/api/catalog/tools/x", json={"definition": query | {"schema": {"name": "x"}}}).json()
    assert [each["at"] for each in wrong["errors"]] == ["body.definition.implementation"]


def test_a_tool_is_tried_without_a_model_and_leaves_no_conversation(serve: Any, store_address: str) -> None:
    define(store_address, *TOOLS)
    define_clerk(store_address)
    running = serve(SAYS)
    found = running.client.post("/api/catalog/tools/find/run", json={"args": {"name": "Falcon"}}).json()
    assert (found["tool"], found["observation"]["ok"]) == ("find_rockets", True)
    wrong = running.client.post("/api/catalog/tools/find/run", json={"args": {"nam": 1}}).json()["observation"]
    assert (wrong["ok"], wrong["error"]["type"]) == (False, "arguments_invalid")
    sample = running.client.post(
        "/api/catalog/tools/run_sql/run", json={"args": {"sql": "SELECT 1 AS n"}, "source": "demo"}
    )
    assert sample.json()["observation"]["data"]["rows"] == [[1]]
    mail = "/api/catalog/tools/send_mail/run"
    asked = running.client.post(mail, json={"args": {"to": "ada"}})
    assert (asked.status_code, asked.json()["code"]) == (422, "invalid_input")
    off = running.client.patch("/api/catalog/tools/find", json={"is_active": False}).json()
    assert off["item"]["is_active"] is False
    refused = running.client.post("/api/catalog/tools/find/run")
    assert (refused.status_code, refused.json()["code"]) == (409, "tool_invalid")
    assert running.client.get("/api/conversations").json()["conversations"] == []


WRONG: list[tuple[str, str, Any, int]] = [
    ("PUT", "agents/x", {"definition": {}}, 422),
    ("PUT", "agents/x", {"definition": {"system_prompt": 7}}, 422),
    ("PUT", "agents/x", {"definition": {"system_prompt": "a\0b"}}, 422),
    ("PUT", "agents/x", {"definition": {"system_prompt": "x", "config": {"max_steps": 10**30}}}, 422),
    ("PUT", "agents/x", {"definition": {"system_prompt": "x", "more": 1}}, 422),
    ("PUT", "agents/x", {"definition": {"system_prompt": "x", "name": "y"}}, 422),
    ("PUT", "agents/x", {"definition": []}, 422),
    ("PUT", "agents/analyst", {"definition": {"system_prompt": "x"}}, 422),
    ("PUT", "agents/%00", {"definition": {"system_prompt": "x"}}, 422),
    ("PUT", "tools/x", {"definition": {}}, 422),
    ("PUT", "tools/run_sql", {"definition": {"type": "query", "implementation": {}}}, 422),
    ("POST", "tools/x/run", {"definition": {"type": "query"}}, 422),
    ("POST", "tools/x/run", {"definition": {"name": "y"}}, 422),
    ("PATCH", "agents/analyst", {"is_active": False}, 409),
    ("PUT", "tools/chart", {"definition": {"type": "builtin"}}, 422),
    ("PATCH", "agents/x", {"is_active": 0}, 422),
    ("PATCH", "agents/none", {"is_active": False}, 404),
    ("PATCH", "skills/x", {"is_active": False}, 422),
    ("DELETE", "agents/analyst", None, 409),
    ("DELETE", "tools/none", None, 404),
    ("GET", "agents/none", None, 404),
    ("GET", "agents/none/versions", None, 404),
    ("GET", "agents/analyst?version=99999999999999999999", None, 422),
    ("GET", "sources", None, 422),
    ("POST", "tools/none/run", {}, 404),
    ("POST", "tools/run_sql/run", {"args": []}, 422),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), WRONG)
def test_what_is_wrong_is_refused(serve: Any, method: str, path: str, body: Any, status: int) -> None:
    answer = serve(SAYS).client.request(method, f"/api/catalog/{path}", json=body)
    assert answer.status_code == status, answer.text


def test_other_machines_see_and_change_nothing(serve: Any) -> None:
    running = serve(SAYS, no_login=True)
    running.client.headers["X-Forwarded-For"] = "198.51.100.9"
    for method, path, body in (
        ("GET", "agents", None),
        ("GET", "agents/analyst", None),
        ("GET", "agents/analyst/versions", None),
        ("PUT", "agents/x", {"definition": {"system_prompt": "x"}}),
        ("PATCH", "agents/x", {"is_active": True}),
        ("DELETE", "agents/x", None),
        ("POST", "tools/run_sql/run", {}),
        ("PUT", "tools/x", {"definition": asking()}),
    ):
        answer = running.client.request(method, f"/api/catalog/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "settings_not_allowed"), path
