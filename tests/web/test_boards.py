"""Boards on the page: a result is saved, looked at again, given other values, refreshed, exported and shared."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from tests.web.conftest import looked_at
from tests.web.looking import ask
from tests.web.test_results import asked, card

pytestmark = pytest.mark.browser

SALES = (
    "SELECT region, sum(revenue) AS revenue_eur FROM sales WHERE day >= '2026-01-01' GROUP BY region ORDER BY region"
)
WORDS = {
    "en": {
        "question": "How much revenue has each region?",
        "chart": "Chart",
        "more": "More about this result",
        "save": "Save to a board",
        "title": "Title",
        "name": "Name of the board",
        "keep": "Save",
        "open": "Open the board",
        "board": "Sales",
        "card": "Revenue by region",
        "about": "More about Revenue by region",
        "edit": "Edit the query",
        "make": "Make '2026-01-01' changeable",
        "run": "Save and run",
        "label": "day ≥",
        "apply": "Apply",
        "table": "Show as a table",
        "refresh": "Refresh",
        "file": "Save as {}",
        "every": "Every day",
        "boards": "Boards",
        "share": "Share this board",
        "make_link": "Make a link",
        "link": "The link",
        "conversation": "Open the conversation",
        "remove": "Remove from the board",
        "empty": "Nothing is saved here yet",
        "menu": "More about this board",
        "delete": "Delete the board",
        "none": "No boards yet",
    },
    "zh-CN": {
        "question": "每个地区的收入是多少？",
        "chart": "图表",
        "more": "更多操作",
        "save": "保存到看板",
        "title": "标题",
        "name": "看板名称",
        "keep": "保存",
        "open": "打开看板",
        "board": "销售",
        "card": "各地区收入",
        "about": "“各地区收入”的更多操作",
        "edit": "编辑查询",
        "make": "把 '2026-01-01' 设为参数",
        "run": "保存并运行",
        "label": "day ≥",
        "apply": "应用",
        "table": "显示为表格",
        "refresh": "刷新",
        "file": "保存为 {}",
        "every": "每天",
        "boards": "看板",
        "share": "分享看板",
        "make_link": "创建链接",
        "link": "链接",
        "conversation": "打开会话",
        "remove": "从看板移除",
        "empty": "这里还没有保存内容",
        "menu": "看板的更多操作",
        "delete": "删除看板",
        "none": "还没有看板",
    },
}
SHAPES = {"en": (1280, "light"), "zh-CN": (390, "dark")}


def sales(folder: Path) -> str:
    """A file of sales, with money in euros."""
    file = folder / "sales.csv"
    file.write_text("region,day,revenue\nNorth,2025-12-31,100\nNorth,2026-01-02,1200.5\nSouth,2026-02-01,800\n")
    return str(file)


def choose(tab: Any, menu: str, item: str) -> None:
    """Choose an item of a menu."""
    tab.get_by_role("button", name=menu, exact=True).click()
    tab.get_by_role("menuitem", name=item, exact=True).click()
    tab.get_by_role("menu").wait_for(state="detached")


def saved(running: Any, title: str) -> str:
    """A board's id with one card."""
    thread = running.answer("How much?")["thread_id"]
    [step] = [each for steps in running.history(thread)["steps"].values() for each in steps]
    board: str = running.client.post("/api/boards", json={"title": title}).json()["id"]
    body = {"thread_id": thread, "step": step["step"], "title": title, "look": {"view": "chart"}}
    assert running.client.post(f"/api/boards/{board}/cards", json=body).status_code == 201
    return board


