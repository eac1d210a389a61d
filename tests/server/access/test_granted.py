"""Who sees, uses and changes what was granted: the lists, the catalog and questions, over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.server.access.team import Team, code_of, team_of
from tests.server.conftest import Serve

from longthread.server.routes import definitions, models
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

TOOL = {
    "type": "query",
    "schema": {"name": "ones", "description": "One.", "parameters": {"type": "object", "properties": {}}},
    "implementation": {"database": "sales", "sql_template": "SELECT 1 AS one"},
}
AGENT = {"system_prompt": "You are a clerk.", "skills": ["counting"]}
SKILL = {"tools": ["ones"], "config": {"instructions": "Count."}}


@pytest.fixture
def team(serve: Serve, shop: str) -> Iterator[Team]:
    with team_of(serve(["An answer."] * 4, auth="login")) as team:
        made = team.admin.post("/api/sources", json={"name": "sales", "address": shop})
        assert made.status_code == 201, made.text
        for path, body in {"tools/ones": TOOL, "skills/counting": SKILL, "agents/clerk": AGENT}.items():
            put(team.admin, path, body)
        yield team


def put(client: httpx.Client, path: str, body: Any) -> dict[str, Any]:
    answer = client.put(f"/api/catalog/{path}", json={"definition": body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["item"]
    return found


def grant(team: Team, kind: str, item: str, user: str | None, may: str = "use") -> None:
    to = {"to_kind": "everyone", "to_id": ""} if user is None else {"to_kind": "user", "to_id": user}
    answer = team.admin.put("/api/admin/grants", json={"kind": kind, "item": item, "may": may, **to})
    assert answer.status_code == 200, answer.text


def ungrant(team: Team, kind: str, item: str, user: str | None) -> httpx.Response:
    to = {"to_kind": "everyone"} if user is None else {"to_kind": "user", "to_id": user}
    return team.admin.delete("/api/admin/grants", params={"kind": kind, "item": item, **to})


def me(client: httpx.Client) -> str:
    return str(client.get("/api/me").json()["id"])


def names(client: httpx.Client, path: str) -> list[str]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    [found] = [each for each in answer.json().values() if isinstance(each, list) and each][:1]
    return [each["name"] for each in found]


CATALOG = {
    "agent": ("/api/catalog/agents", "clerk"),
    "skill": ("/api/catalog/skills", "counting"),
    "tool": ("/api/catalog/tools", "ones"),
}


@pytest.mark.parametrize("kind", CATALOG)
def test_a_definition_is_listed_and_shown_to_whom_it_was_granted(team: Team, kind: str) -> None:
    path, name = CATALOG[kind]
    bob = team.join("Bob")
    item = team.admin.get(f"{path}/{name}").json()["id"]
    unknown = bob.get(f"{path}/nothing")
    assert name not in names(bob, path)
    for way in (name, item):
        hidden = bob.get(f"{path}/{way}")
        assert hidden.status_code == 404
        assert hidden.text.replace(way, "nothing") == unknown.text
        assert bob.get(f"{path}/{way}/versions").status_code == 404
    grant(team, kind, item, me(bob))
    assert name in names(bob, path)
    assert bob.get(f"{path}/{name}").json()["id"] == item
    assert [each["version"] for each in bob.get(f"{path}/{name}/versions").json()["versions"]] == [1]
    changed = bob.put(f"{path}/{name}", json={"definition": {"agent": AGENT, "skill": SKILL, "tool": TOOL}[kind] | {}})
    assert changed.status_code in (200, 403)  # equal to what is there: nothing changes
    assert code_of(bob.delete(f"{path}/{name}")) == (403, "not_granted")
    assert ungrant(team, kind, item, me(bob)).status_code == 204
    assert bob.get(f"{path}/{name}").status_code == 404


def test_agents_and_sources_are_listed_to_whom_they_were_granted(team: Team) -> None:
    bob = team.join("Bob")
    assert names(bob, "/api/agents") == ["analyst", "assistant"]
    assert names(bob, "/api/sources") == ["demo"]
    clerk = team.admin.get("/api/catalog/agents/clerk").json()["id"]
    sales = item_of(team, "source", "sales")
    grant(team, "agent", clerk, None)
    grant(team, "source", sales, None)
    assert names(bob, "/api/agents") == ["analyst", "assistant", "clerk"]
    listed = bob.get("/api/sources").json()["sources"]
    assert [(each["name"], each["address"]) for each in listed] == [("demo", "demo"), ("sales", None)]
    assert bob.get("/api/sources/sales/preview").json()["of"] == 2
    assert ungrant(team, "source", "demo", None).status_code == 204
    assert names(bob, "/api/sources") == ["sales"]
    hidden, unknown = bob.get("/api/sources/demo/preview"), bob.get("/api/sources/nothing/preview")
    assert (hidden.status_code, unknown.status_code) == (403, 404)


def item_of(team: Team, kind: str, name: str) -> str:
    """The id of a definition that no route shows: that of the store."""
    import asyncio

    from longthread import Catalog

    async def find() -> str:
        async with open_store(team.running.server._app.state.served.analyst.settings.database) as store:
            return (await Catalog(store).find(kind, name)).id  # type: ignore[arg-type]

    return asyncio.run(find())


def test_a_question_asks_what_was_granted(team: Team) -> None:
    bob = team.join("Bob")
    said = {}
    for name in ("sales", "nothing"):
        answer = bob.post("/api/chat", json={"question": "?", "source": name})
        said[name] = (answer.status_code, answer.text.replace(name, "NAME"))
    assert said["sales"] == said["nothing"]
    assert said["sales"][0] == 403
    assert code_of(bob.post("/api/chat", json={"question": "?", "source": "/etc/passwd"})) == (
        403,
        "source_not_allowed",
    )
    assert code_of(bob.post("/api/chat", json={"question": "?", "model": "openai:x"})) == (403, "not_granted")
    assert code_of(bob.post("/api/chat", json={"question": "?", "agent": "clerk"})) == (404, "definition_not_found")
    grant(team, "source", item_of(team, "source", "sales"), me(bob))
    assert bob.post("/api/chat", json={"question": "?", "source": "sales"}).status_code == 202


def test_a_builder_changes_what_he_made_and_what_he_may_edit(team: Team) -> None:
    bob, eve = team.join("Bob", role="builder"), team.join("Eve", role="builder")
    made = put(bob, "agents/helper", {"system_prompt": "You help."})
    assert made["name"] == "helper"
    assert put(bob, "agents/helper", {"system_prompt": "You help more."})["version"] == 2
    assert eve.get("/api/catalog/agents/helper").status_code == 404
    taken = eve.put("/api/catalog/agents/helper", json={"definition": {"system_prompt": "Mine."}})
    assert code_of(taken) == (403, "not_granted")
    grants = team.admin.get("/api/admin/grants", params={"kind": "agent", "item": made["id"]}).json()["grants"]
    assert [(each["to_name"], each["may"], each["granted_by"]) for each in grants] == [("bob", "edit", me(bob))]
    grant(team, "agent", made["id"], me(eve), "edit")
    assert eve.patch("/api/catalog/agents/helper", json={"is_active": False}).status_code == 200
    assert eve.delete("/api/catalog/agents/helper").status_code == 204
    assert team.admin.get("/api/admin/grants", params={"item": made["id"]}).json()["grants"] == []
    member = team.join("Max")
    refused = member.put("/api/catalog/agents/mine", json={"definition": {"system_prompt": "Mine."}})
    assert code_of(refused) == (403, "role_missing")
    power = {**TOOL, "type": "code", "implementation": {"code": "def execute():\n    return 1"}}
    refused = bob.put("/api/catalog/tools/power", json={"definition": power})
    assert code_of(refused) == (403, "tool_on_command_line")


def test_an_administrators_definition_is_for_whom_it_is_granted(team: Team) -> None:
    bob = team.join("Bob", role="builder")
    tried = bob.post("/api/catalog/tools/ones/run", json={})
    assert code_of(tried) == (404, "definition_not_found")
    grant(team, "tool", team.admin.get("/api/catalog/tools/ones").json()["id"], me(bob))
    tried = bob.post("/api/catalog/tools/ones/run", json={}).json()
    assert tried["observation"]["error"]["type"] == "not_granted", "its source is none of the builder's"
    grant(team, "source", item_of(team, "source", "sales"), me(bob))
    assert bob.post("/api/catalog/tools/ones/run", json={}).json()["observation"]["data"]["rows"] == [[1]]


def test_administrators_alone_manage_grants(team: Team) -> None:
    bob = team.join("Bob", role="builder")
    about = {"kind": "source", "item": "demo", "to_kind": "everyone", "to_id": "", "may": "use"}
    assert code_of(bob.get("/api/admin/grants")) == (403, "role_missing")
    assert code_of(bob.put("/api/admin/grants", json=about)) == (403, "role_missing")
    assert bob.delete("/api/admin/grants", params=about).status_code == 403
    assert code_of(team.admin.put("/api/admin/grants", json={**about, "to_kind": "user", "to_id": "x"})) == (
        404,
        "user_not_found",
    )
    assert team.admin.delete("/api/admin/grants", params={**about, "item": "none"}).status_code == 404
    shown = team.admin.get("/api/admin/grants", params={"kind": "source"}).json()["grants"]
    assert [(each["item"], each["to_kind"], each["granted_by"]) for each in shown] == [("demo", "everyone", "default")]
    assert json.loads(json.dumps(shown))[0]["granted_at"] is None


def test_models_are_listed_to_whom_they_were_granted(team: Team) -> None:
    bob = team.join("Bob")
    before = names(bob, "/api/models")
    assert "other:model" not in before
    grant(team, "model", "other:model", me(bob))
    grant(team, "model", "openai:*", me(bob))
    assert names(bob, "/api/models") == [*before, "other:model"]
    found = bob.get("/api/models").json()
    assert (found["servers"], found["keys_allowed"]) == ([], True)
    ungrant(team, "model", "demo", None)
    assert "demo" not in names(bob, "/api/models")
    assert code_of(bob.post("/api/chat", json={"question": "?", "model": "demo"})) == (403, "not_granted")


def test_a_tool_that_is_not_granted_is_not_tried_as_a_draft(team: Team) -> None:
    bob = team.join("Bob", role="builder")
    apply(team, CODE_TOOL)
    power = team.admin.get("/api/catalog/tools/power").json()
    written = power["definition"]
    for given in (written, {**written, "description": "Changed."}, {**written, "id": power["id"]}):
        tried = bob.post("/api/catalog/tools/power/run", json={"definition": given})
        assert code_of(tried) == (403, "not_granted")
    ones = team.admin.get("/api/catalog/tools/ones").json()["definition"]
    assert code_of(bob.post("/api/catalog/tools/ones/run", json={"definition": ones})) == (403, "not_granted")
    assert code_of(bob.put("/api/catalog/tools/ones", json={"definition": ones})) == (403, "not_granted")
    grant(team, "tool", power["id"], me(bob), "edit")
    refused = bob.post("/api/catalog/tools/power/run", json={"definition": written})
    assert code_of(refused) == (403, "tool_on_command_line"), "a draft has no power"
    assert bob.post("/api/catalog/tools/power/run", json={}).json()["observation"]["data"]["result"] == 1


CODE_TOOL: dict[str, Any] = {
    "kind": "tool",
    "name": "power",
    "type": "code",
    "schema": {"name": "power", "description": "One.", "parameters": {"type": "object", "properties": {}}},
    "implementation": {"code": "def execute():\n    return 1"},
}


def apply(team: Team, item: dict[str, Any]) -> None:
    """Define something on the command line."""
    import asyncio

    from longthread import Catalog

    async def define() -> None:
        async with open_store(team.running.server._app.state.served.analyst.settings.database) as store:
            await Catalog(store).apply([item])

    asyncio.run(define())


def test_a_builder_deletes_no_conversation_of_others(team: Team) -> None:
    bob, eve = team.join("Bob", role="builder"), team.join("Eve")
    made = put(bob, "agents/helper", {"system_prompt": "You help."})
    grant(team, "agent", made["id"], me(eve))
    asked = eve.post("/api/chat", json={"question": "?", "agent": "helper"}).json()
    eve.get(asked["events"])
    refused = bob.delete("/api/catalog/agents/helper", params={"force": True})
    assert code_of(refused) == (403, "role_missing")
    assert eve.get("/api/chat/history", params={"thread_id": asked["thread_id"]}).status_code == 200
    put(bob, "agents/other", {"system_prompt": "You help."})
    own = bob.post("/api/chat", json={"question": "?", "agent": "other"}).json()
    bob.get(own["events"])
    assert bob.delete("/api/catalog/agents/other", params={"force": True}).status_code == 204
    assert team.admin.delete("/api/catalog/agents/helper", params={"force": True}).status_code == 204


def test_a_key_with_limits_is_no_administrators(team: Team, shop: str) -> None:
    scopes = ["read", "sources", "catalog", "chat"]
    about = {"name": "narrow", "scopes": scopes, "sources": ["demo"]}
    narrow, whole = (
        team.admin.post("/api/me/keys", json=each).json()["key"] for each in (about, about | {"sources": None})
    )
    client = team.visitor()
    source = {"name": "again", "address": shop}
    for key, wanted in ((narrow, (403, "role_missing")), (whole, None)):
        client.headers["Authorization"] = f"Bearer {key}"
        answers = [
            client.post("/api/sources", json=source),
            client.post("/api/uploads", params={"name": "a.csv"}, content=b"n\n1\n"),
            client.delete("/api/sources/again"),
        ]
        assert all(code_of(each) == wanted if wanted else each.is_success for each in answers), answers
    client.headers["Authorization"] = f"Bearer {narrow}"
    assert [each["name"] for each in client.get("/api/sources").json()["sources"]] == ["demo"]
    assert client.post("/api/chat", json={"question": "?", "source": shop}).status_code == 403


def test_a_source_is_opened_for_whom_may_teach_it(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = team.join("Bob", role="builder")
    grant(team, "source", item_of(team, "source", "sales"), me(bob))
    opened = []
    monkeypatch.setattr(definitions, "_find_wrong_sql", lambda *given: opened.append(given))
    terms = {"terms": [{"name": "big", "sql": "amount > 10"}]}
    for name in ("sales", "demo"):
        refused = bob.patch(f"/api/sources/{name}/terms", json=terms)
        assert refused.status_code == 403, refused.text
    assert opened == []


def test_a_grant_is_taken_back_by_the_name_it_was_made_by(team: Team) -> None:
    bob = team.join("Bob")
    grant(team, "source", "sales", me(bob))
    assert ungrant(team, "source", "sales", me(bob)).status_code == 204
    assert names(bob, "/api/sources") == ["demo"]
    assert code_of(ungrant(team, "source", "sales", me(bob))) == (404, "grant_not_found")
    assert code_of(ungrant(team, "source", "nothing", me(bob))) == (404, "grant_not_found")


def test_a_builder_names_only_what_he_may_use(team: Team) -> None:
    bob = team.join("Bob", role="builder")
    tool = {**TOOL, "schema": {**TOOL["schema"], "name": "twos"}}
    given: dict[str, Any] = {
        "tools/twos": lambda name: {**tool, "implementation": {"database": name, "sql_template": "SELECT 2 AS two"}},
        "skills/own": lambda name: {"tools": [name], "config": {"instructions": "Count."}},
        "agents/own": lambda name: {"system_prompt": "You help.", "skills": [name]},
        "agents/over": lambda name: {"system_prompt": "You help.", "sub_agents": [name]},
        "agents/asks": lambda name: {"system_prompt": "You help.", "config": {"source": name}},
    }
    hidden = {"tools/twos": "sales", "skills/own": "ones", "agents/own": "counting", "agents/over": "clerk"}
    hidden["agents/asks"] = "sales"
    for path, make in given.items():
        name, texts = hidden[path], []
        for each in (name, "nothing"):
            refused = bob.put(f"/api/catalog/{path}", json={"definition": make(each)})
            assert code_of(refused) == (422, "catalog_invalid")
            texts.append(refused.text.replace(each, "NAME"))
        assert texts[0] == texts[1]
        assert not any(each in texts[1] for each in hidden.values())
    grant(team, "source", "sales", me(bob))
    put(bob, "tools/twos", given["tools/twos"]("sales"))
    ungrant(team, "source", "sales", me(bob))
    renamed = {**given["tools/twos"]("sales"), "description": "Two."}
    assert bob.put("/api/catalog/tools/twos", json={"definition": renamed}).status_code != 403, "it was named before"


def test_no_error_names_agents_that_are_not_granted(team: Team) -> None:
    bob = team.join("Bob")
    for ask in (
        lambda name: bob.get("/api/recall", params={"q": "x", "agent": name}),
        lambda name: bob.post("/api/memories", json={"content": "x", "agent": name}),
    ):
        hidden, unknown = ask("clerk"), ask("nothing")
        assert (hidden.status_code, unknown.status_code) == (404, 404)
        assert hidden.text.replace("clerk", "NAME") == unknown.text.replace("nothing", "NAME")
        assert "clerk" not in unknown.text


def test_a_user_keeps_keys_of_providers_at_their_addresses(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    async def list_models(provider: str, key: Any, url: str) -> list[str]:
        asked.append((provider, None if key is None else key.get_secret_value(), url))
        return [f"{provider}:big"]

    monkeypatch.setattr(models, "models_of", list_models)
    bob, eve = team.join("Bob"), team.join("Eve")
    body = {"key": "sk-of-bob", "check": False}
    saved = bob.put("/api/models/keys/anthropic", json=body)
    assert saved.status_code == 200, saved.text
    assert "anthropic:big" in names(bob, "/api/models")
    assert asked == [("anthropic", "sk-of-bob", "https://api.anthropic.com")]
    of_bob = {each["provider"]: each for each in bob.get("/api/models").json()["providers"]}
    assert (of_bob["anthropic"]["key"], of_bob["openai"]["connected"]) == ("stored", False)
    assert "ollama" not in of_bob
    assert "anthropic:big" not in names(eve, "/api/models")
    for provider, url in (("own:mine", "http://127.0.0.1:1/v1"), ("anthropic", "http://127.0.0.1:1")):
        given = {"key": "k", "url": url}
        for answer in (
            bob.put(f"/api/models/keys/{provider}", json={**given, "check": False}),
            bob.post(f"/api/models/keys/{provider}/check", json=given),
        ):
            assert code_of(answer) == (403, "role_missing"), (provider, url)
    assert code_of(eve.post("/api/models/keys/anthropic/check", json={})) == (404, "key_not_found")
    assert code_of(eve.delete("/api/models/keys/anthropic")) == (404, "key_not_found")
    assert bob.delete("/api/models/keys/anthropic").status_code == 204
    assert "anthropic:big" not in names(bob, "/api/models")
