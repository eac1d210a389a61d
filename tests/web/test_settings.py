"""Settings: sources by address, models and keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import looked_at
from tests.web.looking import answered, ask

from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **2** towns."}]


def test_a_new_conversation_chooses_among_the_sources(serve: Any, open_page: Any, tmp_path: Path) -> None:
    for name in ("towns", "rivers"):
        (tmp_path / f"{name}.csv").write_text("name,n\nBerlin,3\n")
    running = serve(SCRIPT)
    given = {"name": "my towns", "address": str(tmp_path / "towns.csv"), "description": "Where people live"}
    assert running.client.post("/api/sources", json=given).status_code == 201
    page = open_page(running)
    chip = page.get_by_role("button", name="Source:")
    chip.click()
    page.get_by_role("menuitemradio", name="demo data").wait_for()
    looked_at(page, "the sources of a new conversation")
    page.get_by_role("menuitemradio", name="my towns Where people live").click()
    page.get_by_role("button", name="Source: my towns").click()
    page.get_by_role("menuitem", name="Another source").click()
    page.get_by_label("Path or URL").fill(str(tmp_path / "rivers.csv"))
    page.keyboard.press("Enter")
    page.get_by_role("button", name=re.compile("Source: .*rivers.csv")).click()
    chosen = page.get_by_role("menuitemradio", name="rivers.csv")
    chosen.wait_for()
    assert chosen.get_attribute("aria-checked") == "true"
    page.keyboard.press("Escape")
    ask(page, "How many towns?")
    answered(page)
    [thread] = running.client.get("/api/conversations").json()["conversations"]
    assert thread["source"].endswith("/rivers.csv")


def test_the_model_is_chosen_beside_the_question_and_stays_with_the_conversation(
    serve: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with ProviderEmulator(["It is **written**."], loop=True, api_key="sk-right", models=["claude-a"]) as emulator:
        own = {"anthropic_base_url": emulator.anthropic_url, "anthropic_api_key": "sk-right"}
        running = serve(None, model="demo", **own)
        page = open_page(running, quiet=False)
        page.get_by_role("button", name="Model: demo").click()
        page.get_by_role("menuitemradio", name="anthropic:claude-a").wait_for()
        page.get_by_text("Follows rules: no language model is used", exact=True).wait_for()
        looked_at(page, "model-menu")
        page.get_by_role("menuitemradio", name="anthropic:claude-a").click()
        ask(page, "How many rockets are there?")
        answered(page)
        assert emulator.requests[-1].body["model"] == "claude-a"
        page.reload()
        chip = page.get_by_role("button", name="Model: anthropic:claude-a")
        chip.wait_for()
        page.get_by_role("button", name="Again").click()
        page.get_by_text("2/2").wait_for()
        answered(page)
        thread = running.client.get("/api/conversations").json()["conversations"][0]["id"]
        assert {run["model"] for run in running.history(thread)["runs"]} == {"anthropic:claude-a"}
        chip.click()
        page.get_by_role("menuitemradio", name="demo").click()
        ask(page, "How many launches were there?")
        answered(page, 2)
        last = running.history(thread)["runs"][-1]
        assert (last["model"], last["question"]) == ("demo", "How many launches were there?")
        looked_at(page, "model-chosen")

        page.evaluate("(key) => localStorage.setItem(key, 'openai:gone')", f"longthread.model.{thread}")
        page.reload()
        page.get_by_role("button", name="Model: openai:gone").wait_for()
        refused = {"type": "about:blank", "title": "", "status": 403, "code": "model_not_allowed", "detail": "No."}
        refused["params"] = {"model": "openai:gone", "allowed": "demo"}
        page.route("**/api/chat", lambda route: route.fulfill(status=403, json=refused), times=1)
        ask(page, "How many sites are there?")
        page.get_by_text("Nothing was asked: openai:gone is no longer available").wait_for()
        page.get_by_role("button", name="Model: demo").wait_for()
        page.locator("form").get_by_role("alert").wait_for()
        page.press("#question", "Enter")
        answered(page, 3)
        last = running.history(thread)["runs"][-1]
        assert (last["model"], last["question"]) == ("demo", "How many sites are there?")
