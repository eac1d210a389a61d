"""Settings: agents, skills and tools that are made, tried, changed and deleted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import define
from tests.web.conftest import looked_at

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "Yes."}]
SOURCE: dict[str, object] = {"kind": "source", "name": "space", "address": "demo"}
AGENT: dict[str, object] = {
    "kind": "agent",
    "name": "clerk",
    "system_prompt": "You write.",
    "config": {"max_steps": 8, "timeout_seconds": 30},
}
PARAMETERS = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "limit": {"type": "integer", "default": 2}}}'
)
SQL = "SELECT name FROM rockets WHERE name LIKE '{{name}}%' ORDER BY name LIMIT {{limit}}"


def test_a_tool_is_tried_before_it_is_stored_then_given_to_a_skill_and_deleted(
    serve: Any, open_page: Any, store_address: str
) -> None:
    define(store_address, SOURCE)
    running = serve(SCRIPT)
    page = open_page(running, "/settings/tools", quiet=False)
    page.get_by_role("link", name="New tool").click()
    page.get_by_label("Name", exact=True).fill("rockets of")
    page.get_by_label("Name for the model").fill("rockets_of")
    page.get_by_label("Arguments, as JSON Schema").fill("{")
    page.get_by_text("This is not valid JSON.").wait_for()
    assert page.get_by_role("button", name="Create").is_disabled()
    page.get_by_label("Arguments, as JSON Schema").fill(PARAMETERS)
    source = page.get_by_label("Source", exact=True)
    source.select_option(label="space")
    page.get_by_label("SQL").fill("DROP TABLE rockets")
    page.get_by_role("button", name="Create").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "implementation" in alert.inner_text()
    assert page.locator("#implementation-wrong").inner_text().startswith("its `sql_template` would not be run")
    page.get_by_label("SQL").fill(SQL)
    page.locator("#implementation-wrong").wait_for(state="detached")
    # It is tried as it stands there.
    page.get_by_label("name", exact=True).fill("Falcon")
    page.get_by_role("button", name="Call").click()
    cells = page.get_by_role("status", name="Result").locator("td")
    cells.first.wait_for()
    assert len(cells.all_inner_texts()) == 2 and all(cell.startswith("Falcon") for cell in cells.all_inner_texts())
    looked_at(page, "tool-tried")
    assert running.client.get("/api/catalog/tools/rockets%20of").status_code == 404
    page.get_by_role("button", name="JSON").click()
    page.get_by_role("textbox", name="Arguments", exact=True).fill('{"limit": "many"}')
    page.get_by_role("button", name="Call").click()
    page.get_by_text("The call failed").wait_for()
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="rockets of").wait_for()
    page.wait_for_url("**/settings/tools/rockets%20of")
    stored = running.client.get("/api/catalog/tools/rockets%20of").json()["definition"]
    assert stored["implementation"] == {"type": "query", "database": "space", "sql_template": SQL}
    page.goto(f"{running.url}/settings/skills?new")
    page.get_by_label("Name", exact=True).fill("rocketry")
    page.get_by_label("Trigger words").fill("rocket, 火箭，launch")
    page.get_by_role("checkbox", name="rockets of").check()
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/settings/skills/rocketry")
    skill = running.client.get("/api/catalog/skills/rocketry").json()["definition"]
    assert (skill["tools"], skill["trigger_keywords"]) == (["rockets of"], ["rocket", "火箭", "launch"])
    page.goto(f"{running.url}/settings/tools/rockets%20of")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_text("Used by rocketry: it is removed there, too").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/settings/tools")
    assert running.client.get("/api/catalog/skills/rocketry").json()["definition"]["tools"] == []


def test_the_sample_data_is_offered_to_a_tool_and_an_agent(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/settings/tools?new")
    source = page.get_by_label("Source", exact=True)
    source.select_option(label="demo data: will be added to the sources")
    page.wait_for_function("() => [...document.querySelectorAll('select')].some((each) => each.value === 'sample')")
    assert "demo" in [each["address"] for each in running.client.get("/api/sources").json()["sources"]]
    page.get_by_label("Name", exact=True).fill("all")
    page.get_by_label("Name for the model").fill("all_rockets")
    page.get_by_label("SQL").fill("SELECT name FROM rockets LIMIT 1")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/settings/tools/all")
    assert running.client.get("/api/catalog/tools/all").json()["definition"]["implementation"]["database"] == "sample"
    page.goto(f"{running.url}/settings/agents?new")
    source = page.get_by_label("Source", exact=True)
    source.locator("option", has_text="sample").wait_for(state="attached")
    assert source.locator("option").all_inner_texts() == ["Chosen with the question", "sample"]


def test_what_is_not_saved_is_not_left_unasked_and_a_wrong_field_is_named(
    serve: Any, open_page: Any, store_address: str
) -> None:
    define(store_address, AGENT)
    running = serve(SCRIPT)
    page = open_page(running, "/settings/agents", quiet=False)
    page.get_by_role("link", name="clerk").click()
    prompt = page.get_by_label("Instructions")
    prompt.fill("You edit.")
    page.get_by_role("link", name="New conversation").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep editing").click()
    page.go_back()  # also on the browser's way back
    page.get_by_role("dialog").get_by_role("button", name="Keep editing").click()
    assert (prompt.input_value(), page.url) == ("You edit.", f"{running.url}/settings/agents/clerk")
    page.get_by_label("Temperature").fill("9")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").get_by_text("config.temperature").wait_for()
    page.wait_for_function("() => document.activeElement.getAttribute('aria-invalid') === 'true'")
    assert page.get_by_label("Temperature").get_attribute("aria-invalid") == "true"
    chinese = open_page(running, "/settings/agents/clerk", quiet=False, locale="zh-CN")
    chinese.get_by_label("温度").fill("9")
    chinese.get_by_role("button", name="保存").click()
    chinese.get_by_text("应为允许范围内的数字（it must be a number from 0").first.wait_for()
    page.get_by_label("Temperature").fill("")
    page.get_by_label("Name", exact=True).fill("editor")
    page.get_by_role("checkbox", name="assistant").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/settings/agents/editor")
    page.get_by_text("Version 2").wait_for()
    stored = running.client.get("/api/catalog/agents/editor").json()
    assert stored["version"] == 2 and running.client.get("/api/catalog/agents/clerk").status_code == 404
    assert stored["definition"]["config"] == {"max_steps": 8, "timeout_seconds": 30}
    assert (stored["definition"]["system_prompt"], stored["definition"]["sub_agents"]) == ("You edit.", ["assistant"])
    page.get_by_label("Description").fill("Not kept.")
    page.get_by_role("link", name="Agents").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    page.wait_for_url("**/settings/agents")
    assert running.client.get("/api/catalog/agents/editor").json()["definition"]["description"] is None


def test_what_is_built_in_stays_and_can_be_tried(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/settings/tools/run_sql")
    page.get_by_text("This is built in").wait_for()
    assert page.get_by_label("Description").is_disabled()
    assert page.get_by_role("button", name="Delete").count() == 0
    page.locator("pre", has_text="One SELECT in").wait_for()
    page.get_by_role("textbox", name="sql").fill("SELECT 42 AS n")
    page.get_by_role("button", name="Call").click()
    page.get_by_role("status", name="Result").locator("td", has_text="42").wait_for()
