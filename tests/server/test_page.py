"""The page in a real browser."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import define_clerk, talked
from tests.server.looking import ask, shape

from longthread.server.app import WEB

pytestmark = pytest.mark.browser

LOOK = {"thought": "First, which tables there are.", "action": "list_tables"}
COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM rockets -- all"}}
ANSWER = {"finish": "There are **41** rockets [q1].\n\n- `one`\n- two\n\n| a | b |\n|---|--:|\n| x | 41 |"}
SCRIPT = [LOOK, COUNT, ANSWER]


@pytest.fixture
def backend() -> str:
    """The page knows the API alone, and that is tested on every backend."""
    return "sqlite"


def test_a_question_is_asked_and_answered_step_by_step(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT))
    ask(page, "How many rockets are there?")
    page.wait_for_selector(".meta")
    assert page.locator(".step-title").all_inner_texts() == ["Looked at the tables", "Ran query q1"]
    assert page.locator(".step .code code").inner_text() == "SELECT count(*) AS n FROM rockets -- all"
    assert page.locator(".sql-word").all_inner_texts() == ["SELECT", "AS", "FROM"]
    assert page.locator(".step .result td").all_inner_texts() == ["41"]
    assert page.locator(".answer strong").inner_text() == "41"
    assert page.locator(".answer li").all_inner_texts() == ["one", "two"]
    assert page.locator(".answer td").all_inner_texts() == ["x", "41"]
    assert page.locator(".meta .badge").inner_text() == "demo model"
    page.wait_for_selector("#list .name")
    assert page.locator("#list .name").all_inner_texts() == ["How many rockets are there?"]
    assert page.locator("#title").inner_text() == "How many rockets are there?"
    assert "#/c/" in page.url


def test_a_page_that_is_loaded_again_shows_the_same(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT))
    ask(page, "How many rockets are there?")
    page.wait_for_selector(".meta")
    live = shape(page)
    assert "Ran query q1" in " ".join(live)
    page.reload()
    page.wait_for_selector(".meta")
    assert shape(page) == live


def test_a_reload_and_a_second_tab_in_the_middle_see_the_run_to_its_end(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running)
    running.model.shut.set()
    ask(page, "How many rockets are there?")
    page.wait_for_selector(".working")
    page.wait_for_function("() => location.hash.startsWith('#/c/')")
    page.reload()
    page.wait_for_selector(".working")
    second = open_page(running, page.evaluate("'/' + location.hash"))
    second.wait_for_selector("#stop:not([hidden])")
    running.model.shut.clear()
    for each in (page, second):
        each.wait_for_selector(".meta")
    assert shape(page) == shape(second)


def test_a_label_leads_to_its_query(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT))
    ask(page, "How many?")
    page.wait_for_selector(".meta")
    step = page.locator(".step[data-query=q1]")
    step.locator("summary").click()
    assert step.locator("details").get_attribute("open") is None
    page.locator(".answer .cite").click()
    assert step.locator("details").get_attribute("open") == ""
    page.wait_for_selector(".step.flash[data-query=q1]")
    assert step.locator("summary").evaluate("node => node === document.activeElement")


def test_a_run_is_stopped_and_continued(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running)
    running.model.shut.set()
    ask(page, "How many?")
    page.click("#stop")
    page.wait_for_selector(".card")
    assert page.locator(".card strong").inner_text() == "Stopped"
    page.wait_for_selector("#stop", state="hidden")
    running.model.shut.clear()
    page.click(".card .go")
    page.wait_for_selector(".answer strong")
    assert page.locator(".turn").count() == 2
    assert page.locator(".go").count() == 0, "only the newest turn can be gone on with"


def test_questions_wait_below_the_answer_under_way_and_can_be_removed(serve: Any, open_page: Any) -> None:
    running = serve([{"finish": "The **first**."}, {"finish": "The **second**."}])
    page = open_page(running)
    running.model.shut.set()
    ask(page, "One?")
    page.wait_for_selector(".turn .working")
    for n, question in enumerate(("Two?", "Three?"), 1):
        ask(page, question)
        page.wait_for_selector(f".queue li >> nth={n - 1}")
    page.reload()
    page.wait_for_selector(".queue li >> nth=1")
    assert [each.split()[-1] for each in page.locator(".queue .question").all_inner_texts()] == ["Two?", "Three?"]
    page.click(".queue li:last-child button")
    page.wait_for_selector(".queue li >> nth=1", state="detached")
    running.model.shut.clear()
    page.wait_for_selector(".turn:nth-child(2) .answer strong")
    assert page.locator(".answer strong").all_inner_texts() == ["first", "second"]
    assert page.locator(".queue li").count() == 0
    before = shape(page)
    page.reload()
    page.wait_for_selector(".turn:nth-child(2) .answer strong")
    assert shape(page) == before


def test_a_question_that_waits_for_room_is_stopped_before_it_begins(serve: Any, open_page: Any) -> None:
    running = serve([{"finish": "The **first**."}, {"finish": "Never said."}], max_runs=1)
    running.model.shut.set()
    running.ask("One?")
    page = open_page(running)
    ask(page, "Two?")
    page.wait_for_selector(".turn .working")
    page.click("#stop")
    page.wait_for_selector("#stop", state="hidden")
    assert page.locator(".turn").count() == 0
    running.model.shut.clear()
    [listed] = [each for each in running.client.get("/api/conversations").json()["conversations"] if not each["status"]]
    assert (listed["label"], listed["queued"]) == ("Two?", 0)


def test_a_failed_run_shows_what_to_do(serve: Any, open_page: Any) -> None:
    page = open_page(serve([RuntimeError("no luck")], retry_attempts=0))
    ask(page, "How many?")
    page.wait_for_selector(".card.bad")
    said = page.locator(".card.bad p").inner_text()
    assert said == "The model demo failed: no luck. The conversation is kept. Continue tries again."
    assert page.locator(".card .go").is_visible()
    page.reload()
    page.wait_for_selector(".card.bad")
    assert page.locator(".card.bad p").inner_text() == said
    page.click("#language")
    page.wait_for_selector(".card.bad p:has-text('模型')")
    assert page.locator(".card.bad p").inner_text() == "模型 demo 出错：no luck. 会话已保留，点“继续”重试。"


def test_what_the_server_refuses_is_told_in_words_for_the_page(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT, source=None), quiet=False)
    ask(page, "How many?")
    page.wait_for_selector("#problem:not([hidden])")
    assert page.locator("#problem").inner_text() == (
        "Say which source to ask: a file, a folder, the URL of a database, or demo."
    )
    page.route("**/api/chat", lambda route: route.fulfill(status=502, body="<html>Bad gateway</html>"))
    page.press("#question", "Enter")
    page.wait_for_function("() => document.querySelector('#problem').textContent.includes('502')")
    assert page.locator("#problem").inner_text() == "The server could not answer (HTTP 502). Try again."


def test_a_wrong_source_is_named_and_the_question_stays(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT), quiet=False)
    page.fill("#source", "/no/such/file.sqlite")
    ask(page, "How many?")
    page.wait_for_selector("#problem:not([hidden])")
    assert "/no/such/file.sqlite" in page.locator("#problem").inner_text()
    assert page.input_value("#question") == "How many?"
    page.fill("#source", "demo")
    page.press("#question", "Enter")
    page.wait_for_selector(".meta")
    assert page.locator("#problem").is_hidden()


EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def test_what_a_database_holds_is_text(serve: Any, open_page: Any, tmp_path: Path) -> None:
    source = tmp_path / "evil.sqlite"
    with sqlite3.connect(source) as database:
        database.execute(f'CREATE TABLE "{EVIL.replace(chr(34), "")}" (a)')
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (?)", [EVIL])
    database.close()
    sql = f"SELECT a, a AS '{EVIL.replace(chr(39), '')}' FROM t -- {EVIL}"
    script = [
        {"thought": EVIL, "action": "list_tables"},
        {"thought": "", "action": "describe_table", "args": {"table": EVIL}},
        {"thought": "", "action": "run_sql", "args": {"sql": sql}},
        {
            "finish": f"{EVIL} **{EVIL}** `{EVIL}` [q1]\n\n| {EVIL} |\n|---|\n| {EVIL} |\n\n"
            f"```{EVIL}\n{EVIL}\n```\n# {EVIL}"
        },
    ]
    running = serve(script, source=str(source))
    page = open_page(running)
    ask(page, EVIL)
    page.wait_for_selector(".meta")
    page.fill("#search", "img")
    page.wait_for_selector("#list li")
    page.reload()
    page.wait_for_selector(".meta")
    for details in page.locator(".step details:not([open]) summary").all():
        details.click()
    assert page.locator("#thread img, #thread script, #list img, #list script").count() == 0
    assert page.locator(".result td").first.inner_text() == EVIL
    assert page.locator(".question").inner_text().endswith(EVIL)
    assert not page.title().startswith("owned")


def test_enter_that_chooses_a_word_does_not_send(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT))
    page.fill("#question", "运载火箭")
    composing = "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true})"
    assert page.evaluate(f"document.getElementById('question').dispatchEvent({composing})") is True
    page.press("#question", "Shift+Enter")
    assert page.input_value("#question") == "运载火箭\n"
    assert page.locator(".turn").count() == 0
    page.press("#question", "Enter")
    page.wait_for_selector(".meta")


def test_a_damaged_conversation_is_named_and_can_be_deleted(serve: Any, open_page: Any, store_address: str) -> None:
    running = serve(SCRIPT)
    ids = [running.answer(question)["thread_id"] for question in ("How many rockets?", "运载火箭有哪些？")]
    with closing(sqlite3.connect(store_address)) as store, store:
        assert store.execute("UPDATE threads SET created_at = 'zzz' WHERE id = ?", ids[:1]).rowcount == 1
    page = open_page(running)
    page.wait_for_function("() => document.querySelectorAll('#list li').length === 2")
    names = page.locator("#list .name").all_inner_texts()
    assert names == ["运载火箭有哪些？", ids[0]]
    damaged = page.locator("#list li").nth(1)
    assert damaged.locator(".waits").inner_text() == "Damaged: cannot be read"
    damaged.hover()
    damaged.locator("button[title=Delete]").click()
    page.locator("#confirm .danger").click()
    page.wait_for_function("() => document.querySelectorAll('#list li').length === 1")
    assert running.client.get("/api/conversations").json()["damaged"] == []


def test_a_conversation_is_found_renamed_and_deleted(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    for question in ("How many rockets?", "运载火箭有哪些？"):
        running.answer(question)
    page = open_page(running)
    page.wait_for_function("() => document.querySelectorAll('#list li').length === 2")
    page.fill("#search", "火箭")
    page.wait_for_function("() => document.querySelectorAll('#list li').length === 1")
    page.locator("#list .open").click()
    page.wait_for_selector(".meta")
    page.locator("#list li").hover()
    page.locator("#list button[title=Rename]").click()
    page.locator("#list input.rename").fill("Rockets 火箭")
    page.press("#list input.rename", "Enter")
    page.wait_for_function("() => document.getElementById('title').textContent === 'Rockets 火箭'")
    page.locator("#list li").hover()
    page.locator("#list button[title=Delete]").click()
    page.locator("#confirm button[value=no]").click()
    assert page.locator("#list li").count() == 1
    page.locator("#list li").hover()
    page.locator("#list button[title=Delete]").click()
    page.locator("#confirm .danger").click()
    page.wait_for_selector(".welcome")
    page.fill("#search", "")
    page.wait_for_function("() => document.querySelector('#list .name')?.textContent === 'How many rockets?'")
    assert page.locator("#list li").count() == 1


def test_the_language_follows_the_browser_and_the_switch(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, locale="zh-CN")
    assert page.locator("#send").inner_text().startswith("提问")
    assert page.locator(".welcome h2").inner_text() == "向你的数据提问。"
    ask(page, "运载火箭有哪些？")
    page.wait_for_selector(".meta")
    assert page.locator(".step-title").first.inner_text() == "查看了有哪些表"
    page.click("#language")
    page.wait_for_function("() => document.querySelector('.step-title')?.textContent === 'Looked at the tables'")
    assert page.evaluate("document.documentElement.lang").startswith("en")
    page.reload()
    page.wait_for_selector(".meta")
    assert page.locator("#send").inner_text().startswith("Ask"), "the choice is remembered"


def test_every_text_is_in_both_languages(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    texts = running.client.get("/web/i18n.js").text
    english, chinese = texts.split("  zh: {")
    keys = [set(re.findall(r"^    (\w+): \"", part, re.MULTILINE)) for part in (english, chinese)]
    assert keys[0] == keys[1]
    used = set()
    for name in (path.stem for path in WEB.glob("*.js") if path.stem not in {"i18n", "vega"}):
        used |= set(re.findall(r"\bt\(\"(\w+)\"", running.client.get(f"/web/{name}.js").text))
    used |= set(re.findall(r"data-t(?:-\w+)?=\"(\w+)\"", running.client.get("/").text))
    assert used - keys[0] == set()


def test_a_narrow_screen_has_a_drawer(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    running.answer("How many?")
    page = open_page(running, viewport={"width": 390, "height": 800}, has_touch=True)
    assert page.evaluate("document.getElementById('side').inert") is True
    page.click("#open-side")
    page.locator("#list .open").click()
    page.wait_for_selector(".meta")
    assert page.evaluate("document.getElementById('side').inert") is True
    page.click("#open-side")
    page.keyboard.press("Escape")
    assert page.locator("#open-side").evaluate("node => node === document.activeElement")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


TABLE = """\
| site | launches | share | cost | when | mixed | left | right |
|---|---|---|---|---|---|:---|--:|
| A [q1] | **1,234** [q1] | -12.5 % | €3 | 2024-01-05 | 1 | 1 | x |
| 7 | 41 | — | 1.2e9 | 2024-02-01 | one | 2 | y |
|  | 5 | 3% | | | 3 | 3 | z |"""


def test_columns_of_numbers_in_an_answer_stand_on_the_right(serve: Any, open_page: Any) -> None:
    page = open_page(serve([{"finish": TABLE}]))
    ask(page, "How many?")
    page.wait_for_selector(".meta")
    right = ["launches", "share", "cost", "right"]
    assert page.locator(".answer th.num").all_inner_texts() == right
    assert page.locator(".answer td.num").count() == 3 * len(right)
    assert page.locator(".answer td.num").first.evaluate("node => getComputedStyle(node).textAlign") == "right"


def numbers(rows: int, columns: int) -> list[dict[str, Any]]:
    """A script that asks for a table of numbers."""
    names = ", ".join(f"n * {place} AS c{place}" for place in range(columns))
    table = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {rows}) SELECT {names} FROM t"
    return [{"thought": "", "action": "run_sql", "args": {"sql": table}}, {"finish": "Many [q1]."}]


def test_a_wide_result_scrolls_in_its_box(serve: Any, open_page: Any) -> None:
    page = open_page(serve(numbers(1000, 200), sql_rows=1000))
    ask(page, "All of it")
    page.wait_for_selector(".meta")
    assert page.locator(".step th").count() == 200
    box = page.locator(".step .table-box")
    assert box.evaluate("node => node.scrollWidth > node.clientWidth && node.scrollHeight > node.clientHeight")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_long_result_is_shown_part_by_part(serve: Any, open_page: Any) -> None:
    page = open_page(serve(numbers(1000, 2), sql_rows=1000))
    ask(page, "All of it")
    for _ in ("live", "loaded again"):
        page.wait_for_selector(".meta")
        assert page.locator(".step tbody tr").count() == 100
        for shown in range(200, 1100, 100):
            page.click(".more-rows")
            page.wait_for_function(f"() => document.querySelectorAll('.step tbody tr').length === {shown}")
        assert page.locator(".more-rows").is_hidden()
        page.reload()


def test_the_page_is_used_without_a_mouse(serve: Any, open_page: Any) -> None:
    page = open_page(serve(SCRIPT))
    page.wait_for_function("() => document.activeElement.id === 'question'")
    page.keyboard.type("How many?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".meta")
    page.wait_for_function("() => document.getElementById('announce').textContent === 'The answer is there.'")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea, select, nav, [role=log], [role=region]')]
            .filter((node) => !node.hidden && !(node.textContent.trim() || node.getAttribute('aria-label')
                || node.labels?.length)).map((node) => node.outerHTML)"""
    )
    assert unnamed == []


