"""Each screen and overlay of the frame, looked at by axe-core: both languages, light and dark, wide and narrow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import define_clerk
from tests.web.conftest import looked_at

pytestmark = pytest.mark.browser

COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT id, name, height_m FROM rockets"}}
SCRIPT = [COUNT, {"finish": "There are **41** rockets [q1].\n\n| a | b |\n|---|--:|\n| x | 41 |"}]
SETTINGS = (
    "models",
    "data",
    "agents",
    "skills",
    "tools",
    "memories",
    "terms",
    "you",
    "agents/clerk",
    "skills?new",
    "tools/send_mail",
)


@pytest.mark.parametrize(
    ("width", "locale", "scheme"),
    [
        (1280, "en", "light"),
        (390, "zh-CN", "dark"),
        pytest.param(1280, "zh-CN", "dark", marks=pytest.mark.slow),
        pytest.param(390, "en", "light", marks=pytest.mark.slow),
    ],
)
def test_every_screen_can_be_used_by_everyone(
    serve: Any, open_page: Any, store_address: str, width: int, locale: str, scheme: str
) -> None:
    define_clerk(store_address)
    running = serve(SCRIPT)
    threads = [running.answer(each)["thread_id"] for each in ("How many rockets are there?", "运载火箭有哪些？")]
    tagged = running.client.patch(f"/api/conversations/{threads[0]}", json={"tags": ["space"]})
    assert tagged.status_code == 200
    told = {"content": "Totals are in euros. 总额以欧元计。", "importance": 0.95}
    assert running.client.post("/api/memories", json=told).status_code == 201
    page = open_page(running, width=width, locale=locale, color_scheme=scheme)
    name = f"{width}-{locale[:2]}-{scheme}"
    page.locator("main ul button").first.wait_for()
    looked_at(page, f"new-{name}")
    page.keyboard.press("Control+k")
    page.get_by_role("option").nth(3).wait_for()
    looked_at(page, f"palette-{name}")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.locator("#question").blur()
    page.keyboard.press("?")
    page.get_by_role("dialog").locator("kbd").first.wait_for()
    looked_at(page, f"keys-{name}")
    page.goto(f"{running.url}/settings/nowhere")
    page.locator("main > p + button").wait_for()
    looked_at(page, f"unknown-{name}")
    page.goto(f"{running.url}/c/{threads[0]}")
    page.locator("main strong").first.wait_for()
    looked_at(page, f"conversation-{name}")
    if width < 760:
        page.locator("header button").first.tap()
        page.get_by_role("dialog").wait_for()
        looked_at(page, f"drawer-{name}")
    page.locator("li[data-id] button").last.click()
    page.get_by_role("menuitem").nth(1).wait_for()
    looked_at(page, f"menu-{name}")
    page.get_by_role("menuitem").nth(1).click()
    page.get_by_role("dialog").last.locator("form").wait_for()
    looked_at(page, f"tags-{name}")
    for section in SETTINGS:
        page.goto(f"{running.url}/settings/{section}")
        page.locator("main h2").first.wait_for()
        looked_at(page, f"{section.replace('/', '-').replace('?', '-')}-{name}")