@pytest.mark.parametrize("locale", WORDS)
def test_a_result_becomes_a_board_that_is_refreshed_and_shared(
    serve: Any, open_page: Any, tmp_path: Path, locale: str
) -> None:
    words, (width, scheme) = WORDS[locale], SHAPES[locale]
    file = sales(tmp_path)
    running = serve(asked(SALES), source=file)
    tab = open_page(running, locale=locale, width=width, color_scheme=scheme)
    ask(tab, words["question"])
    result = card(tab)
    result.get_by_role("tab", name=words["chart"]).click()
    result.locator("[role=img] svg").wait_for()
    choose(tab, words["more"], words["save"])
    dialog = tab.get_by_role("dialog")
    assert dialog.get_by_label(words["title"], exact=True).input_value() == words["question"]
    dialog.get_by_label(words["title"], exact=True).fill(words["card"])
    dialog.get_by_label(words["name"]).fill(words["board"])
    looked_at(tab, f"boards-save-{locale[:2]}")
    dialog.get_by_role("button", name=words["keep"], exact=True).click()
    tab.get_by_role("button", name=words["open"]).click()
    tab.get_by_role("heading", name=words["board"], exact=True).wait_for()
    kept = tab.get_by_role("article", name=words["card"])
    kept.locator("[role=img] svg").wait_for()

    choose(tab, words["about"], words["edit"])
    dialog.get_by_role("button", name=words["make"]).click()
    looked_at(tab, f"boards-edit-{locale[:2]}")
    dialog.get_by_role("button", name=words["run"]).click()
    dialog.wait_for(state="detached")
    choose(tab, words["about"], words["table"])
    kept.get_by_role("cell", name="1,200.50").wait_for()
    tab.get_by_label(words["label"]).fill("2025-01-01")
    tab.get_by_role("button", name=words["apply"]).click()
    kept.get_by_role("cell", name="1,300.50").wait_for()
    with Path(file).open("a") as added:
        added.write("West,2026-03-01,7\n")
    tab.get_by_role("button", name=words["refresh"], exact=True).click()
    kept.get_by_role("cell", name="West").wait_for()
    tab.get_by_role("button", name=words["menu"]).click()
    tab.get_by_role("menuitemradio", name=words["every"]).click()
    tab.get_by_role("menu").wait_for(state="detached")
    looked_at(tab, f"boards-{locale[:2]}-{scheme}")

    tab.get_by_role("button", name=words["about"]).click()
    for item, ending in (("Excel", "xlsx"), ("PNG", "png")):
        if item == "PNG":
            tab.get_by_role("button", name=words["about"]).click()
        with tab.expect_download() as loading:
            tab.get_by_role("menuitem", name=words["file"].format(item)).click()
        data = Path(loading.value.path()).read_bytes()
        assert loading.value.suggested_filename.endswith(f".{ending}")
        if ending == "xlsx":
            rows = list(openpyxl.load_workbook(io.BytesIO(data)).active.values)
            assert [row[0] for row in rows] == ["region", "North", "South", "West"]
        else:
            assert data.startswith(b"\x89PNG") and len(data) > 2_000
        tab.get_by_role("menu").wait_for(state="detached")

    tab.get_by_role("button", name=words["share"]).click()
    dialog.get_by_role("button", name=words["make_link"]).click()
    link = dialog.get_by_label(words["link"], exact=True).input_value()
    looked_at(tab, f"boards-share-{locale[:2]}")
    tab.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    choose(tab, words["about"], words["remove"])
    dialog.get_by_role("button", name=words["remove"]).click()
    tab.get_by_text(words["empty"]).wait_for()

    path = link.removeprefix(running.url)
    reader = open_page(running, path, locale=locale, width=width, color_scheme=scheme, quiet=False)
    reader.get_by_role("cell", name="West").wait_for()
    assert reader.get_by_text("2025-01-01").is_visible()
    assert reader.get_by_role("button", name=words["refresh"], exact=True).count() == 0
    looked_at(reader, f"boards-shared-{locale[:2]}-{scheme}")

    choose(tab, words["menu"], words["delete"])
    dialog.get_by_role("button", name=words["delete"]).click()
    tab.get_by_text(words["none"]).wait_for()
    reader.reload()
    reader.get_by_role("alert").wait_for()


def test_a_card_that_fails_keeps_its_rows_and_leads_to_its_conversation(
    serve: Any, open_page: Any, tmp_path: Path
) -> None:
    file = sales(tmp_path)
    running = serve(asked(SALES), source=file)
    board = saved(running, "Sales")
    Path(file).unlink()
    tab = open_page(running, f"/b/{board}")
    kept = tab.get_by_role("article", name="Sales")
    kept.locator("[role=img] svg").wait_for()
    tab.get_by_role("button", name="Refresh", exact=True).click()
    kept.get_by_role("alert").wait_for()
    tab.get_by_text("1 card could not be refreshed.").wait_for()
    assert kept.locator("[role=img] svg").is_visible(), "its rows stay"
    looked_at(tab, "boards-failed")
    choose(tab, "More about Sales", "Open the conversation")
    card(tab)
    tab.get_by_role("link", name="Boards").click()
    tab.get_by_role("link", name="Sales").click()
    kept.wait_for()


