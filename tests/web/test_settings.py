"""Settings: files that become sources, sources by address, models and keys."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.web.conftest import ROOT, looked_at
from tests.web.looking import answered, ask

from longthread.server.routes.sources import Encoding
from longthread.testing import ProviderEmulator
from longthread.tools.upload_names import SUFFIXES
from longthread.tools.uploads import TEXT_SUFFIXES

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **2** towns."}]


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
    page.get_by_label("Name").first.fill("demo")
    page.get_by_role("button", name="Add as a source").click()
    page.get_by_role("alert").wait_for()  # that name is taken
    page.get_by_label("Name").first.fill("my towns")
    page.get_by_role("button", name="Add as a source").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="my towns"))
    card.get_by_role("button", name="Ask").click()
    page.get_by_role("button", name="Source: my towns").wait_for()
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


def test_the_encoding_of_a_file_is_chosen(serve: Any, open_page: Any, tmp_path: Path) -> None:
    file = tmp_path / "towns.csv"
    file.write_bytes("城市,n\n臺北,3\n".encode("big5"))
    running = serve(SCRIPT)
    page = open_page(running, "/settings/sources", quiet=False)
    page.locator("input[type=file]").set_input_files(file)
    cells = page.get_by_role("region", name="First rows of towns").locator("td")
    cells.first.wait_for()
    page.get_by_label("Encoding").select_option(label="UTF-8")
    page.get_by_role("alert").get_by_text("towns.csv was not taken: it is not UTF-8.").wait_for()
    page.get_by_label("Encoding").select_option("big5hkscs")
    page.get_by_role("cell", name="臺北").wait_for()
    assert cells.all_inner_texts() == ["臺北", "3"]
    looked_at(page, "the encoding of a file")
    page.get_by_role("button", name="Add as a source").click()
    page.get_by_role("heading", name="towns").wait_for()
    [table] = running.client.get("/api/sources/towns/preview").json()["tables"]
    assert table["rows"] == [["臺北", 3]]


def test_the_page_offers_the_files_that_the_server_takes() -> None:
    """With the encodings of those that have one."""
    given = (ROOT / "web" / "src" / "upload" / "kinds.ts").read_text("utf-8")
    [kinds] = re.findall('KINDS = "(.*)"', given)
    assert tuple(kinds.split(",")) == SUFFIXES
    [texts] = re.findall(r"isText .*\((.*)\)\$/i", given)
    assert tuple(f".{each}" for each in texts.split("|")) == TEXT_SUFFIXES
    assert tuple(re.findall(r'\["(.*?)", "', given)) == get_args(Encoding)


def test_a_new_conversation_chooses_among_the_sources(serve: Any, open_page: Any, tmp_path: Path) -> None:
    for name in ("towns", "rivers"):
        (tmp_path / f"{name}.csv").write_text("name,n\nBerlin,3\n")
    running = serve(SCRIPT)
    given = {"name": "my towns", "address": str(tmp_path / "towns.csv"), "description": "Where people live"}
    assert running.client.post("/api/sources", json=given).status_code == 201
    page = open_page(running)
    chip = page.get_by_role("button", name="Source:")
    chip.click()
    page.get_by_role("menuitemradio", name="demo data").wait_for()
    looked_at(page, "the sources of a new conversation")
    page.get_by_role("menuitemradio", name="my towns Where people live").click()
    page.get_by_role("button", name="Source: my towns").click()
    page.get_by_role("menuitem", name="Another source").click()
    page.get_by_label("Path or URL").fill(str(tmp_path / "rivers.csv"))
    page.keyboard.press("Enter")
    page.get_by_role("button", name=re.compile("Source: .*rivers.csv")).click()
    chosen = page.get_by_role("menuitemradio", name="rivers.csv")
    chosen.wait_for()
    assert chosen.get_attribute("aria-checked") == "true"
    page.keyboard.press("Escape")
    ask(page, "How many towns?")
    answered(page)
    [thread] = running.client.get("/api/conversations").json()["conversations"]
    assert thread["source"].endswith("/rivers.csv")


DRAG = """([name, given]) => {
    const files = new DataTransfer();
    for (const [name, text] of given) files.items.add(new File([text], name));
    const kinds = { bubbles: true, cancelable: true, dataTransfer: files };
    return document.querySelector('main').dispatchEvent(new DragEvent(name, kinds));
}"""
TOWNS, RIVERS = ["towns.csv", "city,n\nBerlin,3\n"], ["rivers.csv", "river,km\nSpree,400\n"]


@pytest.mark.parametrize(
    ("width", "locale", "scheme", "add", "leave", "attach"),
    [
        (1280, "en", "light", "Add as a source", "Skip this file", "Attach a file to ask"),
        (390, "zh-CN", "dark", "添加为数据源", "跳过这个文件", "添加要提问的文件"),
    ],
)
def test_files_that_are_dropped_or_attached_are_asked_next(
    serve: Any, open_page: Any, tmp_path: Path, width: int, locale: str, scheme: str, add: str, leave: str, attach: str
) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.wait_for_selector("#question")
    files = [TOWNS, ["notes.pdf", "x"]]
    page.evaluate(DRAG, ["dragenter", files])
    page.get_by_text("Drop files here to ask them" if locale == "en" else "把文件拖到这里").wait_for()
    looked_at(page, f"drop-{width}-{scheme}-{locale}")
    # The browser would open what nobody takes.
    assert not page.evaluate(DRAG, ["drop", files])
    dialog = page.get_by_role("dialog")
    dialog.locator("td", has_text="Berlin").wait_for()
    for _ in range(5):
        page.keyboard.press("Tab")
        dialog.locator(":focus").wait_for()  # behind the last of its parts, the first one has it next
    looked_at(page, f"upload-{width}-{scheme}-{locale}")
    dialog.get_by_role("button", name=add).click()
    dialog.get_by_role("alert").filter(has_text="notes.pdf").wait_for()
    looked_at(page, f"upload-wrong-{width}-{scheme}-{locale}")
    dialog.get_by_role("button", name=leave).click()
    dialog.wait_for(state="detached")
    page.locator("form button", has_text="towns").wait_for()
    ask(page, "How many towns?")
    page.locator("main strong", has_text="2").wait_for()
    thread = page.url.rsplit("/", 1)[1]
    file = tmp_path / RIVERS[0]
    file.write_text(RIVERS[1])
    for button in ("Cancel" if locale == "en" else "取消", add):
        with page.expect_file_chooser() as chosen:
            page.get_by_role("button", name=attach).press("Enter")
        chosen.value.set_files(file)
        dialog.get_by_role("button", name=button, exact=True).click()
        dialog.wait_for(state="detached")
        assert page.locator("form button", has_text="rivers").count() == (button == add)
    page.locator("#question:focus").wait_for()
    page.locator("form button", has_text="rivers").wait_for()
    said = page.locator("body > [role=status]")
    assert "rivers" in said.inner_text() and "towns" not in said.inner_text()
    looked_at(page, f"upload-next-{width}-{scheme}-{locale}")
    ask(page, "How long?")
    page.locator("main strong", has_text="2").nth(1).wait_for()
    page.locator("form button", has_text="rivers").wait_for(state="detached")
    sources = [run["source"] for run in running.history(thread)["runs"]]
    assert [Path(source).name for source in sources] == ["towns.csv", "rivers.csv"]


def test_what_was_guessed_of_a_file_is_shown_before_it_is_added(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/", quiet=False)
    page.wait_for_selector("#question")
    page.evaluate(DRAG, ["drop", [["towns.csv", "city,n\nBerlin,3\nTotal,3\n"]]])
    page.get_by_role("dialog").get_by_text('towns: Its last row begins with "Total": it may be a sum').wait_for()
    looked_at(page, "upload-notes")


@pytest.mark.parametrize(
    ("width", "locale", "scheme", "add", "replace", "both", "skip"),
    [
        (1280, "en", "light", "Add as a source", "Replace", "Keep both", "Skip this file"),
        (390, "zh-CN", "dark", "添加为数据源", "替换", "两个都保留", "跳过这个文件"),
    ],
)
def test_each_file_of_an_equal_name_replaces_is_kept_beside_or_left(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str, add: str, replace: str, both: str, skip: str
) -> None:
    running = serve(SCRIPT)
    for name in (TOWNS, RIVERS):
        sent = running.client.post("/api/uploads", params={"name": name[0]}, content=name[1]).json()
        running.client.post("/api/sources", json={"uploads": [sent["upload"]]})
    page = open_page(running, "/", width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.wait_for_selector("#question")
    files = [["towns.csv", "city,n\nParis,7\n"], ["towns.csv", "city,n\nRome,8\n"], ["rivers.csv", "river\nPo\n"]]
    page.evaluate(DRAG, ["drop", files])
    dialog = page.get_by_role("dialog")
    year = str(datetime.now(UTC).year)

    def choose(file: str, button: str) -> None:
        """By the keyboard."""
        dialog.get_by_role("alert").filter(has_text=file).filter(has_text=year).wait_for()
        looked_at(page, f"upload-exists-{width}-{scheme}-{locale}")
        wanted = dialog.get_by_role("button", name=button, exact=True)
        for _ in range(10):
            if wanted.evaluate("(button) => button === document.activeElement"):
                break
            page.keyboard.press("Tab")
        wanted.and_(page.locator(":focus")).press("Enter")

    choose("towns.csv", replace)
    dialog.get_by_role("heading", name="2").wait_for()
    choose("towns.csv", both)
    dialog.locator("td", has_text="Rome").wait_for()
    dialog.get_by_role("button", name=add).click()
    choose("rivers.csv", skip)
    dialog.wait_for(state="detached")
    page.locator("form button", has_text="towns_2").wait_for()

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


def test_the_model_is_chosen_beside_the_question_and_stays_with_the_conversation(
    serve: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with ProviderEmulator(["It is **written**."], loop=True, api_key="sk-right", models=["claude-a"]) as emulator:
        own = {"anthropic_base_url": emulator.anthropic_url, "anthropic_api_key": "sk-right"}
        running = serve(None, model="demo", **own)
        page = open_page(running, quiet=False)
        page.get_by_role("button", name="Model: demo").click()
        page.get_by_role("menuitemradio", name="anthropic:claude-a").wait_for()
        page.get_by_text("Rule-based: no language model is at work", exact=True).wait_for()
        looked_at(page, "model-menu")
        page.get_by_role("menuitemradio", name="anthropic:claude-a").click()
        ask(page, "How many rockets are there?")
        answered(page)
        assert emulator.requests[-1].body["model"] == "claude-a"
        page.reload()
        chip = page.get_by_role("button", name="Model: anthropic:claude-a")
        chip.wait_for()
        page.get_by_role("button", name="Again").click()
        page.get_by_text("2/2").wait_for()
        answered(page)
        thread = running.client.get("/api/conversations").json()["conversations"][0]["id"]
        assert {run["model"] for run in running.history(thread)["runs"]} == {"anthropic:claude-a"}
        chip.click()
        page.get_by_role("menuitemradio", name="demo").click()
        ask(page, "How many launches were there?")
        answered(page, 2)
        last = running.history(thread)["runs"][-1]
        assert (last["model"], last["question"]) == ("demo", "How many launches were there?")
        looked_at(page, "model-chosen")

        page.evaluate("(key) => localStorage.setItem(key, 'openai:gone')", f"longthread.model.{thread}")
        page.reload()
        page.get_by_role("button", name="Model: openai:gone").wait_for()
        refused = {"type": "about:blank", "title": "", "status": 403, "code": "model_not_allowed", "detail": "No."}
        refused["params"] = {"model": "openai:gone", "allowed": "demo"}
        page.route("**/api/chat", lambda route: route.fulfill(status=403, json=refused), times=1)
        ask(page, "How many sites are there?")
        page.get_by_text("Nothing was asked: openai:gone is not offered any more").wait_for()
        page.get_by_role("button", name="Model: demo").wait_for()
        page.locator("form").get_by_role("alert").wait_for()
        page.press("#question", "Enter")
        answered(page, 3)
        last = running.history(thread)["runs"][-1]
        assert (last["model"], last["question"]) == ("demo", "How many sites are there?")
