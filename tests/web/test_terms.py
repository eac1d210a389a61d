"""Settings: business terms and examples that a source is taught on the page."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import define
from tests.web.conftest import looked_at

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "Yes."}]
SOURCE: dict[str, object] = {"kind": "source", "name": "space", "address": "demo"}
WORDS = {
    "en": {
        "data": "Data",
        "link": "Terms and examples",
        "new": "New term",
        "name": "Term",
        "synonyms": "Other words for it",
        "meaning": "What it means",
        "save": "Save",
        "edit": "Edit success rate",
        "example": "New example",
        "question": "Question",
        "remove": "Remove GMV",
        "undo": "Undo",
        "leave": "Discard the changes?",
        "keep": "Keep editing",
    },
    "zh-CN": {
        "data": "数据",
        "link": "术语与示例",
        "new": "新建术语",
        "name": "术语名称",
        "synonyms": "同义词",
        "meaning": "含义",
        "save": "保存",
        "edit": "编辑 success rate",
        "example": "新建示例",
        "question": "问题",
        "remove": "移除 GMV",
        "undo": "撤销",
        "leave": "放弃修改？",
        "keep": "继续编辑",
    },
}


@pytest.mark.parametrize(("width", "locale", "scheme"), [(1280, "en", "light"), (390, "zh-CN", "dark")])
def test_a_source_is_taught_on_the_page(
    serve: Any, open_page: Any, store_address: str, width: int, locale: str, scheme: str
) -> None:
    define(store_address, SOURCE)
    running = serve(SCRIPT)
    page = open_page(running, "/settings/models", width=width, locale=locale, color_scheme=scheme, quiet=False)
    words = WORDS[locale]
    page.locator("main nav").get_by_role("link", name=words["data"], exact=True).click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="space"))
    card.get_by_role("link", name=words["link"]).click()
    page.wait_for_url("**/settings/terms/space")
    page.get_by_role("button", name=words["new"]).click()
    page.get_by_label(words["name"], exact=True).fill("success rate")
    page.get_by_label(words["synonyms"]).fill("成功率、rate of success")
    page.get_by_label("SQL").fill("DROP TABLE launches")
    page.get_by_role("button", name=words["save"]).click()
    page.get_by_label("SQL").and_(page.locator("[aria-invalid=true]")).wait_for()
    looked_at(page, f"terms-wrong-{width}-{locale}")
    page.get_by_label("SQL").fill("avg(outcome = 'Success')")
    # What is half written is not lost by a click elsewhere.
    page.locator("main nav").get_by_role("link", name=words["data"], exact=True).click()
    page.get_by_role("dialog", name=words["leave"]).get_by_role("button", name=words["keep"]).click()
    page.get_by_role("button", name=words["save"]).click()
    page.get_by_role("heading", name="success rate").wait_for()
    page.get_by_role("button", name=words["edit"]).click()
    page.get_by_label(words["name"], exact=True).fill("GMV")
    page.get_by_label(words["meaning"]).fill("已付款订单的总额")
    page.get_by_role("button", name=words["save"]).click()
    page.get_by_role("heading", name="GMV").wait_for()
    page.get_by_role("button", name=words["example"]).click()
    page.get_by_label(words["question"], exact=True).fill("Which rocket flies most?")
    page.get_by_label("SQL").fill("SELECT rocket_id FROM launches")
    page.get_by_role("button", name=words["save"]).click()
    page.get_by_role("heading", name="Which rocket flies most?").wait_for()
    looked_at(page, f"terms-{width}-{locale}")
    term = {
        "name": "GMV",
        "meaning": "已付款订单的总额",
        "sql": "avg(outcome = 'Success')",
        "synonyms": ["成功率", "rate of success"],
    }
    path = "/api/sources/space/terms"
    told = running.client.get(path).json()
    assert (told["terms"], len(told["examples"]), told["version"]) == ([term], 1, 4)
    page.get_by_role("button", name=words["remove"]).click()
    page.get_by_role("heading", name="GMV").wait_for(state="detached")
    assert running.client.get(path).json()["terms"] == []
    page.get_by_role("button", name=words["undo"]).click()
    page.get_by_role("heading", name="GMV").wait_for()
    assert running.client.get(path).json()["terms"] == [term]


@pytest.mark.parametrize(
    ("address", "current", "heading"),
    [
        ("sources", "Data", "Sources"),
        ("appearance", "You", "Theme"),
        ("usage", "You", "Usage"),
        ("skills", "Agents", "Skills"),
        ("memories", "Agents", "Memories"),
    ],
)
def test_addresses_of_eight_pages_lead_to_the_four(
    serve: Any, open_page: Any, address: str, current: str, heading: str
) -> None:
    page = open_page(serve(SCRIPT), f"/settings/{address}")
    pages = page.get_by_role("navigation", name="Settings")
    pages.locator("a[aria-current=page]", has_text=current).wait_for()
    assert pages.get_by_role("link").all_inner_texts() == ["Models & keys", "Data", "Agents", "You"]
    title = page.get_by_role("heading", name=heading, exact=True)
    title.wait_for()
    page.wait_for_function("(title) => title.getBoundingClientRect().bottom <= innerHeight", arg=title.element_handle())
