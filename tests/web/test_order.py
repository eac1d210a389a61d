"""Pins, tags, titles and thumbs, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import looked_at

pytestmark = pytest.mark.browser

SCRIPT = [{"action": "run_sql", "args": {"sql": "SELECT 40 + 1 AS n"}}, {"finish": "There are **41** rockets [q1]."}]
QUESTIONS = ("How many rockets?", "运载火箭有哪些？", "And the launch sites?")
WORDS = {
    "en": {
        "more": "More: ", "pin": "Pin", "unpin": "Unpin", "pinned": "Pinned", "tags": "Tags", "new": "New tag",
        "done": "Done", "up": "Good answer", "down": "Bad answer", "why": "What was wrong? (optional)",
        "good": "What was good? (optional)", "save": "Save",
        "none": "Nothing found.", "today": "Today", "say": "Say why",
    },
    "zh-CN": {
        "more": "更多：", "pin": "置顶", "unpin": "取消置顶", "pinned": "置顶", "tags": "标签", "new": "新标签",
        "done": "完成", "up": "回答得好", "down": "回答得不好", "why": "哪里不对？（选填）",
        "good": "好在哪里？（选填）", "save": "保存",
        "none": "没有找到。", "today": "今天", "say": "说说原因",
    },
}  # fmt: skip
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light")]


def groups(page: Any, *expected: tuple[str, list[str]]) -> None:
    """Wait until the list has these groups with these conversations."""
    page.wait_for_function(
        """(expected) => JSON.stringify([...document.querySelectorAll('nav section')].map((each) => [
            each.getAttribute('aria-label'),
            [...each.querySelectorAll('li[data-id] a')].map((link) => link.innerText.split('\\n')[0]),
        ])) === JSON.stringify(expected)""",
        arg=[list(each) for each in expected],
    )


def choose(page: Any, words: dict[str, str], name: str, item: str) -> None:
    page.get_by_role("button", name=f"{words['more']}{name}").click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def look(page: Any, name: str) -> None:
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        looked_at(page, f"{name}-{width}-{scheme}")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_pinned_ones_stand_first_and_a_tag_filters(serve: Any, open_page: Any, locale: str) -> None:
    words = WORDS[locale]
    running = serve(SCRIPT)
    for question in QUESTIONS:
        running.answer(question)
    page = open_page(running, locale=locale)
    first, second, third = QUESTIONS
    groups(page, (words["today"], [third, second, first]))
    choose(page, words, first, words["pin"])
    groups(page, (words["pinned"], [first]), (words["today"], [third, second]))
    choose(page, words, second, words["tags"])
    page.get_by_label(words["new"]).fill("航天 space")
    page.keyboard.press("Enter")
    page.get_by_role("button", name=words["done"]).click()
    tag = page.get_by_role("group", name=words["tags"]).get_by_role("button", name="航天 space")
    tag.wait_for()
    look(page, f"order-{locale}") if locale == "en" else looked_at(page, f"order-{locale}")
    if locale == "en":
        page.set_viewport_size({"width": 390, "height": 800})
        page.get_by_role("button", name="Open the list of conversations").click()
        tag.wait_for()
        looked_at(page, "order-drawer-390")
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": 1280, "height": 800})
    tag.click()
    groups(page, (words["today"], [second]))
    page.get_by_role("searchbox").fill("no such words")
    page.get_by_text(words["none"]).wait_for()
    page.get_by_role("searchbox").fill("")
    tag.click()
    groups(page, (words["pinned"], [first]), (words["today"], [third, second]))
    page.get_by_role("searchbox").fill("SPACE")
    page.locator("nav li[data-id]", has_text=second).wait_for()
    page.wait_for_function("() => document.querySelectorAll('nav li[data-id]').length === 1")
    page.get_by_role("searchbox").fill("")
    # Another tab takes the pin away.
    ids = {each["label"]: each["id"] for each in running.client.get("/api/conversations").json()["conversations"]}
    assert running.client.patch(f"/api/conversations/{ids[first]}", json={"pinned": False}).status_code == 200
    groups(page, (words["today"], [third, second, first]))
    choose(page, words, second, words["pin"])
    groups(page, (words["pinned"], [second]), (words["today"], [third, first]))
    choose(page, words, second, words["unpin"])
    groups(page, (words["today"], [third, second, first]))


@pytest.mark.parametrize(
    ("locale", "question", "title"),
    [
        ("en", "What are the top 5 rockets by number of launches?", "Top 5 rockets by number of launches"),
        ("zh-CN", "请问发射次数最多的前五种火箭分别是什么？", "发射次数最多的前五种火箭"),
    ],
)
def test_a_conversation_gets_a_short_title_until_a_person_names_it(
    serve: Any, open_page: Any, locale: str, question: str, title: str
) -> None:
    running = serve(None, model="demo", titles=True)
    page = open_page(running, locale=locale)
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")
    heading = page.locator("header").get_by_role("heading", level=1)
    page.wait_for_function("(title) => document.querySelector('header h1')?.innerText === title", arg=title)
    page.locator("nav li[data-id]", has_text=title).wait_for()
    assert page.locator("main article").first.inner_text().startswith(question) or question in page.inner_text("main")
    looked_at(page, f"title-{locale}")
    assert heading.inner_text() == title


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_thumbs_and_a_sentence_are_kept_changed_and_taken_back(serve: Any, open_page: Any, locale: str) -> None:
    words = WORDS[locale]
    running = serve(SCRIPT)
    thread = running.answer(QUESTIONS[0])["thread_id"]
    page = open_page(running, f"/c/{thread}", locale=locale)

    def kept() -> list[tuple[str, str]]:
        found = running.client.get("/api/feedback").json()["feedback"]
        return [(each["opinion"], each["text"]) for each in found]

    up, down = (page.get_by_role("button", name=words[each], exact=True) for each in ("up", "down"))
    down.click()
    page.get_by_label(words["why"]).fill("没有算上助推器 – boosters")
    assert kept() == [("down", "")], "thumbs alone say something"
    look(page, f"feedback-{locale}") if locale == "en" else looked_at(page, f"feedback-{locale}")
    page.get_by_role("button", name=words["save"], exact=True).click()
    page.get_by_role("button", name="没有算上助推器").wait_for()
    assert kept() == [("down", "没有算上助推器 – boosters")]
    page.reload()
    page.get_by_role("button", name="没有算上助推器").wait_for()
    assert (down.get_attribute("aria-pressed"), up.get_attribute("aria-pressed")) == ("true", "false")
    up.click()
    page.get_by_label(words["good"]).press("Escape")
    page.get_by_role("button", name="没有算上助推器").wait_for()
    assert kept() == [("up", "没有算上助推器 – boosters")]
    up.click()
    page.get_by_role("button", name="没有算上助推器").wait_for(state="detached")
    assert kept() == []
