"""A conversation in the page: asked, answered, stopped, queued, edited, decided, and looked at again."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import ASK_CLERK, CLERK, EDITOR, HELPER, define, define_clerk, played, talked
from tests.web.conftest import looked_at
from tests.web.looking import answered, answers, ask, ask_held, opened, shape

pytestmark = pytest.mark.browser

LOOK = {"thought": "First, which tables there are.", "action": "list_tables"}
COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM rockets -- all"}}
ANSWER = {"finish": "There are **41** rockets [q1].\n\n- `one`\n- two\n\n| a | b |\n|---|--:|\n| x | 41 |"}
SCRIPT = [LOOK, COUNT, ANSWER]
TALK = [{"finish": "The **first**."}, {"finish": "The **second**."}, {"finish": "The **third**."}]
MAILS = [
    [{"thought": "", "action": "send_mail", "args": {"to": who}} for who in ("ada", "eve")],
    {"finish": "Both were **told**."},
]


def test_a_question_is_answered_step_by_step_and_shown_alike_again(serve: Any, context: Any) -> None:
    tab = opened(context, serve(SCRIPT))
    ask(tab, "How many rockets are there?")
    answered(tab)
    assert "/c/" in tab.url
    live = shape(tab)
    assert any(line.startswith("2 steps · ran 1 query") for line in live)
    tab.reload()
    answered(tab)
    assert shape(tab) == live
    tab.get_by_role("button", name="2 steps").click()
    tab.get_by_role("button", name="Ran query q1").click()
    assert tab.locator("li[data-query=q1] code").inner_text() == "SELECT count(*) AS n FROM rockets -- all"
    assert "Count." in tab.locator("li[data-query=q1]").inner_text()
    assert tab.locator("[data-answer] li").all_inner_texts() == ["one", "two"]


def test_a_reload_and_a_second_tab_in_the_middle_see_the_run_to_its_end(serve: Any, context: Any) -> None:
    running = serve(SCRIPT)
    tab = opened(context, running)
    ask_held(tab, running, "How many rockets are there?")
    second = opened(context, running, tab.url.rsplit("/", 1)[1])
    tab.reload()
    for each in (tab, second):
        each.get_by_text("Thinking about the question").first.wait_for()
    running.model.shut.clear()
    for each in (tab, second):
        answered(each)
    assert shape(tab) == shape(second)


def test_a_run_is_stopped_from_another_tab_and_continued(serve: Any, context: Any) -> None:
    running = serve(SCRIPT)
    tab = opened(context, running)
    ask_held(tab, running, "How many?")
    second = opened(context, running, tab.url.rsplit("/", 1)[1])
    second.get_by_role("button", name="Stop").click()
    tab.get_by_text("Stopped. Finished steps are kept.").wait_for()
    running.model.shut.clear()
    tab.get_by_role("button", name="Continue").click()
    answered(tab)
    assert tab.locator("article").count() == 2
    assert tab.get_by_role("button", name="Continue").count() == 0, "only the newest turn can be gone on with"


def test_what_a_stopped_answer_said_is_kept_and_gone_on_from(serve: Any, context: Any) -> None:
    running = serve(TALK)
    tab = opened(context, running)
    running.model.cut.set()
    ask(tab, "One?")
    tab.get_by_text("The **fi").wait_for()
    tab.get_by_role("button", name="Stop").click()
    said = tab.locator("[data-unfinished]")
    said.wait_for()
    live = shape(tab)
    tab.reload()
    said.wait_for()
    assert said.locator("p").all_inner_texts()[0] == "The **fi"
    assert shape(tab) == live
    running.model.cut.clear()
    tab.get_by_role("button", name="Continue").click()
    answered(tab)
    assert answers(tab) == ["second"]
    assert "The **fi" in str(running.model.calls[-1].messages), "the model goes on from it"


def test_questions_wait_and_can_be_removed(serve: Any, context: Any) -> None:
    running = serve(TALK)
    tab = opened(context, running)
    ask_held(tab, running, "One?")
    waiting = tab.get_by_role("list", name="Questions that wait").get_by_role("listitem")
    for n, question in enumerate(("Two?", "Three?"), 1):
        ask(tab, question)
        waiting.nth(n - 1).wait_for()
    tab.reload()
    waiting.nth(1).wait_for()
    assert [each.split("\n")[0] for each in waiting.all_inner_texts()] == ["Two?", "Three?"]
    waiting.nth(1).get_by_role("button", name="Remove").click()
    waiting.nth(1).wait_for(state="detached")
    running.model.shut.clear()
    answered(tab, 2)
    assert answers(tab) == ["first", "second"]
    assert waiting.count() == 0


def test_to_stop_says_that_the_question_that_waits_is_next(serve: Any, context: Any) -> None:
    running = serve(TALK)
    tab = opened(context, running)
    ask_held(tab, running, "One?")
    ask(tab, "Two?")
    tab.get_by_role("list", name="Questions that wait").get_by_role("listitem").wait_for()
    tab.get_by_role("button", name="Stop").click()
    tab.get_by_text("Stopped. The question that waited is next.").wait_for()
    running.model.shut.clear()
    answered(tab)


def test_a_question_is_edited_and_asked_again_and_each_branch_is_kept(serve: Any, context: Any) -> None:
    running = serve(TALK)
    tab = opened(context, running)
    ask(tab, "One?")
    answered(tab)
    tab.press("#question", "ArrowUp")
    tab.get_by_label("Edit the question").fill("Two?")
    tab.get_by_label("Edit the question").press("Enter")
    tab.get_by_role("group", name="Versions of the question").get_by_text("2/2").wait_for()
    tab.locator("[data-answer] strong:has-text('second')").wait_for()
    tab.get_by_role("button", name="Again").click()
    tab.get_by_role("group", name="Answers").get_by_text("2/2").wait_for()
    tab.locator("[data-answer] strong:has-text('third')").wait_for()
    second = opened(context, running, tab.url.rsplit("/", 1)[1])
    tab.get_by_role("group", name="Answers").get_by_role("button", name="Previous").click()
    for each in (tab, second):
        each.locator("[data-answer] strong:has-text('second')").wait_for()
    tab.get_by_role("group", name="Versions of the question").get_by_role("button", name="Previous").click()
    for each in (tab, second):
        each.locator("[data-answer] strong:has-text('first')").wait_for()
        assert "One?" in each.locator("article").inner_text()
    tab.reload()
    answered(tab)
    assert answers(tab) == ["first"]


def test_a_failed_run_says_what_happened_in_both_languages(serve: Any, context: Any) -> None:
    running = serve([RuntimeError("no luck")], retry_attempts=0)
    tab = opened(context, running)
    ask(tab, "How many?")
    tab.get_by_text("The model demo failed: no luck. The conversation is kept. Continue tries again.").wait_for()
    assert tab.get_by_role("button", name="Continue").is_visible()
    tab.evaluate("localStorage.setItem('longthread.language', 'zh')")
    tab.reload()
    tab.get_by_text("模型 demo 出错：no luck. 会话已保留，点“继续”重试。").wait_for()
    assert tab.get_by_role("button", name="继续").is_visible()


def test_what_is_refused_is_said_and_the_question_stays(serve: Any, context: Any) -> None:
    tab = opened(context, serve(SCRIPT, source=None))
    ask(tab, "How many?")
    tab.get_by_role("alert").get_by_text("Choose a source first").wait_for()
    assert tab.input_value("#question") == "How many?"
    tab.route("**/api/chat", lambda route: route.fulfill(status=502, body="<html>Bad gateway</html>"))
    tab.press("#question", "Enter")
    tab.get_by_role("alert").get_by_text("The server could not answer (HTTP 502). Try again.").wait_for()
    tab.reload()
    assert tab.input_value("#question") == "How many?", "a draft is kept"


EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def test_what_a_database_or_a_model_says_is_text(serve: Any, context: Any, tmp_path: Path) -> None:
    source = tmp_path / "evil.sqlite"
    with sqlite3.connect(source) as database:
        database.execute(f'CREATE TABLE "{EVIL.replace(chr(34), "")}" (a)')
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (?)", [EVIL])
    database.close()
    sql = f"SELECT a, a AS '{EVIL.replace(chr(39), '')}' FROM t -- {EVIL}"
    links = "[a](javascript:alert(1)) [b](https://example.org) ![c](https://example.org/c.png)"
    script = [
        {"thought": EVIL, "action": "list_tables"},
        {"thought": "", "action": "run_sql", "args": {"sql": sql}},
        {"finish": f"{EVIL} **{EVIL}** [q1]\n\n| {EVIL} |\n|---|\n| {EVIL} |\n\n```{EVIL}\n{EVIL}\n```\n\n{links}"},
    ]
    tab = opened(context, serve(script, source=str(source)))
    ask(tab, EVIL)
    answered(tab)
    tab.get_by_role("button", name="2 steps").click()
    for name in ("Looked at the tables", "Ran query q1"):
        tab.get_by_role("button", name=name).click()
    tab.locator("li[data-query=q1] td").first.wait_for()
    assert tab.locator("li[data-query=q1] td").first.inner_text() == EVIL
    assert tab.locator("article img, article script").count() == 0
    hrefs = tab.locator("[data-answer] a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert hrefs == ["https://example.org", "https://example.org/c.png"]
    assert not tab.title().startswith("owned")


def test_enter_that_chooses_a_word_does_not_send(serve: Any, context: Any) -> None:
    tab = opened(context, serve(SCRIPT))
    tab.fill("#question", "运载火箭")
    for init in ("isComposing: true", "keyCode: 229"):
        composing = f"new KeyboardEvent('keydown', {{key: 'Enter', {init}, bubbles: true, cancelable: true}})"
        assert tab.evaluate(f"document.getElementById('question').dispatchEvent({composing})") is True
    tab.press("#question", "Shift+Enter")
    assert tab.input_value("#question") == "运载火箭\n"
    assert tab.locator("article").count() == 0
    tab.press("#question", "Enter")
    answered(tab)


def test_an_answer_is_said_once_at_its_end(serve: Any, context: Any) -> None:
    tab = opened(context, serve(TALK))
    said = tab.locator("[aria-live=polite].unseen")
    for n, word in enumerate(("first", "second"), 1):
        ask(tab, f"{n}?")
        tab.get_by_text(f"The answer is ready: The {word}.").wait_for(state="attached")
    tab.reload()
    answered(tab, 2)
    assert said.inner_text() == "", "what was there before is not said"


def test_calls_are_edited_approved_and_rejected(serve: Any, context: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve(MAILS)
    thread_id = running.answer("Write to both.", agent="clerk")["thread_id"]
    tab = opened(context, running, thread_id)
    second = opened(context, running, thread_id)
    first, other = tab.locator("form[data-call]").nth(0), tab.locator("form[data-call]").nth(1)
    first.get_by_role("button", name="Edit").click()
    first.get_by_label("Arguments").fill("{to: bob}")
    first.get_by_role("button", name="Approve with these").click()
    first.get_by_role("alert").get_by_text("This is not valid JSON").wait_for()
    first.get_by_label("Arguments").fill('{"to": "bob"}')
    first.get_by_role("button", name="Approve with these").click()
    other.wait_for(state="detached")
    second.locator("form[data-call]").nth(1).wait_for(state="detached")
    tab.locator("form[data-call]").get_by_role("button", name="Reject").click()
    tab.get_by_label("Why not?").fill("Not eve.")
    tab.get_by_label("Why not?").press("Enter")
    for each in (tab, second):
        answered(each)
        assert "send_mail was approved, with other arguments." in each.locator("article").inner_text()
        assert "send_mail was rejected. Not eve." in each.locator("article").inner_text()
    assert answers(tab) == ["told"]


def test_another_question_supersedes_what_waits(serve: Any, context: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve([MAILS[0], {"finish": "**Other**."}])
    tab = opened(context, running, running.answer("Write.", agent="clerk")["thread_id"])
    tab.locator("form[data-call]").first.wait_for()
    ask(tab, "Something else?")
    answered(tab)
    assert tab.locator("form[data-call]").count() == 0
    assert tab.get_by_text("Not approved: another question was asked instead.").is_visible()


def test_from_a_call_to_the_conversation_below_and_back(serve: Any, context: Any, store_address: str) -> None:
    define(store_address, *CLERK, HELPER, EDITOR)
    gate: list[Any] = []

    def slow(messages: Any) -> Any:
        reply = played(messages)
        if isinstance(reply, list):
            gate[0].shut.set()  # those whom it asks think until the page has been looked at
        return reply

    running = serve(slow)
    gate.append(running.model)
    tab = opened(context, running, running.ask("Report.", agent="editor")["thread_id"])
    tab.get_by_role("link", name="Conversation with 研究员").wait_for()
    assert tab.locator("li [data-status=running]").count() == 2
    running.model.shut.clear()
    tab.get_by_text("clerk waits for approval").wait_for()
    tab.get_by_role("link", name="Conversation with 研究员").click()
    tab.locator("[data-answer] strong:has-text('44')").wait_for()
    tab.get_by_role("link", name="Asked in").click()
    tab.get_by_role("link", name="Go there to decide").click()
    tab.get_by_role("button", name="Approve").click()
    tab.locator("[data-answer] strong:has-text('Sent')").wait_for()
    tab.get_by_role("link", name="Asked in").click()
    tab.get_by_role("button", name="2 steps").wait_for()
    tab.get_by_role("link", name="Go there to decide").wait_for(state="detached")
    tab.get_by_role("button", name="2 steps").click()
    assert tab.get_by_role("button", name="Asked clerk").is_visible(), ASK_CLERK


def test_the_thread_of_a_langgraph_application_is_shown_as_it_is(serve: Any, context: Any, store_address: str) -> None:
    running = serve(SCRIPT)
    talked(store_address, "app")
    tab = opened(context, running, "app")
    answered(tab, 2)
    assert answers(tab) == ["上海"]
    assert tab.get_by_role("button", name="Again").count() == 0
    tab.get_by_role("button", name="1 step").click()
    tab.get_by_role("button", name="Used weather").click()
    tab.get_by_label("Result").get_by_text("Sunny in 上海.").wait_for()
    ask(tab, "How many rockets are there?")
    answered(tab, 3)
    assert answers(tab) == ["上海", "41"]


def test_what_a_refusal_suggests_is_asked_with_a_click(serve: Any, context: Any) -> None:
    tab = opened(context, serve(None, model="demo"))
    ask(tab, "What is the meaning of zorble quux?")
    answered(tab)
    suggested = tab.get_by_role("list", name="Questions to try").get_by_role("button").first
    question = suggested.inner_text()
    suggested.click()
    answered(tab, 2)
    assert question in tab.locator("article").nth(1).inner_text()
    assert tab.get_by_role("list", name="Questions to try").count() == 0


def test_axe_finds_nothing_in_steps_edits_queues_failures_and_approvals(
    serve: Any, context: Any, store_address: str
) -> None:
    define_clerk(store_address)
    running = serve([*SCRIPT, LOOK, RuntimeError("no luck"), MAILS[0]], retry_attempts=0)
    tab = opened(context, running)
    tab.emulate_media(reduced_motion="reduce")
    ask(tab, "How many rockets are there?")
    answered(tab)
    tab.get_by_role("button", name="2 steps").click()
    for name in ("Looked at the tables", "Ran query q1"):
        tab.get_by_role("button", name=name).click()
    tab.press("#question", "ArrowUp")
    tab.get_by_label("Edit the question").wait_for()
    looked_at(tab, "chat-steps-edit")
    tab.keyboard.press("Escape")
    ask_held(tab, running, "And now?")
    ask(tab, "And then?")
    tab.get_by_role("button", name="Remove").wait_for()
    looked_at(tab, "chat-queue")
    tab.get_by_role("button", name="Remove").click()
    tab.get_by_role("button", name="Remove").wait_for(state="detached")
    running.model.shut.clear()
    tab.get_by_text("The conversation is kept. Continue tries again.").wait_for()
    tab.emulate_media(color_scheme="dark")
    looked_at(tab, "chat-failed-dark")
    waiting = opened(context, running, running.answer("Write.", agent="clerk")["thread_id"])
    waiting.get_by_role("button", name="Reject").first.click()
    waiting.get_by_role("button", name="Edit").first.click()
    for scheme in ("light", "dark"):
        waiting.emulate_media(color_scheme=scheme)
        looked_at(waiting, f"chat-waiting-{scheme}")
