"""Results on the page: their rows, charts and queries, and the receipts of an answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.server.apps import played
from tests.web.conftest import SHOTS
from tests.web.looking import ask

pytestmark = pytest.mark.browser

ROWS = (
    "SELECT id, 9007199254740000000 + id AS big, CASE id WHEN 1 THEN NULL WHEN 2 THEN '' ELSE outcome END AS said "
    "FROM launches WHERE id <= 150"
)
YEARS = "SELECT '2023' AS y, 135 AS launches, 0.956 AS share UNION ALL SELECT '2024', 143, 0.965"


def asked(sql: str, answer: str = "See [q1].") -> list[Any]:
    """A model that runs a query and answers."""
    return [{"thought": "I look.", "action": "run_sql", "args": {"sql": sql}}, {"finish": answer}]


def card(tab: Any, label: str = "q1") -> Any:
    found = tab.locator(f"section[data-query={label}]")
    found.wait_for()
    return found


def cells(table: Any, row: int) -> list[str]:
    texts: list[str] = table.locator("tbody tr").nth(row).locator("td").all_inner_texts()
    return texts


def test_rows_come_page_by_page_and_sorted_and_keep_all_digits(serve: Any, open_page: Any) -> None:
    running = serve(asked(ROWS))
    tab = open_page(running, quiet=False)
    ask(tab, "How many?")
    result = card(tab)
    assert cells(result, 0) == ["1", "9,007,199,254,740,000,001", "NULL"]
    assert cells(result, 1) == ["2", "9,007,199,254,740,000,002", ""]
    assert result.locator("tbody tr").count() == 20
    assert result.get_by_text("1–20 of 150").is_visible()
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    result.get_by_text("100 of 150 rows are printed.").wait_for()
    assert result.locator("tbody tr").count() == 100
    assert not result.get_by_role("button", name="More about this result").is_visible()
    assert not result.get_by_role("tab", name="Table").is_visible()
    assert result.locator("th", has_text="said").is_visible()
    SHOTS.mkdir(exist_ok=True)
    tab.screenshot(path=SHOTS / "printed.png")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen")
    result.get_by_text("1–20 of 150").wait_for()
    result.get_by_role("button", name="said", exact=True).click()
    result.locator("tbody tr:first-child td:first-child", has_text="2").wait_for()
    assert "run again" in result.inner_text()
    result.get_by_role("button", name="id", exact=True).click()
    result.get_by_role("button", name="id", exact=True).click()
    result.locator("tbody tr:first-child td:first-child", has_text="150").wait_for()
    assert cells(result, 0)[1] == "9,007,199,254,740,000,150"
    assert result.locator("th[aria-sort=descending]").inner_text().startswith("id")
    result.get_by_role("button", name="Next rows").click()
    result.get_by_text("21–40 of 150").wait_for()
    assert cells(result, 0)[0] == "130"
    result.get_by_role("button", name="More about this result").click()
    file = running.client.get(tab.get_by_role("menuitem", name="All rows as CSV").get_attribute("href"))
    assert file.text.splitlines()[2] == '2,9007199254740000002,""'


def test_the_models_chart_is_drawn_in_the_pages_language_and_colours(serve: Any, open_page: Any) -> None:
    running = serve(played)
    thread = running.answer("各国发射了多少次？")["thread_id"]
    tab = open_page(running, f"/c/{thread}", locale="zh-CN")
    chart = card(tab)
    chart.locator("svg .mark-rect path").nth(2).wait_for()
    assert chart.locator("h3").inner_text() == "各国发射次数 <b>"
    assert (
        chart.get_by_role("img").first.get_attribute("aria-label") == "柱状图 · 各国发射次数 <b> · 国家 · 次数 · 3 行"
    )
    assert {"美国", "中国", "俄罗斯联邦", "国家", "次数"} <= set(chart.locator("svg text").all_text_contents())
    bar = chart.locator(".mark-rect path").first
    light = bar.evaluate("node => getComputedStyle(node).fill")
    tab.emulate_media(color_scheme="dark")
    assert bar.evaluate("node => getComputedStyle(node).fill") != light
    bar.hover()
    tab.get_by_text("次数: 44").wait_for()
    for name, begin in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        chart.get_by_role("button", name="更多操作").click()
        with tab.expect_download() as download:
            tab.get_by_role("menuitem", name=f"导出图表（{name}）").click()
        assert download.value.path().read_bytes().startswith(begin)
    chart.get_by_role("button", name="饼图").click()
    chart.locator("svg .mark-arc path").nth(2).wait_for()


BROKEN = {"data": {"name": "q1", "values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a", "type": "no"}}}
ELSEWHERE = {"data": {"url": "https://vega.github.io/data/cars.json"}, "mark": "bar", "encoding": {}}
CODE = {
    "data": {"name": "q1", "values": [{"a": 1}]},
    "transform": [{"calculate": "constructor.constructor('document.title = 1')()", "as": "b"}],
    "mark": "bar",
    "encoding": {"x": {"field": "b", "type": "quantitative"}},
}


def _answer(spec: dict[str, Any], route: Any) -> None:
    route.fulfill(json=spec)


def test_a_chart_that_cannot_be_drawn_is_told_and_loads_nothing(serve: Any, open_page: Any) -> None:
    running = serve(played)
    thread = running.answer("各国发射了多少次？")["thread_id"]
    tab = open_page(running)
    for spec in (BROKEN, ELSEWHERE, CODE):
        tab.unroute("**/chart")
        tab.route("**/chart", partial(_answer, spec))
        tab.goto(f"{running.url}/c/{thread}")
        wrong = card(tab).get_by_role("alert")
        wrong.wait_for()
        assert wrong.inner_text().startswith("This chart cannot be drawn: ")
        assert card(tab).locator("svg .mark-rect").count() == 0
        assert tab.title() != "1"


def test_an_edited_query_becomes_a_branch_and_a_wrong_one_says_why(serve: Any, open_page: Any) -> None:
    running = serve([*asked("SELECT name FROM rockets ORDER BY name LIMIT 3"), {"finish": "It is **so**."}])
    tab = open_page(running, quiet=False)
    ask(tab, "Which rockets?")
    result = card(tab)
    result.get_by_role("tab", name="SQL").click()
    editor = result.get_by_role("textbox", name="SQL of q1")
    result.get_by_role("button", name="Edit the SQL").click()
    assert editor.evaluate("(node) => node === document.activeElement")
    editor.fill("SELECT nam FROM rockets")
    editor.press("ControlOrMeta+Enter")
    result.get_by_role("alert").wait_for()
    assert "nam" in result.get_by_role("alert").inner_text()
    editor.fill("SELECT count(*) AS many FROM rockets")
    editor.press("ControlOrMeta+Enter")
    tab.locator("[data-tried]").get_by_role("button", name="Go on from here").click()
    tab.locator("[data-tried]").wait_for(state="detached")
    card(tab).get_by_title("41", exact=True).wait_for()
    assert card(tab).locator("p", has_text="many").inner_text() == "41 many"
    assert tab.get_by_text("Query edited by you").is_visible()
    assert tab.get_by_text("2/2").is_visible()
    # What is asked then has no versions.
    ask(tab, "Is it so?")
    tab.locator("main strong", has_text="so").wait_for()
    assert tab.get_by_text("2/2").count() == 1
    asked_last = running.history(tab.url.rsplit("/", 1)[1])["messages"][-2]
    assert asked_last["siblings"] == {"ids": [asked_last["id"]], "shown": 0}


def test_a_receipt_leads_to_its_row_and_the_focus_comes_back(serve: Any, open_page: Any) -> None:
    answer = "In **2024** there were **143** launches, 96.5 % of them successful, 8 more than before [q1]."
    tab = open_page(serve(asked(YEARS, answer)))
    ask(tab, "Which year?")
    tab.get_by_text("3 of 4 values").wait_for()
    number = tab.get_by_role("button", name="143: show its row in q1")
    number.hover()
    tab.get_by_text("y 2024").wait_for()
    number.click()
    inspector = tab.get_by_role("complementary", name="Inspector")
    inspector.locator("tr[aria-current=true]").wait_for()
    assert cells(inspector.locator("table:has(tr[aria-current])"), 1) == ["2024", "143", "96.5%"]
    assert inspector.locator("tr[aria-current=true]").inner_text().startswith("2024")
    tab.keyboard.press("Escape")
    inspector.wait_for(state="detached")
    assert number.evaluate("node => node === document.activeElement")


def test_a_narrow_screen_is_never_wider_than_it_is(serve: Any, open_page: Any) -> None:
    running = serve(asked(f"SELECT *, id AS again, id AS more, said AS once FROM ({ROWS}) AS r", "**1** [q1]."))
    thread = running.answer("Wide?")["thread_id"]
    tab = open_page(running, f"/c/{thread}", width=390)
    result = card(tab)
    box = result.get_by_role("region", name="Rows of q1")
    box.evaluate("node => { node.scrollLeft = 10_000; }")
    first = result.locator("tbody td").first
    assert box.evaluate("node => node.scrollLeft") > 0
    assert first.bounding_box()["x"] == pytest.approx(box.bounding_box()["x"], abs=1)
    result.get_by_role("button", name="More about this result").click()
    tab.get_by_role("menuitem", name="Show in the inspector").click()
    panel = tab.get_by_role("dialog", name="Inspector")
    panel.get_by_role("columnheader", name="big").wait_for()
    assert panel.bounding_box()["width"] == 390
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