def test_the_thread_of_a_langgraph_application_is_shown_with_its_answers(
    serve: Any, open_page: Any, store_address: str
) -> None:
    running = serve(SCRIPT)
    talked(store_address, "app")
    page = open_page(running, "/#/c/app")
    page.wait_for_selector(".turn")
    assert page.locator("#list .name").all_inner_texts() == ["上海天气怎么样？"]
    assert page.locator("#title").inner_text() == "上海天气怎么样？"
    assert [text.split("\n")[-1] for text in page.locator(".answer").all_inner_texts()] == [
        "Sunny in 上海.",
        "You are welcome.",
    ]
    assert page.locator(".working").count() == 0
    assert page.locator(".step").count() == 1
    page.locator(".step summary").click()
    assert "Sunny in 上海." in page.locator(".step").inner_text()
    ask(page, "How many rockets are there?")
    page.wait_for_selector(".meta")
    assert page.locator(".turn").count() == 3
    assert page.locator(".answer strong").all_inner_texts() == ["上海", "41"]


def test_a_source_that_is_typed_before_the_server_has_told_of_its_own_stays(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running)
    assert page.input_value("#source") == "demo"
    held: list[Any] = []
    page.route("**/api/info", lambda route: held.append(route))
    page.reload(wait_until="load")
    page.wait_for_function("() => document.querySelector('#question').placeholder !== ''")
    page.fill("#source", "mine.db")
    while not held:
        page.wait_for_timeout(10)
    held[0].continue_()
    page.wait_for_selector("#where:not(:empty)", state="attached")
    assert page.input_value("#source") == "mine.db"


