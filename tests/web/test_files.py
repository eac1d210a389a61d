"""Files that are dropped, attached or pasted: looked at, added together or to a source, replaced, asked."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.web.conftest import ROOT, looked_at
from tests.web.looking import answered, ask

from longthread.server.routes.sources import Encoding
from longthread.tools.upload_files import SUFFIXES
from longthread.tools.uploads import TEXT_SUFFIXES

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **2** towns."}]
EACH_LANGUAGE = pytest.mark.parametrize(
    ("width", "locale", "scheme"), [(1280, "en", "light"), (390, "zh-CN", "dark")], ids=["en", "zh"]
)
WORDS = {
    "Add": "添加",
    "Add 2 files": "添加 2 个文件",
    "Attach files": "添加文件",
    "Cancel": "取消",
    "Drop files here to chat with them": "把文件拖到这里",
    "Keep both": "两个都保留",
    "Leave out": "不添加",
    "Paste as text": "粘贴为文本",
    "Replace": "替换",
    "Together with": "与 ",
    "change": "更改",
    "date": "日期",
    "number": "数字",
    "text": "文本",
    "Total n by capital": "按capital统计n的总和",
    "Total n by month": "按月统计n的总和",
}
DRAG = """([name, given]) => {
    const files = new DataTransfer();
    for (const [name, text] of given) files.items.add(new File([text], name));
    const kinds = { bubbles: true, cancelable: true, dataTransfer: files };
    return document.querySelector('main').dispatchEvent(new DragEvent(name, kinds));
}"""
PASTE = """(kinds) => {
    const data = new DataTransfer();
    for (const [kind, text] of Object.entries(kinds)) data.setData(kind, text);
    const field = document.querySelector('#question');
    const event = new ClipboardEvent('paste', { bubbles: true, cancelable: true, clipboardData: data });
    return field.dispatchEvent(event);
}"""
TOWNS = ["towns.csv", "city,country,n,day\nBerlin,DE,3,2026-01-31\nParis,FR,2,2026-02-01\n"]
COUNTRIES = ["countries.csv", "country,capital\nDE,Berlin\nFR,Paris\n"]


def said(locale: str, words: str) -> str:
    return words if locale == "en" else WORDS[words]


def sources(running: Any) -> dict[str, list[str]]:
    found = running.client.get("/api/sources").json()["sources"]
    return {each["name"]: each["files"] for each in found if each["files"]}


def add(running: Any, *files: list[str]) -> None:
    ids = [
        running.client.post("/api/uploads", params={"name": name}, content=text).json()["upload"]
        for name, text in files
    ]
    assert running.client.post("/api/sources", json={"uploads": ids}).status_code == 201


def test_the_page_offers_the_files_that_the_server_takes() -> None:
    """With the encodings of those that have one."""
    given = (ROOT / "web" / "src" / "upload" / "kinds.ts").read_text("utf-8")
    [kinds] = re.findall('KINDS = "(.*)"', given)
    assert tuple(kinds.split(",")) == SUFFIXES
    [texts] = re.findall(r"isText .*\((.*)\)\$/i", given)
    assert tuple(f".{each}" for each in texts.split("|")) == TEXT_SUFFIXES
    assert tuple(re.findall(r'\["(.*?)", "', given)) == get_args(Encoding)


def test_a_file_is_looked_at_becomes_a_source_is_asked_and_removed(serve: Any, open_page: Any, tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_text('city,n\nBerlin,3\n"<img src=x>",\n')
    running = serve(SCRIPT)
    page = open_page(running, "/settings/sources", quiet=False)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Cancel").click()
    page.locator("input[type=file]").set_input_files(file)
    cells = page.get_by_role("region", name="First rows of towns").locator("td")
    cells.first.wait_for()
    assert cells.all_inner_texts() == ["Berlin", "3", "<img src=x>", "NULL"]
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("demo")
    dialog.get_by_role("button", name="Add").click()
    dialog.get_by_role("alert").wait_for()  # that name is taken
    dialog.get_by_label("Name").fill("my towns")
    dialog.get_by_role("button", name="Add").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="my towns"))
    card.get_by_role("button", name="Ask").click()
    page.get_by_role("button", name="Source: towns.csv").wait_for()
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


@EACH_LANGUAGE
def test_files_that_are_dropped_together_are_one_source(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.wait_for_selector("#question")
    files = [TOWNS, COUNTRIES, ["notes.pdf", "x"]]
    page.evaluate(DRAG, ["dragenter", files])
    page.get_by_text(said(locale, "Drop files here to chat with them")).wait_for()
    looked_at(page, f"drop-{width}-{scheme}-{locale}")
    # The browser would open what nobody takes.
    assert not page.evaluate(DRAG, ["drop", files])
    dialog = page.get_by_role("dialog")
    for text in ("DE", "capital"):
        dialog.locator("th, td", has_text=text).first.wait_for()
    dialog.get_by_role("alert").filter(has_text="notes.pdf").wait_for()
    types = [said(locale, each) for each in ("text", "text", "number", "date", "text", "text")]
    dialog.locator("th small").nth(5).wait_for()
    assert dialog.locator("th small").all_inner_texts() == types
    for _ in range(7):
        page.keyboard.press("Tab")
        dialog.locator(":focus").wait_for()  # behind the last of its parts, the first one has it next
    looked_at(page, f"files-{width}-{scheme}-{locale}")
    dialog.get_by_role("button", name=said(locale, "Add 2 files")).click()
    dialog.locator("td").first.wait_for(state="detached")
    looked_at(page, f"files-wrong-{width}-{scheme}-{locale}")
    dialog.get_by_role("button", name=f"{said(locale, 'Leave out')} notes.pdf").click()
    dialog.wait_for(state="detached")
    assert sources(running) == {"towns_countries": ["countries.csv", "towns.csv"]}
    page.locator("form button", has_text="countries.csv, towns.csv").wait_for()
    page.get_by_role("button", name=said(locale, "Total n by month")).wait_for()
    looked_at(page, f"files-suggested-{width}-{scheme}-{locale}")
    page.get_by_role("button", name=said(locale, "Total n by capital")).click()
    page.locator("main strong", has_text="2").wait_for()
    page.locator("form").get_by_text("countries.csv, towns.csv").wait_for()
    looked_at(page, f"files-asked-{width}-{scheme}-{locale}")


@EACH_LANGUAGE
def test_a_file_that_comes_to_a_conversation_is_asked_with_its_files(
    serve: Any, open_page: Any, tmp_path: Path, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT)
    add(running, TOWNS)
    thread = running.answer("Hello?", source="towns")["thread_id"]
    page = open_page(running, f"/c/{thread}", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.locator("form").get_by_text("towns.csv").wait_for()
    file = tmp_path / COUNTRIES[0]
    file.write_text(COUNTRIES[1])
    dialog = page.get_by_role("dialog")
    for button in ("Cancel", "Add"):
        with page.expect_file_chooser() as chosen:
            page.get_by_role("button", name=said(locale, "Attach files")).press("Enter")
        chosen.value.set_files(file)
        dialog.locator("td", has_text="Paris").wait_for()
        assert dialog.get_by_role("checkbox", name=said(locale, "Together with")).is_checked()
        looked_at(page, f"files-together-{width}-{scheme}-{locale}")
        dialog.get_by_role("button", name=said(locale, button), exact=True).click()
        dialog.wait_for(state="detached")
        names = ["towns.csv"] if button == "Cancel" else ["towns.csv", "countries.csv"]
        assert sources(running) == {"towns": names}
    page.locator("#question:focus").wait_for()
    page.locator("form").get_by_text("towns.csv, countries.csv").wait_for()
    ask(page, "And now?")
    page.locator("main strong", has_text="2").nth(1).wait_for()
    assert len({run["source"] for run in running.history(thread)["runs"]}) == 1
    looked_at(page, f"files-joined-{width}-{scheme}-{locale}")
    page.evaluate(DRAG, ["drop", [["rivers.csv", "river,km\nSpree,400\n"]]])
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name=said(locale, "Add"), exact=True).click()
    page.locator("form button", has_text="rivers").wait_for()
    ask(page, "How long?")
    page.locator("form").get_by_text("rivers.csv").wait_for()
    assert Path(running.history(thread)["runs"][-1]["source"]).name == "rivers.csv"


@pytest.mark.parametrize(("width", "height"), [(390, 560), (1280, 420)])
def test_add_is_in_sight_in_a_low_window(serve: Any, open_page: Any, width: int, height: int) -> None:
    running = serve(SCRIPT)
    rows = "".join(f"{n},{n}\n" for n in range(20))
    page = open_page(running, "/", viewport={"width": width, "height": height}, quiet=False)
    page.wait_for_selector("#question")
    page.evaluate(DRAG, ["drop", [[f"f{n}.csv", f"a,b{n}\n{rows}"] for n in range(4)]])
    dialog = page.get_by_role("dialog")
    add_all = dialog.get_by_role("button", name="Add 4 files")
    add_all.wait_for()
    for part in (dialog.get_by_role("heading", name="f0.csv"), dialog.locator("td").last):
        part.scroll_into_view_if_needed()
        box = add_all.bounding_box()
        assert box["y"] + box["height"] <= height
        # Nothing is above it.
        assert add_all.evaluate(
            "(button) => { const { x, y } = button.getBoundingClientRect();"
            " return button.contains(document.elementFromPoint(x + 5, y + 5)); }"
        )
    looked_at(page, f"files-low-{width}")


@EACH_LANGUAGE
def test_a_table_that_is_pasted_is_offered_as_a_file(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.wait_for_selector("#question")
    page.fill("#question", "Look: ")
    for text in ("How many?", "one\ttwo", "a\nb\nc"):
        assert page.evaluate(PASTE, {"text/plain": text}), "left to the browser"
    dialog = page.get_by_role("dialog")
    field = page.locator("#question")
    for text in ("\tif x:\n\treturn 1", "a\tb\nc\td"):
        page.fill("#question", "Look: ")
        assert not page.evaluate(PASTE, {"text/plain": text})
        if "return" not in text:
            dialog.locator("td", has_text="d").wait_for()
            looked_at(page, f"files-pasted-{width}-{scheme}-{locale}")
            dialog.get_by_role("button", name=said(locale, "Paste as text")).click()
            dialog.wait_for(state="detached")
        page.wait_for_function("(text) => document.querySelector('#question').value === text", arg=f"Look: {text}")
    assert sources(running) == {}
    field.fill("")
    cells = "<tr><td>city</td><td>n</td></tr><tr><td>Berlin</td><td>3</td></tr>"
    styled = f"<style>td {{ color: red }}</style><table style='width: 9px'>{cells}</table>"
    for html in (styled, f"<table>{cells}</table>"):
        page.evaluate(PASTE, {"text/plain": "city\nn\nBerlin\n3", "text/html": html})
        dialog.locator("td", has_text="Berlin").wait_for()
        if (box := dialog.get_by_role("checkbox")).count():
            box.uncheck()
        dialog.get_by_role("button", name=said(locale, "Add"), exact=True).click()
        dialog.wait_for(state="detached")
    assert len(sources(running)) == 2
    assert field.input_value() == ""
    page.evaluate(PASTE, {"text/plain": "Dear Ann", "text/html": f"<p>Dear Ann</p><table>{cells}</table>"})
    page.wait_for_function("() => document.querySelector('#question').value === 'Dear Ann'")


def test_the_encoding_of_a_file_is_chosen(serve: Any, open_page: Any, tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_bytes("城市,n\n臺北,3\n".encode("big5"))
    running = serve(SCRIPT)
    page = open_page(running, "/settings/sources", quiet=False)
    page.locator("input[type=file]").set_input_files(file)
    cells = page.get_by_role("region", name="First rows of towns").locator("td")
    cells.first.wait_for()
    assert page.get_by_label("Encoding").count() == 0
    page.get_by_role("button", name="change").click()
    page.get_by_label("Encoding").select_option(label="UTF-8")
    page.get_by_role("alert").get_by_text("towns.csv was not taken: it is not UTF-8.").wait_for()
    page.get_by_label("Encoding").select_option("big5hkscs")
    page.get_by_role("cell", name="臺北").wait_for()
    assert cells.all_inner_texts() == ["臺北", "3"]
    looked_at(page, "the encoding of a file")
    with page.expect_response(lambda each: each.request.method == "POST" and each.url.endswith("/api/sources")):
        page.get_by_role("button", name="Add", exact=True).last.click()
    page.get_by_role("heading", name="towns").wait_for()
    [table] = running.client.get("/api/sources/towns/preview").json()["tables"]
    assert table["rows"] == [["臺北", 3]]


GUESSED = "城市,price,cost\n北京,3 €,4 €\n上海,5 €,6 €\n合计,8 €,10 €\n"


@EACH_LANGUAGE
def test_what_was_guessed_of_a_file_is_told_once_and_can_be_changed(
    serve: Any, open_page: Any, tmp_path: Path, width: int, locale: str, scheme: str
) -> None:
    (tmp_path / "prices.csv").write_bytes(GUESSED.encode("gb18030"))
    running = serve(SCRIPT)
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name=said(locale, "Attach files")).click()
    chosen.value.set_files(tmp_path / "prices.csv")
    dialog = page.get_by_role("dialog")
    dialog.locator("td", has_text="北京").wait_for()
    told = {
        "en": [
            "Read as GB18030 · change",
            "The last row begins with “合计”: it may be a sum of the others",
            "price, cost: in €, which is not part of the numbers",
        ],
        "zh-CN": [
            "按 GB18030 读取 · 更改",
            "最后一行以“合计”开头，可能是其他各行的合计",
            "price, cost: 单位是 €，数字不含单位",
        ],
    }[locale]
    assert dialog.locator("section p").all_inner_texts() == told
    looked_at(page, f"files-notes-{width}-{scheme}-{locale}")
    dialog.get_by_role("button", name=said(locale, "change")).click()
    dialog.get_by_role("combobox").select_option("big5hkscs")
    dialog.locator("td", has_text="北京").wait_for(state="detached")


def test_the_page_says_each_note_in_its_language() -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "src/longthread/tools/analysis").rglob("*.py"))
    codes = set(re.findall(r'Note\([^()]*(?:\([^()]*\)[^()]*)*?, "(\w+)"', code))
    codes |= set(re.findall(r'_left_out\(about.name, "[^"]*", "(\w+)"', code))
    for language in ("en", "zh"):
        messages = (ROOT / "web" / "src" / "i18n" / language / "files.ts").read_text("utf-8")
        assert set(re.findall(r'"note\.(\w+)"', messages)) == codes


@EACH_LANGUAGE
def test_each_file_of_an_equal_name_replaces_is_kept_beside_or_left(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT)
    rivers = ["rivers.csv", "river,km\nSpree,400\n"]
    add(running, TOWNS)
    add(running, rivers)
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.wait_for_selector("#question")
    page.evaluate(DRAG, ["drop", [["towns.csv", "city,n\nParis,7\n"]]])
    dialog = page.get_by_role("dialog")
    year = str(datetime.now(UTC).year)

    def choose(file: str, button: str) -> None:
        """By the keyboard."""
        dialog.get_by_role("alert").filter(has_text=file).filter(has_text=year).wait_for()
        looked_at(page, f"files-exists-{width}-{scheme}-{locale}")
        wanted = dialog.get_by_role("button", name=said(locale, button), exact=True)
        for _ in range(10):
            if wanted.evaluate("(button) => button === document.activeElement"):
                break
            page.keyboard.press("Tab")
        wanted.and_(page.locator(":focus")).press("Enter")

    choose("towns.csv", "Replace")
    dialog.wait_for(state="detached")
    page.locator("form button", has_text="towns.csv").wait_for()
    page.evaluate(DRAG, ["drop", [["towns.csv", "city,n\nRome,8\n"], ["rivers.csv", "river\nPo\n"]]])
    dialog.get_by_role("alert").nth(1).wait_for()
    part = dialog.get_by_role("region", name="towns.csv", exact=True)
    part.get_by_role("button", name=said(locale, "Keep both")).click()
    dialog.locator("td", has_text="Rome").wait_for()
    dialog.get_by_role("button", name=f"{said(locale, 'Leave out')} rivers.csv").click()
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name=said(locale, "Add"), exact=True).click()
    dialog.wait_for(state="detached")
    page.locator("form button", has_text="towns (2).csv").wait_for()

    def first(source: str) -> Any:
        return running.client.get(f"/api/sources/{source}/preview").json()["tables"][0]["rows"]

    assert [first(each) for each in ("towns", "towns_2", "rivers")] == [[["Paris", 7]], [["Rome", 8]], [["Spree", 400]]]


def test_an_upload_is_cancelled_and_tried_again_when_the_server_was_away(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/", quiet=False)
    page.wait_for_selector("#question")
    held: list[Any] = []
    page.route("**/api/uploads?*", lambda route: held.append(route))
    page.evaluate(DRAG, ["drop", [TOWNS]])
    page.get_by_role("progressbar", name="towns.csv").wait_for()
    held.pop().abort()
    page.get_by_role("alert").filter(has_text="does not answer").wait_for()
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").wait_for(state="detached")
    assert [each["name"] for each in running.client.get("/api/sources").json()["sources"]] == ["demo"]


def test_a_database_among_files_becomes_a_source_of_its_own(serve: Any, open_page: Any, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("CREATE TABLE orders AS SELECT 1 AS amount")
    database.close()
    (tmp_path / TOWNS[0]).write_text(TOWNS[1])
    running = serve(SCRIPT)
    page = open_page(running, "/", quiet=False)
    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name="Attach files").click()
    chosen.value.set_files([tmp_path / "shop.sqlite", tmp_path / TOWNS[0]])
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("shop.sqlite is a database: it becomes a source of its own.").wait_for()
    dialog.get_by_role("button", name="Add 2 files").click()
    dialog.wait_for(state="detached")
    assert sources(running) == {"shop": ["shop.sqlite"], "towns": ["towns.csv"]}
    page.get_by_role("button", name="Source: towns.csv").wait_for()
    ask(page, "How many towns?")
    answered(page)
