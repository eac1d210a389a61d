"""A share link: how it is made and revoked, and what its page shows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import looked_at

pytestmark = pytest.mark.browser

YEARS = "SELECT strftime('%Y', launch_date) AS year, count(*) AS launches FROM launches GROUP BY 1 ORDER BY 1 LIMIT 30"
LINE = {"query": "q1", "mark": "line", "x": "year", "y": "launches", "title": "Launches by year"}
SCRIPT = [
    {"thought": "Count by year.", "action": "run_sql", "args": {"sql": YEARS}},
    {"thought": "", "action": "chart", "args": LINE},
    {"thought": "", "action": "run_sql", "args": {"sql": "SELECT nothing FROM nowhere"}},
    {"finish": "In 1990 there were **18** launches [q1]."},
    {"finish": "You are welcome."},
]
QUESTION = "How many launches were there each year?"


def drawn(page: Any) -> None:
    page.locator("article [role=img] svg, article [role=img] canvas").first.wait_for()


def test_a_link_is_made_read_and_revoked(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer(QUESTION)["thread_id"]
    page = open_page(running, f"/c/{thread}")
    page.locator("main > header").get_by_role("button", name="Share").click()
    assert page.get_by_label("The link works").input_value() == "30"
    page.get_by_label("The link works").select_option("7")
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_label("The link", exact=True).input_value()
    assert link.startswith(f"{running.url}/s/")
    page.get_by_role("button", name="Revoke the link").wait_for()
    running.answer("Thank you", thread_id=thread)
    for question in ("And more?", "And the last?"):
        running.answer(question, thread_id=thread)
    whole = running.client.post(f"/api/conversations/{thread}/shares", json={}).json()["path"]
    last = [each["id"] for each in running.history(thread)["messages"] if each["role"] == "user"][-1]
    document = open_page(running, whole, viewport={"width": 1280, "height": 500})
    drawn(document)
    top = "(text) => [...document.querySelectorAll('article')].some((each) => each.innerText.includes(text) && %s)"
    document.wait_for_function(top % "Math.abs(each.getBoundingClientRect().top - 115) < 60", arg=QUESTION)
    box = document.get_by_role("region", name="Conversation")
    assert box.evaluate("(box) => box.scrollTop") == 0
    document.goto(f"{running.url}{whole}?at={last}")
    document.wait_for_function(top % "each.getBoundingClientRect().top < 500", arg="And the last?")

    reader = open_page(running, link.removeprefix(running.url), quiet=False)
    drawn(reader)
    reader.get_by_text("Read only:").wait_for()
    assert reader.get_by_role("button", name="Edit the chart").count() == 0
    assert reader.title() == f"{QUESTION} · Longthread"
    assert reader.get_by_text("Thank you").count() == 0, "what was said later is not shared"
    reader.get_by_role("button", name="3 steps").click()
    reader.get_by_role("button", name="Ran a query failed").wait_for()
    reader.get_by_role("tab", name="Table").click()
    assert reader.get_by_role("cell", name="18", exact=True).count() == 1
    reader.locator("[data-answer] button", has_text="18").hover()
    reader.get_by_text("launches", exact=True).last.wait_for()
    assert reader.get_by_text("[q1]").count() == 0
    reader.get_by_role("button", name="Query q1", exact=True).hover()
    reader.locator("pre", has_text="strftime").wait_for()
    reader.get_by_role("tab", name="SQL").click()
    reader.get_by_text("This page is read-only").wait_for()
    for name in ("Again", "Edit", "Send", "Inspector", "New conversation"):
        assert reader.get_by_role("button", name=name).count() == 0, name

    page.get_by_role("button", name="Revoke the link").click()
    page.get_by_role("button", name="Make a link").wait_for()
    reader.reload()
    reader.get_by_text("This link no longer works.").wait_for()


@pytest.mark.parametrize(
    ("width", "locale", "scheme"),
    [
        (1280, "zh-CN", "dark"),
        (390, "en", "light"),
        pytest.param(1280, "en", "light", marks=pytest.mark.slow),
        pytest.param(390, "zh-CN", "dark", marks=pytest.mark.slow),
    ],
)
def test_each_screen_of_sharing_can_be_used_by_everyone(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT)
    thread = running.answer(QUESTION)["thread_id"]
    path = running.client.post(f"/api/conversations/{thread}/shares", json={}).json()["path"]
    name = f"{width}-{locale[:2]}-{scheme}"
    page = open_page(running, path, width=width, locale=locale, color_scheme=scheme, quiet=False)
    drawn(page)
    looked_at(page, f"shared-{name}")
    page.goto(f"{running.url}/s/nobody")
    page.get_by_role("alert").wait_for()
    looked_at(page, f"shared-gone-{name}")
    page.goto(f"{running.url}/c/{thread}")
    drawn(page)
    page.locator("main > header").get_by_role("button", name="分享" if locale != "en" else "Share").click()
    page.get_by_role("dialog").locator("form button").click()
    page.get_by_role("dialog").locator("input").wait_for()
    looked_at(page, f"share-{name}")