MAILS = [
    [{"thought": "", "action": "send_mail", "args": {"to": who}} for who in ("ada", "\u202eeve")],
    {"finish": "Both were **told**."},
]


def waits(
    serve: Any, open_page: Any, store_address: str, user: str = "default", **options: Any
) -> tuple[Any, Any, str]:
    """A server, a page with two calls that wait, and the thread's id."""
    define_clerk(store_address)
    running = serve(MAILS, user=user)
    thread_id = running.answer("Write to both.", agent="clerk")["thread_id"]
    page = open_page(running, f"/#/c/{thread_id}", quiet=False, **options)
    page.wait_for_selector(".approval >> nth=1")
    return running, page, thread_id


def test_calls_are_approved_and_edited_on_the_page(serve: Any, open_page: Any, store_address: str) -> None:
    _, page, _ = waits(serve, open_page, store_address)
    assert page.locator(".approval strong").all_inner_texts() == ["Waiting for approval: send_mail"] * 2
    assert page.locator(".approval p").first.inner_text() == "Sends a mail. 发送邮件。"
    assert '"\\u202eeve"' in page.locator(".approval pre").nth(1).inner_text()
    page.locator(".approval .go").first.click()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    assert page.locator(".decided").all_inner_texts() == ["send_mail was approved."]
    page.get_by_role("button", name="Edit").click()
    field = page.locator(".approval textarea")
    for text, wrong in (
        ("{", "This is no JSON"),
        ("[1]", "Give the arguments as one JSON object."),
        ('{"to": 5}', "`to`"),
    ):
        field.fill(text)
        page.get_by_role("button", name="Approve with these").click()
        page.wait_for_selector(f".approval .wrong:has-text('{wrong}')")
    field.fill('{"to": "李雷"}')
    page.get_by_role("button", name="Approve with these").click()
    page.wait_for_selector(".answer strong")
    live = shape(page)
    assert "send_mail was approved, with other arguments." in live
    page.reload()
    page.wait_for_selector(".answer strong")
    assert sorted(shape(page)) == sorted(live)
    made = page.locator(".step")
    for step, to in ((made.first, "ada"), (made.nth(1), "李雷")):
        step.locator("summary").click()
        assert step.locator(".args pre").inner_text() == f'{{\n  "to": "{to}"\n}}'
        assert step.locator("pre").count() == 2
        assert "do not make your own call again" not in step.inner_text()


