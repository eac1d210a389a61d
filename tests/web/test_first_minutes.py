"""The first minutes of somebody who has never seen the page: a file that comes, the source it becomes, what is asked of
it, and what is told meanwhile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import looked_at
from tests.web.looking import answered, ask
from tests.web.test_files import COUNTRIES, DRAG, EACH_LANGUAGE, SCRIPT, TOWNS, add, said, sources

pytestmark = pytest.mark.browser

WORDS = {
    "Ask a file of your own": "对自己的文件提问",
    "Choose a source": "选择数据源",
    "Choose a source first": "请先选择数据源",
    "How many launches": "每年发射了多少次",
    "Reading 41 rows": "正在阅读 41 行数据",
    "Running the query": "正在执行查询",
    "Source: ": "数据源: ",
    "Stop": "停止",
    "The question has": "问题有",
    "Thinking about the question": "正在思考这个问题",
    "Total n by city": "按city统计n的总和",
    "Upload a file": "上传文件",
    "demo data": "示例数据",
}


def word(locale: str, text: str) -> str:
    return text if locale == "en" else WORDS[text]


def source_chip(page: Any, locale: str, name: str) -> Any:
    return page.get_by_role("button", name=f"{word(locale, 'Source: ')}{name}")


@EACH_LANGUAGE
def test_a_refusal_goes_when_its_cause_is_remedied(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT, source=None, max_question=40)
    page = open_page(running, width=width, locale=locale, color_scheme=scheme, quiet=False)
    ask(page, "How many towns?")
    refusal = page.locator("form [role=alert]")
    refusal.filter(has_text=word(locale, "Choose a source first")).wait_for()
    looked_at(page, f"first-refused-{width}-{scheme}-{locale}")
    page.fill("#question", "How many towns are there?")
    assert refusal.count() == 1  # another question has no source either
    page.evaluate(DRAG, ["drop", [TOWNS]])
    dialog = page.get_by_role("dialog")
    dialog.locator("td", has_text="Paris").wait_for()
    # The dialog begins at what it is for, not at what leaves the file out.
    main = dialog.get_by_role("button", name=said(locale, "Add"), exact=True)
    main.and_(page.locator(":focus")).wait_for()
    looked_at(page, f"first-dialog-{width}-{scheme}-{locale}")
    page.keyboard.press("Enter")
    dialog.wait_for(state="detached")
    refusal.wait_for(state="detached")
    ask(page, "How many towns? " * 3)
    refusal.filter(has_text=word(locale, "The question has")).wait_for()
    page.fill("#question", "How many?")
    refusal.wait_for(state="detached")
    page.press("#question", "Enter")
    page.locator("main strong", has_text="2").wait_for()


@EACH_LANGUAGE
def test_a_file_is_offered_where_one_looks_for_it(
    serve: Any, open_page: Any, tmp_path: Path, width: int, locale: str, scheme: str
) -> None:
    file = tmp_path / TOWNS[0]
    file.write_text(TOWNS[1])
    page = open_page(serve(SCRIPT), width=width, locale=locale, color_scheme=scheme, quiet=False)
    own = page.get_by_role("button", name=word(locale, "Ask a file of your own"))
    own.wait_for()
    looked_at(page, f"first-screen-{width}-{scheme}-{locale}")
    dialog = page.get_by_role("dialog")
    for way in ("line", "menu"):
        with page.expect_file_chooser() as chosen:
            if way == "line":
                own.press("Enter")
            else:
                source_chip(page, locale, "").click()
                page.get_by_role("menuitem", name=word(locale, "Upload a file")).wait_for()
                looked_at(page, f"first-menu-{width}-{scheme}-{locale}")
                page.get_by_role("menuitem", name=word(locale, "Upload a file")).click()
        chosen.value.set_files(file)
        dialog.locator("td", has_text="Paris").wait_for()
        dialog.get_by_role("button", name=said(locale, "Cancel")).click()
        dialog.wait_for(state="detached")


def test_who_may_name_no_file_is_offered_none(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT))
    page.route("**/api/info", lambda route: route.fulfill(json=route.fetch().json() | {"sources": ["demo"]}))
    page.reload()
    page.get_by_role("button", name="How many launches").wait_for()
    assert page.get_by_role("button", name="Ask a file of your own").count() == 0


@EACH_LANGUAGE
def test_a_new_conversation_begins_with_the_last_source_or_the_only_one(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT, source=None)
    add(running, TOWNS)
    page = open_page(running, width=width, locale=locale, color_scheme=scheme, quiet=False)
    source_chip(page, locale, "towns.csv").wait_for()
    page.get_by_role("button", name=word(locale, "Total n by city")).wait_for()
    looked_at(page, f"first-only-{width}-{scheme}-{locale}")
    add(running, COUNTRIES)
    page.reload()
    source_chip(page, locale, word(locale, "Choose a source")).click()  # which of two, nobody knows
    page.get_by_role("menuitemradio", name="countries").click()
    ask(page, "How many countries?")
    page.locator("main strong", has_text="2").wait_for()
    page.goto(running.url)
    source_chip(page, locale, "countries.csv").wait_for()
    assert len(sources(running)) == 2
    # What is gone is not asked.
    assert running.client.delete("/api/sources/countries").status_code == 204
    page.reload()
    source_chip(page, locale, "towns.csv").wait_for()
    ask(page, "How many towns?")
    page.locator("main strong", has_text="2").wait_for()


def test_a_question_waits_until_its_source_is_known(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT, source=None)
    add(running, TOWNS)
    page = open_page(running)
    source_chip(page, "en", "towns.csv").wait_for()
    held: list[Any] = []
    page.route("**/api/sources", lambda route: held.append(route))
    page.reload()
    page.locator("#question").fill("How many towns?")
    page.keyboard.press("Enter")
    while not held:
        page.wait_for_timeout(20)
    with page.expect_request(
        lambda request: request.method == "POST" and "question" in (request.post_data or "")
    ) as sent:
        held.pop().continue_()
    assert sent.value.post_data_json["source"] == "towns"


def test_the_last_source_comes_before_the_sample_and_behind_one_that_the_server_was_given(
    serve: Any, open_page: Any, tmp_path: Path
) -> None:
    (tmp_path / "rivers.csv").write_text("river,km\nSpree,400\n")
    running = serve(SCRIPT)
    add(running, TOWNS)
    page = open_page(running)
    source_chip(page, "en", "demo data").click()
    page.get_by_role("menuitemradio", name="towns").click()
    ask(page, "How many towns?")
    answered(page)
    page.goto(running.url)
    source_chip(page, "en", "towns.csv").wait_for()
    running.stop()
    again = serve(SCRIPT, source=str(tmp_path / "rivers.csv"), port=int(running.url.rsplit(":", 1)[1]))
    page.goto(again.url)
    source_chip(page, "en", "").filter(has_text="rivers.csv").wait_for()


@EACH_LANGUAGE
def test_suggestions_have_their_place_before_they_come(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    running = serve(SCRIPT, source=None)
    add(running, TOWNS)
    page = open_page(running, width=width, locale=locale, color_scheme=scheme, quiet=False)
    held: list[Any] = []
    page.route("**/api/info", lambda route: held.append(route))
    page.route("**/preview", lambda route: held.append(route))
    page.reload()
    places = page.locator("main ul[aria-hidden=true] li")
    places.nth(2).wait_for()
    questions = page.locator("main section li button")
    assert questions.count() == 0  # none that another takes the place of
    while not held:
        page.wait_for_timeout(20)
    held.pop().continue_()
    own = page.get_by_role("button", name=word(locale, "Ask a file of your own"))
    own.wait_for()
    while not held:
        page.wait_for_timeout(20)
    assert (places.count(), questions.count()) == (3, 0)
    looked_at(page, f"first-awaited-{width}-{scheme}-{locale}")
    before = [own.bounding_box()["y"], places.first.bounding_box()["y"]]
    held.pop().continue_()
    page.get_by_role("button", name=word(locale, "Total n by city")).wait_for()
    assert [own.bounding_box()["y"], questions.first.bounding_box()["y"]] == before
    # Those of another source do take their place.
    add(running, ["rivers.csv", "river,n\nSpree,400\n"])
    shown = questions.all_inner_texts()
    source_chip(page, locale, "towns.csv").click()
    page.get_by_role("menuitemradio", name=word(locale, "demo data")).click()
    page.get_by_role("button", name=word(locale, "How many launches")).wait_for()
    assert questions.all_inner_texts() != shown


@EACH_LANGUAGE
def test_one_suggestion_leaves_no_gap(serve: Any, open_page: Any, width: int, locale: str, scheme: str) -> None:
    running = serve(SCRIPT, source=None)
    add(running, ["names.csv", "name\nSpree\n"])
    page = open_page(running, width=width, locale=locale, color_scheme=scheme, quiet=False)
    held: list[Any] = []
    address = page.url
    page.goto("about:blank")  # so that the first page asks for no preview any more
    page.route("**/preview", lambda route: held.append(route))
    page.goto(address)
    places, questions = page.locator("main ul[aria-hidden=true] li"), page.locator("main section li button")
    own = page.get_by_role("button", name=word(locale, "Ask a file of your own"))
    own.wait_for()
    while not held:
        page.wait_for_timeout(20)
    first = places.first.bounding_box()["y"]
    held.pop().continue_()
    questions.first.wait_for()
    looked_at(page, f"first-one-{width}-{scheme}-{locale}")
    one = questions.first.bounding_box()
    assert (questions.count(), one["y"]) == (1, first)
    assert own.bounding_box()["y"] - (one["y"] + one["height"]) < 16


ROCKETS = {"thought": "", "action": "run_sql", "args": {"sql": "SELECT name FROM rockets"}}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@EACH_LANGUAGE
def test_what_a_run_does_is_told_while_it_does_it(
    serve: Any, open_page: Any, width: int, locale: str, scheme: str
) -> None:
    replies = [ROCKETS, {"thought": "", "action": "run_sql", "args": {"sql": ENDLESS}}]

    def reply(_: Any) -> Any:
        running.model.shut.set()  # the next one waits
        return replies.pop(0)

    running = serve(reply)
    page = open_page(running, width=width, locale=locale, color_scheme=scheme, quiet=False)
    page.clock.install()
    page.reload()
    running.model.shut.set()
    ask(page, "Which rockets?")
    now = page.locator("article p").filter(has_text=word(locale, "Thinking about the question"))
    now.wait_for()
    heard = page.locator("main > [role=status]")
    page.clock.fast_forward(20_000)
    now.filter(has_text=re.compile(r"\d+ (s|秒)$")).wait_for()
    looked_at(page, f"now-thinks-{width}-{scheme}-{locale}")
    told = heard.filter(has_text=word(locale, "Thinking about the question")).inner_text()
    assert not re.search(r"\d", told), "the seconds are seen, and not said each time"
    for words in ("Reading 41 rows", "Running the query"):
        running.model.shut.clear()
        page.locator("article").get_by_text(word(locale, words)).wait_for()
        page.clock.fast_forward(20_000)
        heard.filter(has_text=word(locale, words)).wait_for(state="attached")
        looked_at(page, f"now-{words.split()[0].lower()}-{width}-{scheme}-{locale}")
    page.get_by_role("button", name=word(locale, "Stop")).click()
    page.locator("form button[type=submit]").filter(has_text=re.compile("Send|发送")).wait_for()
