"""Answers that begin with what was found, results in the view that fits them, and charts changed on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import looked_at
from tests.web.looking import ask
from tests.web.test_results import asked, card

pytestmark = pytest.mark.browser

SCHEMES = ("light", "dark")
DEMO = {"model": "demo"}
FOUND = {
    "en": (
        "How many launches were there per year?",
        ("1990–2025: ", " launches a year"),
        "How many rockets are there?",
        "There are 41 rockets",
        "List the agencies founded after 2000",
        "Found 6 agencies",
        "What is the meaning of life?",
        "I cannot answer this.",
        "Chart",
    ),
    "zh-CN": (
        "每年的发射次数",
        ("1990–2025 年：每年 launches 数 ", " 年最多"),
        "有多少运载火箭？",
        "共有 41 个运载火箭",
        "2000年以后成立的机构有哪些？",
        "找到 ",
        "人生的意义是什么？",
        "我无法回答这个问题。",
        "图表",
    ),
}


def answer(tab: Any, number: int) -> Any:
    found = tab.locator("article").nth(number)
    found.locator("[data-answer]").wait_for()
    found.get_by_role("button", name="Copy" if found.page.locator("html[lang=en]").count() else "复制").first.wait_for()
    return found


@pytest.mark.parametrize(("locale", "width"), [("en", 1280), ("zh-CN", 1280), ("zh-CN", 390)])
def test_an_answer_begins_with_what_was_found_and_shows_it_as_it_is(
    serve: Any, open_page: Any, locale: str, width: int
) -> None:
    series, ranges, count, counted, few, listed, odd, refused, chart = FOUND[locale]
    tab = open_page(serve(None, **DEMO), locale=locale, width=width)
    name = f"findings-{width}-{locale[:2]}"

    ask(tab, series)
    first = answer(tab, 0)
    begun = first.locator("[data-answer] p").first.inner_text()
    assert all(each in begun for each in ranges), begun
    assert begun.startswith(ranges[0])
    first.locator("svg .mark-line path").first.wait_for()
    assert first.get_by_role("tab", name=chart).get_attribute("aria-selected") == "true"
    assert first.locator("[data-answer] table").count() == 0
    for scheme in SCHEMES:
        tab.emulate_media(color_scheme=scheme)
        looked_at(tab, f"{name}-series-{scheme}")
    tab.emulate_media(color_scheme="light")

    ask(tab, count)
    second = answer(tab, 1)
    assert second.locator("[data-answer] p").first.inner_text().startswith(counted)
    assert second.locator("section b").first.inner_text() == "41"
    assert second.locator("section table").count() == 0

    ask(tab, few)
    third = answer(tab, 2)
    assert third.locator("[data-answer] p").first.inner_text().startswith(listed)
    third.locator("section td").first.wait_for()
    box = third.locator("section").first.bounding_box()
    if width > 760:
        assert box["width"] < 700
    looked_at(tab, f"{name}-few")

    ask(tab, odd)
    last = answer(tab, 3)
    assert last.locator("[data-answer] p").first.inner_text().startswith(refused)
    assert last.locator("section").count() == 0
    assert last.locator("ul button").count() == 3
    looked_at(tab, f"{name}-refused")
    said = tab.locator("body").inner_text()
    assert said.count("demo model" if locale == "en" else "演示模型") == 1, said


LONG = {
    "en": (
        "Number of launches by month and outcome",
        "Found 473 rows",
        "printed here",
        "Chart",
        "Table",
        "1–20 of 473",
    ),
    "zh-CN": ("每月每个结果的发射次数", "找到 473 行", "这里只列出", "图表", "表格", "第 1–20 行，共 473 行"),
}


@pytest.mark.parametrize(("locale", "width", "scheme"), [("en", 1280, "light"), ("zh-CN", 390, "dark")])
def test_how_many_rows_are_shown_is_said_where_they_are(
    serve: Any, open_page: Any, locale: str, width: int, scheme: str
) -> None:
    question, found, printed, chart, table, place = LONG[locale]
    tab = open_page(serve(None, **DEMO), locale=locale, width=width, color_scheme=scheme)
    ask(tab, question)
    first = answer(tab, 0)
    assert first.locator("[data-answer] p").first.inner_text().startswith(found)
    # The command line prints the first ones below that: the card has them all.
    assert printed not in first.inner_text()
    first.get_by_role("tab", name=chart).click()
    first.locator("svg .mark-group path").first.wait_for()
    assert " 100 " not in first.inner_text()
    looked_at(tab, f"findings-long-{width}-{scheme}-{locale}")
    first.get_by_role("tab", name=table).click()
    first.get_by_text(place).wait_for()


SOLD = (
    "SELECT 'Books and other printed matter, new and used' AS category, 'North' AS region, 10 AS sold, 4 AS sent "
    "UNION ALL SELECT 'Toys', 'North', 30, 20 UNION ALL SELECT 'Toys', 'South', 25, 12 "
    "UNION ALL SELECT 'Food', 'South', 40, 39"
)
EDITING = {
    "en": ("Chart", "Edit the chart", "Change the chart", "Type", "Series", "Stacking", "Order", "Title"),
    "zh-CN": ("图表", "修改图表", "修改图表", "类型", "系列", "堆叠", "排序", "标题"),
}
ENDING = {"en": ("added up", "Done", "Reset", "Edited"), "zh-CN": ("相加", "完成", "还原", "已修改")}
FOOD_FIRST = """() => {
    const names = [...document.querySelectorAll('svg .role-axis-label text')].map((each) => each.textContent);
    return names.includes('Food') && names.indexOf('Food') < names.indexOf('Toys');
}"""


@pytest.mark.parametrize(("locale", "width"), [("en", 1280), ("zh-CN", 390)])
def test_a_chart_is_changed_on_the_page_and_kept(serve: Any, open_page: Any, locale: str, width: int) -> None:
    chart, edit, group, kind, series, stacking, order, title = EDITING[locale]
    added, done, reset, edited = ENDING[locale]
    running = serve(asked(SOLD))
    thread = running.answer("What was sold?")["thread_id"]
    tab = open_page(running, f"/c/{thread}", locale=locale, width=width)
    result = card(tab)
    result.get_by_role("tab", name=chart).click()
    bars = result.locator("svg .mark-rect path")
    bars.nth(3).wait_for()
    shown = result.locator("svg text").all_text_contents()
    assert any("used" in each for each in shown) and not any("…" in each for each in shown), shown

    result.get_by_role("button", name=edit, exact=True).click()
    editor = result.get_by_role("group", name=group)
    editor.get_by_label(series).select_option("")
    editor.get_by_text(added).wait_for()
    bars.nth(2).wait_for()
    editor.get_by_label(order).select_option("least")
    result.locator("svg text", has_text="Toys").first.wait_for()
    tab.wait_for_function(FOOD_FIRST)
    editor.get_by_label(series).select_option(label="region")
    editor.get_by_label(stacking).select_option("normalize")
    result.locator("svg text", has_text="100%").first.wait_for()
    editor.get_by_label(title).fill("Sold by kind")
    result.get_by_role("heading", name="Sold by kind").wait_for()
    for scheme in SCHEMES:
        tab.emulate_media(color_scheme=scheme)
        looked_at(tab, f"chart-edit-{width}-{locale[:2]}-{scheme}")
    editor.get_by_label(kind).select_option("line")
    result.locator("svg .mark-line path").first.wait_for()
    editor.get_by_role("button", name=done).click()

    tab.reload()
    result = card(tab)
    result.locator("svg .mark-line path").first.wait_for()
    assert result.get_by_role("button", name=edited).get_attribute("aria-pressed") == "true"
    result.get_by_role("button", name=edit, exact=True).click()
    result.get_by_role("button", name=reset).click()
    result.locator("svg .mark-rect path").nth(3).wait_for()
    assert result.get_by_role("button", name=edited).count() == 0


YEARS = (
    "SELECT strftime('%Y', launch_date) AS year, count(*) AS n, outcome FROM launches GROUP BY 1, 3 ORDER BY 1 LIMIT 9"
)
MADE = [
    {"thought": "Count.", "action": "run_sql", "args": {"sql": YEARS}},
    {
        "thought": "",
        "action": "chart",
        "args": {"query": "q1", "mark": "bar", "x": "year", "y": "n", "color": "outcome"},
    },
    {"finish": "See [q1]."},
]


def test_a_chart_of_the_model_is_changed_and_comes_back(serve: Any, open_page: Any) -> None:
    running = serve(MADE)
    thread = running.answer("Draw the launches by year")["thread_id"]
    tab = open_page(running, f"/c/{thread}")
    result = card(tab)
    result.locator("svg .mark-rect path").first.wait_for()
    result.get_by_role("button", name="Edit the chart").click()
    editor = result.get_by_role("group", name="Change the chart")
    assert editor.get_by_label("Series").input_value() == "2"
    editor.get_by_label("Type").select_option("area")
    result.locator("svg .mark-area path").first.wait_for()
    editor.get_by_label("Title").fill("Launches")
    result.get_by_role("heading", name="Launches").wait_for()
    result.get_by_role("button", name="Reset").click()
    result.locator("svg .mark-rect path").first.wait_for()
    assert result.locator("svg .mark-area path").count() == 0


DRAWN = {"en": "The chart draws the first 100 of 1,500 rows.", "zh-CN": "图表只绘制了 1,500 行中的前 100 行。"}


@pytest.mark.parametrize("locale", EDITING)
def test_a_large_chart_gets_another_title_and_keeps_its_rows(
    serve: Any, open_page: Any, tmp_path: Path, locale: str
) -> None:
    """A form would draw the first 1,000 rows: for more, none is offered."""
    _, edit, group, kind, *_, title = EDITING[locale]
    (tmp_path / "many.csv").write_text("place,n\n" + "".join(f"{n},{n * 2}\n" for n in range(1500)))
    query, point = {"sql": "SELECT place, n FROM many"}, {"query": "q1", "mark": "point", "x": "place", "y": "n"}
    script = [{**MADE[0], "args": query}, {**MADE[1], "args": point}, MADE[2]]
    running = serve(script, source=str(tmp_path / "many.csv"))
    thread = running.answer("Draw each launch")["thread_id"]
    tab = open_page(running, f"/c/{thread}", locale=locale)
    result = card(tab)
    result.locator("[role=img] svg").wait_for()
    drawn = result.locator("[role=img][aria-label*=' 100 ']")
    assert drawn.count() == 1, result.locator("[role=img]").get_attribute("aria-label")  # those that the log has
    result.get_by_text(DRAWN[locale]).wait_for()
    looked_at(tab, f"chart-drawn-{locale}")
    result.get_by_role("button", name=edit, exact=True).click()
    editor = result.get_by_role("group", name=group)
    editor.get_by_label(title).fill("Each launch")
    result.get_by_role("heading", name="Each launch").wait_for()
    assert editor.get_by_label(kind, exact=True).count() == 0
    assert drawn.count() == 1
    tab.reload()
    card(tab).get_by_role("heading", name="Each launch").wait_for()
    drawn.wait_for()