def test_approval_loses_nothing_that_is_typed(serve: Any, open_page: Any, store_address: str) -> None:
    """While something is typed about a call, nothing else can be chosen for it; another call's decision leaves it."""
    _, page, _ = waits(serve, open_page, store_address)
    card, other = page.locator(".approval").first, page.locator(".approval").nth(1)
    for opener, sends in (("Reject", "Reject"), ("Edit", "Approve with these")):
        card.get_by_role("button", name=opener).click()
        assert card.get_by_role("button").all_inner_texts() == [sends, "Cancel"]
        card.get_by_role("button", name="Cancel").click()
        assert card.get_by_role("button").all_inner_texts() == ["Approve", "Edit", "Reject"]
        assert card.get_by_role("button", name=opener).evaluate("node => node === document.activeElement")
    card.get_by_role("button", name="Edit").click()
    card.locator("textarea").fill('{"to": "grace"}')
    other.get_by_role("button", name="Approve").click()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    assert page.locator(".approval textarea").input_value() == '{"to": "grace"}'
    page.get_by_role("button", name="Approve with these").click()
    page.wait_for_selector(".answer strong")
    assert page.locator(".decided").count() == 2
    assert "grace" in page.locator(".step").first.text_content()


def test_calls_are_rejected_in_chinese(serve: Any, open_page: Any, store_address: str) -> None:
    running, page, _ = waits(serve, open_page, store_address, locale="zh-CN")
    assert page.locator(".approval strong").first.inner_text() == "等待批准：send_mail"
    for count in (1, 0):
        page.locator(".approval").first.get_by_role("button", name="拒绝").click()
        page.locator(".approval input").fill("她在休假")
        page.keyboard.press("Enter")
        page.wait_for_function(f"() => document.querySelectorAll('.approval').length === {count}")
    page.wait_for_selector(".answer strong")
    assert page.locator(".decided").all_inner_texts() == ["拒绝了 send_mail。 她在休假"] * 2
    for _ in range(2):
        assert page.locator(".step-title").all_inner_texts() == ["想使用 send_mail"] * 2
        assert page.locator(".step-found").all_inner_texts() == ["被拒绝"] * 2
        assert page.locator(".step .wrong").all_inner_texts() == ["已拒绝：她在休假"] * 2
        assert page.locator(".step .args pre").first.inner_text() == '{\n  "to": "ada"\n}'
        page.reload()
        page.wait_for_selector(".answer strong")
    assert "她在休假" in str(running.model.calls[-1].messages[-1].text)


