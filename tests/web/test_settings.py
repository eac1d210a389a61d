"""Settings: files that become sources, sources by address, models and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **2** towns."}]


def test_a_file_is_looked_at_becomes_a_source_is_asked_and_removed(serve: Any, open_page: Any, tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_text('city,n\nBerlin,3\n"<img src=x>",\n')
    running = serve(SCRIPT)
    page = open_page(running, "/settings/sources", quiet=False)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Throw away").click()
    page.locator("input[type=file]").set_input_files(file)
    cells = page.get_by_role("region", name="First rows of towns").locator("td")
    cells.first.wait_for()
    assert cells.all_inner_texts() == ["Berlin", "3", "<img src=x>", "NULL"]
    page.get_by_label("Name").first.fill("demo")
    page.get_by_role("button", name="Add as a source").click()
    page.get_by_role("alert").wait_for()  # that name is taken
    page.get_by_label("Name").first.fill("my towns")
    page.get_by_role("button", name="Add as a source").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="my towns"))
    card.get_by_role("button", name="Ask").click()
    page.get_by_role("button", name="Source: my towns").wait_for()
    page.fill("#question", "How many towns?")
    page.press("#question", "Enter")
    page.locator("main strong", has_text="2").wait_for()
    [thread] = running.client.get("/api/conversations").json()["conversations"]
    assert thread["source"].endswith("/towns.csv")
    page.locator("header", has_text="towns.csv").wait_for()
    page.goto(f"{running.url}/settings/sources")
    card.get_by_role("button", name="Remove my towns").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    card.wait_for(state="detached")
    assert [each["name"] for each in running.client.get("/api/sources").json()["sources"]] == ["demo"]


def test_models_are_listed_and_a_wrong_key_is_told(serve: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # No test asks the world: a provider is not there.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    page = open_page(serve(SCRIPT, model="demo"), "/settings/models", quiet=False)
    page.get_by_role("heading", name="demo", exact=True).wait_for()
    page.get_by_text("Rule-based: no language model is at work").wait_for()
    assert page.get_by_label("Key of openai").get_attribute("type") == "password"
