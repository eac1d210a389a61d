"""The inspector: what each call of the model saw, how a run went, and what is remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.web.conftest import looked_at
from tests.web.test_results import YEARS, asked, card

pytestmark = pytest.mark.browser


def test_the_inspector_shows_what_each_call_saw(serve: Any, open_page: Any) -> None:
    running = serve(asked(YEARS, "Done [q1]."))
    thread = running.answer("First?")["thread_id"]
    running.answer("Second?", thread_id=thread)
    tab = open_page(running, f"/c/{thread}", permissions=["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="Inspector").click()
    inspector = tab.get_by_role("complementary", name="Inspector")
    inspector.get_by_text("call 2/2").wait_for()
    bar = inspector.get_by_role("img").first.get_attribute("aria-label") or ""
    assert "System and tools" in bar and "Whole" in bar
    inspector.get_by_label("Changes since the previous call").check()
    inspector.get_by_text("Added").wait_for()
    inspector.get_by_role("button", name="Copy JSON").click()
    tab.get_by_text("Copied what the model saw in this call.").wait_for()
    copied = json.loads(tab.evaluate("navigator.clipboard.readText()"))
    assert copied == running.client.get(f"/api/conversations/{thread}/calls/{copied['step']}").json()
    for _ in range(3):
        inspector.get_by_role("button", name="Previous call").click()
    inspector.get_by_text("The first call of the conversation").wait_for()
    inspector.get_by_role("button", name="Message 1, whole").click()
    inspector.get_by_role("link", name="Show in the conversation").click()
    tab.wait_for_url("**/c/*?at=*")
    inspector.get_by_role("tab", name="Run").click()
    inspector.get_by_text("run 2/2").wait_for()
    inspector.get_by_role("button", name="run_sql").click()
    inspector.get_by_role("columnheader", name="launches").wait_for()
    # The last call of all is another branch's: what is shown is the last one of this branch.
    messages = running.history(thread)["messages"]
    first, second = [each for each in messages if each["role"] == "user"]
    edited = f"/api/conversations/{thread}/messages/{first['id']}/edit"
    running.client.get(running.client.post(edited, json={"question": "Another?"}).json()["events"])
    assert running.client.put(f"/api/conversations/{thread}/branch", json={"message": second["id"]}).status_code == 200
    tab.goto(f"{running.url}/c/{thread}")
    tab.get_by_role("button", name="Inspector").click()
    inspector.get_by_text("call 2/2").wait_for()
    inspector.get_by_role("button", name="Copy JSON").click()
    tab.get_by_text("Copied what the model saw in this call.").wait_for()
    assert json.loads(tab.evaluate("navigator.clipboard.readText()"))["run_id"] == messages[-1]["run_id"]
    # A run's steps are there, though its calls cannot be read.
    tab = open_page(running, f"/c/{thread}", quiet=False)
    tab.route("**/calls?run=*", lambda route: route.fulfill(status=503, body=""))
    tab.get_by_role("button", name="Inspector").click()
    inspector = tab.get_by_role("complementary", name="Inspector")
    inspector.get_by_role("tab", name="Run").click()
    inspector.get_by_role("alert").get_by_role("button", name="Try again").wait_for()
    inspector.get_by_role("button", name="run_sql").wait_for()


def test_memories_are_pinned_edited_and_forgotten(serve: Any, open_page: Any) -> None:
    running = serve(asked(YEARS))
    told = {"content": "Totals are in euros.", "importance": 0.95}
    assert running.client.post("/api/memories", json=told).status_code == 201
    thread = running.answer("Which year?")["thread_id"]
    tab = open_page(running, f"/c/{thread}")
    tab.get_by_role("button", name="Inspector").click()
    tab.get_by_role("tab", name="Memory").click()
    tab.locator("[data-memory]", has_text="euros").get_by_role("button", name="Pinned").click()
    tab.locator("[data-memory]").get_by_role("button", name="Pin", exact=True).wait_for()
    tab.goto(f"{running.url}/settings/memories")
    tab.get_by_role("textbox", name="Something to remember").fill("The audit is in March.")
    tab.keyboard.press("Enter")
    audit = tab.locator("[data-memory]", has_text="audit")
    audit.get_by_role("button", name="Edit").click()
    audit.get_by_role("textbox").fill("The audit is in May.")
    audit.get_by_role("button", name="Save").click()
    tab.locator("[data-memory]", has_text="May").wait_for()
    euros = tab.locator("[data-memory]", has_text="euros")
    euros.get_by_role("button", name="Forget").click()
    euros.get_by_role("button", name="Forget").click()
    euros.wait_for(state="detached")
    kept = running.client.get("/api/memories").json()["memories"]
    assert [each["content"] for each in kept] == ["The audit is in May."]


@pytest.mark.parametrize(
    ("width", "locale", "scheme"),
    [
        (1280, "en", "light"),
        (390, "zh-CN", "dark"),
        pytest.param(1280, "zh-CN", "dark", marks=pytest.mark.slow),
        pytest.param(390, "en", "light", marks=pytest.mark.slow),
    ],
)
def test_every_view_can_be_used_by_everyone(serve: Any, open_page: Any, width: int, locale: str, scheme: str) -> None:
    running = serve(asked(YEARS, "**143** in 2024 [q1]."))
    thread = running.answer("Which year?")["thread_id"]
    tab = open_page(running, f"/c/{thread}", width=width, locale=locale, color_scheme=scheme)
    name = f"{width}-{locale[:2]}-{scheme}"
    result = card(tab)
    for place, view in enumerate(("table", "chart", "sql")):
        result.get_by_role("tab").nth(place).click()
        result.locator({"table": "td", "chart": "svg .mark-line path", "sql": ".cm-content"}[view]).first.wait_for()
        looked_at(tab, f"{view}-{name}")
    tab.locator("[data-answer] button").first.click()
    panel = tab.locator("aside, [role=dialog]", has=tab.get_by_role("tablist")).last
    panel.locator("tr[aria-current=true]").wait_for()
    looked_at(tab, f"query-{name}")
    for place, waits in ((1, "li button"), (2, "h3"), (3, "tbody tr")):
        panel.get_by_role("tab").nth(place).click()
        panel.locator(waits).first.wait_for()
        if place == 1:
            panel.locator(waits).last.click()
        looked_at(tab, f"inspector-{place}-{name}")
