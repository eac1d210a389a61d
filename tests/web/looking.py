"""What a test of the page does in it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote


def opened(context: Any, running: Any, thread_id: str | None = None) -> Any:
    """A tab with a conversation, or with a new one."""
    tab = context.new_page()
    tab.goto(running.url + ("/" if thread_id is None else f"/c/{quote(thread_id, safe='')}"))
    tab.wait_for_selector("#question")
    return tab


def ask(tab: Any, question: str) -> None:
    tab.fill("#question", question)
    tab.press("#question", "Enter")


def ask_held(tab: Any, running: Any, question: str) -> None:
    """Ask, and hold the model back: the run is at work until `running.model.shut` is cleared."""
    running.model.shut.set()
    ask(tab, question)
    tab.get_by_text("Thinking about the question").first.wait_for()


def answered(tab: Any, count: int = 1) -> None:
    """Wait for this many turns whose answer is whole. An opened step can hold a button to copy, too."""
    copy = tab.get_by_role("button", name="Copy", exact=True)
    tab.locator("article:has([data-answer])").filter(has=copy).nth(count - 1).wait_for()


def shape(tab: Any) -> list[str]:
    """What a conversation shows, without times, when all of its results are drawn."""
    for unfinished in ("article [role=status]", "[data-undrawn]"):
        tab.wait_for_selector(unfinished, state="detached")
    text = tab.get_by_role("region", name="Conversation").inner_text()
    return [line for line in re.sub(r"[\d.]+ m?s\b", "", text).split("\n") if line.strip()]


def answers(tab: Any) -> list[str]:
    """What stands strong in the answers."""
    found: list[str] = tab.locator("[data-answer] strong").all_inner_texts()
    return found


def opened_apps(page: Any) -> dict[str, list[str]]:
    """Open «use from your app» of the conversation that is shown, and return its code, by way."""
    page.wait_for_selector("#question")
    page.locator("main > header").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Use from your app").click()
    page.locator("[data-way]:visible:not([inert])").wait_for()
    found: dict[str, list[str]] = {}
    for tab in page.get_by_role("dialog").get_by_role("tab").all():
        tab.click()
        panel = page.locator("[data-way]:visible:not([inert])")
        found[panel.get_attribute("data-way")] = panel.locator("pre").all_text_contents()
    return found