@pytest.mark.parametrize(
    ("locale", "width", "scheme", "still", "apply", "alone"),
    [
        ("en", 1280, "light", "still those for Since 2026-01-01", "Apply", "Rows for Since 2026-01-01"),
        ("zh-CN", 390, "dark", "数据仍是参数为 起始 2026-01-01 时的结果", "应用", "数据对应的参数：起始 2026-01-01"),
    ],
)
def test_a_card_says_with_which_values_its_rows_were_read(
    serve: Any, open_page: Any, tmp_path: Path, locale: str, width: int, scheme: str, still: str, apply: str, alone: str
) -> None:
    file = Path(sales(tmp_path))
    running = serve([*asked(SALES), *asked(SALES)], source=str(file))
    board = saved(running, "Sales")
    label = "Since" if locale == "en" else "起始"
    path = f"/api/boards/{board}"
    card_id = running.client.get(path).json()["cards"][0]["id"]
    since = {"name": "since", "kind": "date", "value": "2026-01-01", "label": label}
    body = {"sql": SALES.replace("'2026-01-01'", "{{since}}"), "parameters": [since], "look": {"view": "table"}}
    assert running.client.patch(f"{path}/cards/{card_id}", json=body).status_code == 200
    tab = open_page(running, f"/b/{board}", locale=locale, width=width, color_scheme=scheme, quiet=False)
    kept = tab.get_by_role("article", name="Sales")
    kept.get_by_role("cell", name="1,200.50").wait_for()
    assert kept.get_by_text(still).count() == 0
    file.rename(tmp_path / "away.csv")
    tab.get_by_label(label).fill("2025-01-01")
    tab.get_by_role("button", name=apply).click()
    kept.get_by_role("alert").wait_for()
    kept.get_by_text(still).wait_for()
    looked_at(tab, f"boards-values-read-{locale[:2]}-{scheme}")

    (tmp_path / "away.csv").rename(file)
    thread = running.client.get(path).json()["cards"][0]["thread_id"]
    [step] = [each for steps in running.history(thread)["steps"].values() for each in steps]
    second = {"thread_id": thread, "step": step["step"], "title": "Later", "look": {}}
    later = running.client.post(f"{path}/cards", json=second).json()["id"]
    late = {**body, "parameters": [{**since, "value": "2025-01-01"}]}
    assert running.client.patch(f"{path}/cards/{later}", json=late).status_code == 200
    shown = running.client.post(f"{path}/shares", json={}).json()["path"]
    reader = open_page(running, shown, locale=locale, width=width, color_scheme=scheme)
    reader.get_by_role("article", name="Sales").get_by_text(alone).wait_for()
    reader.get_by_role("article", name="Later").get_by_text(alone.replace("2026", "2025")).wait_for()
    looked_at(reader, f"boards-values-shared-{locale[:2]}-{scheme}")

    kept.get_by_role("button", name=WORDS[locale]["about"].replace(WORDS[locale]["card"], "Sales")).click()
    tab.get_by_role("menuitem").first.click()
    kept.get_by_role("cell", name="1,300.50").wait_for()
    assert kept.get_by_text(still).count() == 0


@pytest.mark.parametrize(("locale", "said"), [("en", "This board is gone."), ("zh-CN", "这个看板已不存在。")])
def test_a_board_that_is_gone_says_so(serve: Any, open_page: Any, locale: str, said: str) -> None:
    tab = open_page(serve(["x"]), "/b/nothing", locale=locale, quiet=False)
    tab.get_by_role("alert").get_by_text(said).wait_for()


@pytest.mark.parametrize(("width", "locale", "scheme"), [(1280, "zh-CN", "light"), (390, "en", "dark")])
def test_boards_fit_each_screen(serve: Any, open_page: Any, width: int, locale: str, scheme: str) -> None:
    one = "SELECT count(*) AS launches FROM launches"
    years = "SELECT strftime('%Y', launch_date) AS year, count(*) AS launches FROM launches GROUP BY 1 ORDER BY 1"
    running = serve([*asked(one), *asked(years)])
    thread = running.answer("How many?")["thread_id"]
    running.answer("And each year?", thread_id=thread)
    steps = [each["step"] for group in running.history(thread)["steps"].values() for each in group]
    board = running.client.post("/api/boards", json={"title": "Launches 发射"}).json()["id"]
    for at, title in ((0, "All launches"), (1, "Launches each year"), (1, "Years")):
        look = {"view": "chart", "wide": title == "Launches each year"} if title != "Years" else {}
        body = {"thread_id": thread, "step": steps[at], "title": title, "look": look}
        running.client.post(f"/api/boards/{board}/cards", json=body)
    tab = open_page(running, f"/b/{board}", width=width, locale=locale, color_scheme=scheme)
    tab.locator("[role=img] svg").wait_for()
    name = f"{width}-{locale[:2]}-{scheme}"
    looked_at(tab, f"board-{name}")
    tab.goto(f"{running.url}/boards")
    tab.get_by_role("link", name="Launches 发射").wait_for()
    looked_at(tab, f"board-list-{name}")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