def test_who_decided_a_call_that_needs_approval_is_told(serve: Any, open_page: Any, store_address: str) -> None:
    _, page, _ = waits(serve, open_page, store_address, user="grace")
    page.locator(".approval .go").first.click()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    assert page.locator(".decided").all_inner_texts() == ["send_mail was approved by user “grace”."]
    page.click("#language")
    page.wait_for_selector(".decided:has-text('用户“grace”批准了 send_mail。')")
    ask(page, "Something else?")
    page.wait_for_selector(".turn:nth-child(2) .answer strong")
    page.reload()
    page.wait_for_selector(".decided:has-text('没有调用 send_mail：用户“grace”结束了这次运行。')")


def test_the_list_marks_what_waits_for_approval(serve: Any, open_page: Any, store_address: str) -> None:
    _, page, _ = waits(serve, open_page, store_address)
    page.wait_for_selector("#list .waits")
    assert page.locator("#list .waits").all_inner_texts() == ["Waiting for approval"]
    assert page.get_by_role("button", name="Write to both. Waiting for approval").count() == 1
    page.click("#language")
    page.wait_for_selector("#list .waits:has-text('等待批准')")
    page.locator(".approval .go").first.click()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    page.wait_for_function("() => document.querySelectorAll('#list .waits').length === 1")
    page.locator(".approval .go").click()
    page.wait_for_selector(".answer strong")
    page.wait_for_function("() => !document.querySelector('#list .waits')")
    assert page.locator("#list li").count() == 1


