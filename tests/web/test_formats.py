"""Numbers and dates of a result as people write them, the same in the table, the chart and the files, in both
languages."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from tests.sheets import sheet
from tests.web.conftest import looked_at
from tests.web.looking import ask
from tests.web.test_results import asked, card, cells

pytestmark = pytest.mark.browser

SALES = (
    "SELECT '2023' AS sales_year, 52838.549999999996 AS revenue_eur, 0.956 AS share, 1234567 AS units_sold, "
    "'2023-01-05T00:00:00' AS first_day "
    "UNION ALL SELECT '2024', 1200000.5, 0.965, 2500000, '2024-02-29T00:00:00'"
)
SCHEMES = ("light", "dark")
FILES = {"en": ("More about this result", "All rows as Excel"), "zh-CN": ("更多操作", "导出全部行（Excel）")}


def choose(tab: Any, result: Any, menu: str, item: str) -> None:
    result.get_by_role("columnheader").filter(has=tab.get_by_role("button", name=menu)).hover()
    result.get_by_role("button", name=menu).click()
    tab.get_by_role("menuitemradio").filter(has_text=re.compile(f"^{re.escape(item)}")).first.click()
    tab.get_by_role("menu").wait_for(state="detached")


def href(tab: Any, result: Any, menu: str, item: str) -> str:
    result.get_by_role("button", name=menu).click()
    found: str = tab.get_by_role("menuitem", name=item, exact=True).get_attribute("href")
    tab.keyboard.press("Escape")
    tab.get_by_role("menu").wait_for(state="detached")
    return found


def test_a_column_is_written_as_people_do_everywhere(serve: Any, open_page: Any) -> None:
    running = serve(asked(SALES))
    tab = open_page(running)
    ask(tab, "Sales by year?")
    result = card(tab)
    assert cells(result, 0) == ["2023", "€52,838.55", "95.6%", "1,234,567", "2023-01-05"]
    assert cells(result, 1) == ["2024", "€1,200,000.50", "96.5%", "2,500,000", "2024-02-29"]
    heads = result.get_by_role("columnheader")
    assert [each.split("\n")[0] for each in heads.all_inner_texts()] == [
        "sales year",
        "revenue eur",
        "share",
        "units sold",
        "first day",
    ]
    assert heads.nth(1).get_attribute("title") == "revenue_eur"
    for scheme in SCHEMES:
        tab.emulate_media(color_scheme=scheme)
        looked_at(tab, f"formats-{scheme}")
    result.get_by_role("tab", name="Chart").click()
    result.locator("svg .mark-line path").first.wait_for()
    texts = result.locator("svg text").all_text_contents()
    assert {"€1M", "€0.2M", "sales year", "revenue eur"} <= set(texts)  # one axis, one form
    result.locator("svg .mark-symbol path").first.hover()
    tab.get_by_text("revenue eur: €52,838.55").wait_for()
    looked_at(tab, "formats-chart")


def test_a_chosen_format_holds_in_the_table_the_chart_and_the_files(serve: Any, open_page: Any) -> None:
    running = serve([*asked(SALES), *asked(SALES, "Again [q2].")])
    tab = open_page(running, quiet=False)
    ask(tab, "Sales by year?")
    result = card(tab)
    choose(tab, result, "Format of units sold", "Currency $")
    choose(tab, result, "Format of units sold", "2 decimals")
    choose(tab, result, "Format of share", "Number")
    result.get_by_role("columnheader", name="revenue eur").hover()
    result.get_by_role("button", name="Format of revenue eur").click()
    looked_at(tab, "formats-menu")
    tab.get_by_role("menuitem", name="Another unit …").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Unit", exact=True).fill("km")
    looked_at(tab, "formats-unit")
    dialog.get_by_role("button", name="Apply").click()
    dialog.wait_for(state="detached")
    chosen = ["2023", "52,838.55 km", "0.956", "$1,234,567.00", "2023-01-05"]
    assert cells(result, 0) == chosen
    shown = running.client.get(href(tab, result, "More about this result", "CSV as shown here")).text
    assert shown.splitlines()[1] == '2023,"52,838.55 km",0.956,"$1,234,567.00",2023-01-05'
    plain = running.client.get(href(tab, result, "More about this result", "All rows as CSV")).text
    assert plain.splitlines()[1] == "2023,52838.55,0.956,1234567,2023-01-05T00:00:00"
    file = running.client.get(href(tab, result, "More about this result", "All rows as Excel")).content
    assert [text for _, text in sheet(file)[1]] == ["2023", "52838.55", "0.956", "1234567", "44931"]
    styles = zipfile.ZipFile(io.BytesIO(file)).read("xl/styles.xml").decode()
    assert all(code in styles for code in ('#,##0.00&quot; km&quot;"', '"&quot;$&quot;#,##0.00"', '"yyyy-mm-dd"'))
    result.get_by_role("tab", name="Chart").click()
    result.locator("svg text", has_text="1M km").first.wait_for()
    tab.reload()
    assert cells(card(tab), 0) == chosen  # kept
    ask(tab, "Again?")
    assert cells(card(tab, "q2"), 0) == chosen
    choose(tab, card(tab, "q2"), "Format of revenue eur", "Automatic")
    assert cells(card(tab), 0)[1] == "€52,838.55"


def test_chinese_has_its_own_words_and_large_numbers(serve: Any, open_page: Any) -> None:
    running = serve(asked(SALES.replace("units_sold", '"销量"').replace("revenue_eur", '"金额（元）"'), "见 [q1]。"))
    tab = open_page(running, width=390, locale="zh-CN")
    ask(tab, "每年卖了多少？")
    result = card(tab)
    assert cells(result, 1) == ["2024", "¥1,200,000.50", "96.5%", "2,500,000", "2024-02-29"]
    choose(tab, result, "“销量”的格式", "货币 €")
    assert cells(result, 1)[3] == "€2,500,000"
    for scheme in SCHEMES:
        tab.emulate_media(color_scheme=scheme)
        looked_at(tab, f"formats-390-zh-{scheme}")
    result.get_by_role("tab", name="图表").click()
    result.locator("svg text", has_text="¥100万").first.wait_for()
    looked_at(tab, "formats-chart-390-zh")


WORKBOOK = {
    "en": ("Total growth, revenue and weight?", ["Bonn", "€1,234.50", "19.0%", "1,200 kg", "2019", "2024-01-05"]),
    "zh-CN": ("各城市如何？", ["Bonn", "¥1,234.50", "19.0%", "1,200件", "2019", "2024-01-05"]),
}


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_cells_are_written_as_in_the_workbook(serve: Any, open_page: Any, tmp_path: Path, language: str) -> None:
    question, wanted = WORKBOOK[language]
    codes = ["€ #,##0.00", "0.0%", '#,##0 "kg"', "0", "dd/mm/yyyy"]
    if language != "en":
        codes[0::2] = ["¥#,##0.00", '#,##0"件"', "yyyy/m/d"]
    book = Workbook()
    book.active.title = "sales"
    book.active.append(["city", "a", "b", "c", "since", "d"])
    book.active.append(["Bonn", 1234.5, 0.19, 1200, 2019, datetime(2024, 1, 5, 4, 5)])
    for at, code in enumerate(codes, 2):
        book.active.cell(2, at).number_format = code
    book.save(tmp_path / "book.xlsx")
    running = serve(asked("SELECT * FROM sales"), source=str(tmp_path / "book.xlsx"))
    tab = open_page(running, quiet=False, locale=language)
    ask(tab, question)
    result = card(tab)
    assert cells(result, 0) == wanted
    file = href(tab, result, *FILES[language])
    styles = zipfile.ZipFile(io.BytesIO(running.client.get(file).content)).read("xl/styles.xml").decode()
    assert '"0.0%"' in styles
    looked_at(tab, f"formats-workbook-{language}")


ANSWERS = {
    "en": ("In 2023 the revenue_eur was 52838.549999999996, in 2024 it was 1200000.5 [q1].", "revenue eur"),
    "zh-CN": ("2023 年 revenue_eur 为 52838.549999999996，2024 年为 1200000.5 [q1]。", "revenue eur"),
}


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_a_number_that_an_answer_copied_is_written_as_people_do(serve: Any, open_page: Any, language: str) -> None:
    said, heading = ANSWERS[language]
    tab = open_page(serve(asked(SALES, said)), locale=language)
    ask(tab, "Sales by year?")
    card(tab)
    numbers = tab.locator("[data-answer] button")
    tab.locator("[data-answer] button", has_text="52,838.55").wait_for()
    assert {"1,200,000.5", "52,838.55"} <= set(numbers.all_inner_texts())
    tab.locator("[data-answer] button", has_text="52,838.55").hover()
    tab.get_by_text(f"€52,838.55 {heading}").wait_for()
    looked_at(tab, f"formats-answer-{language}")