def test_what_was_decided_elsewhere_is_shown(serve: Any, open_page: Any, store_address: str) -> None:
    running, page, thread_id = waits(serve, open_page, store_address)
    path = f"/api/conversations/{thread_id}/approvals"
    calls = [call["id"] for call in running.client.get(path).json()["pending"]]
    answer = running.client.post(path, json={"decisions": {call: {"type": "approve"} for call in calls}})
    assert running.client.get(answer.json()["events"]).status_code == 200
    page.locator(".approval .go").first.click()
    page.wait_for_selector(".answer strong")
    assert page.locator(".approval").count() == 0
    assert page.locator("#problem").is_visible()


def test_another_question_supersedes_what_waits(serve: Any, open_page: Any, store_address: str) -> None:
    _, page, _ = waits(serve, open_page, store_address)
    ask(page, "Something else?")
    page.wait_for_selector(".turn:nth-child(2) .answer strong")
    assert page.locator(".approval").count() == 0
    assert page.locator(".card strong").all_inner_texts() == ["Not approved: something else was asked"]


def test_a_run_that_waits_is_stopped(serve: Any, open_page: Any, store_address: str) -> None:
    _, page, _ = waits(serve, open_page, store_address, locale="zh-CN")
    assert page.locator("#stop").is_visible() and page.locator("#send").is_visible()
    page.locator(".approval .go").first.click()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    page.click("#stop")
    page.wait_for_selector(".card strong:has-text('已停止')")
    assert page.locator(".approval").count() == 0
    assert page.locator("#stop").is_hidden()
    page.wait_for_function("() => !document.querySelector('#list .waits')")
    page.locator(".card .go").click()
    page.wait_for_selector(".answer strong")
