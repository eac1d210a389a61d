"""How a conversation is read: where the view stays, code and formulas, what is saved, and what is tried beside it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import OpenPage, looked_at
from tests.web.looking import answered, ask

pytestmark = pytest.mark.browser

COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM rockets"}}
LONG = "\n\n".join(f"Paragraph {n}. " + "It says so much that it takes a line or two. " * 4 for n in range(60))
QUESTIONS = {"en": "What is there to say of it all?", "zh-CN": "关于这一切有什么可说的？"}
TO_END = {"en": "Go to the newest message", "zh-CN": "前往最新消息"}
COPY = {"en": "Copy", "zh-CN": "复制"}


def column(page: Any) -> Any:
    return page.locator("[role=region]:has(article)").first


def top(page: Any, text: str) -> int:
    """How far below the top of the column a question stands."""
    box = column(page).bounding_box()
    return round(page.get_by_role("heading", name=text).last.bounding_box()["y"] - box["y"])


def distance(page: Any) -> int:
    """Pixels between what is seen and the end of the conversation."""
    return int(column(page).evaluate("node => Math.round(node.scrollHeight - node.scrollTop - node.clientHeight)"))


def settled(page: Any) -> None:
    """Wait until nothing is put off and nothing is scrolled by itself."""
    page.wait_for_selector("article [role=status], [data-undrawn]", state="detached")
    page.evaluate("""async () => {
        const box = document.querySelector('[role=region]:has(article)');
        for (let [still, last] = [0, -1]; still < 5; still = box.scrollTop === last ? still + 1 : 0) {
            last = box.scrollTop;
            await new Promise(requestAnimationFrame);
        }
    }""")


@pytest.mark.parametrize(("locale", "width"), [("en", 1280), ("zh-CN", 390)])
def test_a_question_goes_to_the_top_and_its_answer_does_not_run_away(
    serve: Any, open_page: OpenPage, locale: str, width: int
) -> None:
    running = serve([{"finish": "Short."}, {"finish": LONG}, {"finish": LONG}, {"finish": "Short again."}])
    thread = running.answer("First?")["thread_id"]
    page = open_page(running, f"/c/{thread}", width=width, locale=locale)
    page.get_by_text("Short.", exact=True).wait_for()
    question = QUESTIONS[locale]
    running.model.cut.set()
    ask(page, question)
    page.locator("[data-answer]").nth(1).wait_for()
    settled(page)
    place = top(page, question)
    assert 0 <= place <= 48
    running.model.cut.clear()
    page.get_by_role("button", name=COPY[locale], exact=True).nth(1).wait_for()
    settled(page)
    assert top(page, question) == place, "it was read"
    assert distance(page) > 1000
    looked_at(page, f"reading-top-{locale}")

    # Who goes to the end is there, and follows it until another question is asked.
    page.get_by_role("button", name=TO_END[locale]).click()
    settled(page)
    assert distance(page) <= 2
    ask(page, "Again?")
    page.get_by_role("button", name=COPY[locale], exact=True).nth(1).wait_for()
    page.get_by_text("Paragraph 59.").last.wait_for(state="attached")
    settled(page)
    assert top(page, "Again?") == place

    # A short answer has room below it, and what is opened in it moves nothing.
    ask(page, "Short?")
    page.get_by_text("Short again.", exact=True).wait_for()
    settled(page)
    assert top(page, "Short?") == place
    assert page.get_by_role("button", name=TO_END[locale]).count() == 0


def test_what_was_asked_elsewhere_is_followed_to_its_question_and_no_further(serve: Any, open_page: OpenPage) -> None:
    running = serve([{"finish": LONG}, {"finish": LONG}, {"finish": LONG}])
    thread = running.answer("First?")["thread_id"]
    page = open_page(running, f"/c/{thread}")
    answered(page)
    settled(page)
    assert distance(page) <= 2, "it opens at its end"
    running.answer("Second?", thread_id=thread)
    answered(page, 2)
    settled(page)
    assert 0 <= top(page, "Second?") <= 48
    column(page).hover()
    page.mouse.wheel(0, -300)
    page.wait_for_function("() => document.querySelector('[role=region]:has(article)').scrollTop > 0")
    settled(page)
    before = top(page, "Second?")
    running.answer("Third?", thread_id=thread)
    page.get_by_role("button", name="Go to the newest message").get_by_text("New").wait_for()
    assert top(page, "Second?") == before, "who has scrolled stays where they are"


@pytest.mark.parametrize("away", [0, 18])
def test_steps_that_are_opened_keep_their_line_in_place(serve: Any, open_page: OpenPage, away: int) -> None:
    running = serve([COUNT, {"finish": "There are 41 rockets [q1]."}] * 3)
    thread = running.answer("One?")["thread_id"]
    for question in ("Two?", "Three?"):
        running.answer(question, thread_id=thread)
    page = open_page(running, f"/c/{thread}", viewport={"width": 1280, "height": 620})
    answered(page, 3)
    settled(page)
    column(page).evaluate("(node, away) => { node.scrollTop = node.scrollHeight - node.clientHeight - away; }", away)
    settled(page)
    for fold in (page.get_by_role("button", name="1 step").last, page.get_by_role("button", name="Ran query").last):
        before = fold.bounding_box()["y"]
        fold.click()
        settled(page)
        assert abs(fold.bounding_box()["y"] - before) <= 1


RICH = {
    "en": "The share is $\\frac{n_i}{\\sum_j n_j}$, for $5 or $10:",
    "zh-CN": "占比为 $\\frac{n_i}{\\sum_j n_j}$，价格 $5 或 $10：",
}
SUM = r"""$$
\vec{x} = \sqrt{\left(\begin{matrix} a \\ b \\ c \\ d \end{matrix}\right)}
= \sum_{k=1}^{n} k^2
$$"""
SQL = "SELECT country, count(*) AS n -- all\nFROM launches\nWHERE site = 'A' LIMIT 5"
PYTHON = "def mean(values):\n    return sum(values) / len(values)  # of all"
FLOW = "graph TD; A-->B"
WRONG = "\\(\\frac{a}{\\)"


def fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```"


@pytest.mark.parametrize(("locale", "width", "scheme"), [("en", 1280, "light"), ("zh-CN", 390, "dark")])
def test_code_is_coloured_and_copied_and_formulas_are_set(
    serve: Any, open_page: OpenPage, locale: str, width: int, scheme: str
) -> None:
    blocks = [fenced("sql", SQL), fenced("python", PYTHON), fenced("mermaid", FLOW), fenced("math", "e = mc^2")]
    running = serve([{"finish": "\n\n".join([RICH[locale], SUM, *blocks, WRONG])}])
    thread = running.answer("How?")["thread_id"]
    page = open_page(
        running,
        f"/c/{thread}",
        width=width,
        locale=locale,
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    )
    code = page.locator("[data-answer] pre")
    code.nth(0).locator("span", has_text="SELECT").wait_for()
    code.nth(1).locator("span", has_text="def").wait_for()
    page.wait_for_function("() => document.querySelectorAll('[data-formula] .katex').length === 3")
    page.evaluate("document.fonts.ready")
    settled(page)
    assert [code.nth(n).inner_text() for n in range(3)] == [SQL, PYTHON, FLOW]
    colors = [
        code.nth(0).locator("span", has_text=text).first.evaluate("node => getComputedStyle(node).color")
        for text in ("SELECT", "'A'", "5", "-- all")
    ]
    assert len(set(colors)) == 4
    code.nth(0).locator("..").get_by_role("button").click()
    assert page.evaluate("navigator.clipboard.readText()") == SQL

    formulas = page.locator("[data-formula]")
    assert formulas.nth(0).get_attribute("data-formula") == r"\frac{n_i}{\sum_j n_j}"
    assert formulas.nth(0).locator("math mfrac").count() == 1, "it is said, too"
    assert "$5" in page.locator("[data-answer] p").first.inner_text(), "money is money"
    assert page.evaluate("document.fonts.check('16px KaTeX_Main')")
    assert page.locator("[data-answer] code", has_text="frac{a}{").count() == 1, (
        "what cannot be read is shown as written"
    )
    looked_at(page, f"reading-rich-{locale}-{scheme}")


NAMES = {"en": "How many rockets are there?", "zh-CN": "有多少枚火箭？"}
EXPORTS = {
    "en": ("Save as Markdown", "Save as Markdown, with steps"),
    "zh-CN": ("保存为 Markdown", "保存为 Markdown，含步骤"),
}
MENU = {"en": "More", "zh-CN": "更多"}
COPIED = {"en": "Copied", "zh-CN": "已复制"}
CONTROLS = {
    "en": ("Copy", "Again", "Edit", "More", "Copy code"),
    "zh-CN": ("复制", "重新回答", "修改", "更多", "复制代码"),
}
TABLE = "| name | n |\n|---|--:|\n| A | 1 |\n| B | 2 |"


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_a_conversation_is_saved_under_its_question_and_an_answer_is_copied_as_rich_text(
    serve: Any, open_page: OpenPage, locale: str
) -> None:
    told = f"There are **41** [q1], so $n^2$:\n\n{TABLE}\n\n[more](https://example.org) <b>no</b> ![x](https://example.org/x.png)"
    running = serve([COUNT, {"finish": told}])
    thread = running.answer(NAMES[locale])["thread_id"]
    page = open_page(
        running, f"/c/{thread}", locale=locale, permissions=["clipboard-read", "clipboard-write"], accept_downloads=True
    )
    page.get_by_role("button", name=COPY[locale], exact=True).wait_for()
    texts = []
    for item in EXPORTS[locale]:
        page.locator("main > header").get_by_role("button", name=MENU[locale]).click()
        with page.expect_download() as saved:
            page.get_by_role("menuitem", name=item, exact=True).click()
        assert saved.value.suggested_filename == f"{NAMES[locale].rstrip('?')}.md"
        texts.append(saved.value.path().read_text("utf-8"))
    short, whole = texts
    assert short.startswith(f"# {NAMES[locale]}\n\n## {NAMES[locale]}\n\nThere are **41**, so")
    assert "run_sql" not in short and "[q1]" not in short
    assert "run_sql" in whole and "> Count." in whole and "[q1]" in whole

    page.get_by_role("button", name=COPY[locale], exact=True).click()
    page.get_by_role("button", name=COPIED[locale], exact=True).wait_for()
    html, plain = page.evaluate("""async () => {
        const [item] = await navigator.clipboard.read();
        return Promise.all(['text/html', 'text/plain'].map(async (type) => (await item.getType(type)).text()));
    }""")
    assert plain == told
    for part in ("<strong>41</strong>", '<table border="1"', '<td align="right">1', ">more</a>", "<msup>"):
        assert part in html, html
    for part in ("[q1]", "<b>", "<img", "<button"):
        assert part not in html, html


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_paper_has_what_was_said_and_no_controls(serve: Any, open_page: OpenPage, locale: str) -> None:
    running = serve([COUNT, {"finish": f"There are **41** [q1].\n\n{fenced('sql', SQL * 20)}\n\n{TABLE}"}])
    thread = running.answer(NAMES[locale])["thread_id"]
    page = open_page(running, f"/c/{thread}", locale=locale, color_scheme="dark")
    page.locator("[data-answer] pre span").first.wait_for()
    settled(page)
    page.emulate_media(media="print")
    looked_at(page, f"reading-print-{locale}")
    for name in CONTROLS[locale]:
        buttons = page.locator("main").get_by_role("button", name=name, exact=True, include_hidden=True)
        assert buttons.filter(visible=True).count() == 0, name
    assert page.get_by_role("navigation").filter(visible=True).count() == 0
    code = page.locator("[data-answer] pre")
    assert code.evaluate("node => node.scrollHeight - node.clientHeight") <= 1, "all of it is on paper"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    paper = page.evaluate("getComputedStyle(document.querySelector('[data-answer] p')).color")
    assert max(int(each) for each in paper.removeprefix("rgb(").rstrip(")").split(",")) < 100, "dark on white"


TRY = {
    "en": ("Edit the SQL", "SQL of q1", "Query q1, edited", "Discard", "Go on from here"),
    "zh-CN": ("编辑 SQL", "q1 的 SQL", "查询 q1（已编辑）", "丢弃", "从这里继续"),
}


@pytest.mark.parametrize(("locale", "width", "scheme"), [("en", 1280, "dark"), ("zh-CN", 390, "light")])
def test_an_early_query_is_edited_beside_what_was_asked_later(
    serve: Any, open_page: OpenPage, locale: str, width: int, scheme: str
) -> None:
    edit, name, title, discard, go_on = TRY[locale]
    listed = {
        "thought": "",
        "action": "run_sql",
        "args": {"sql": "SELECT name, country FROM rockets ORDER BY name LIMIT 4"},
    }
    running = serve([listed, {"finish": "These [q1]."}, {"finish": "The **later** answer."}])
    thread = running.answer("Which?")["thread_id"]
    running.answer("And then?", thread_id=thread)
    before = running.history(thread)
    page = open_page(running, f"/c/{thread}", width=width, locale=locale, color_scheme=scheme)
    card = page.locator("section[data-query=q1]")
    card.get_by_role("tab", name="SQL").click()
    card.get_by_role("button", name=edit).click()
    editor = card.get_by_role("textbox", name=name)
    editor.fill("SELECT country, count(*) AS n FROM rockets GROUP BY 1 ORDER BY 2 DESC")
    editor.press("ControlOrMeta+Enter")
    tried = page.get_by_role("region", name=title, exact=True)
    tried.get_by_role("cell").first.wait_for()
    settled(page)
    assert card.is_visible() and page.locator("strong", has_text="later").count() == 1
    assert running.history(thread) == before, "nothing is written"
    tried.scroll_into_view_if_needed()
    looked_at(page, f"reading-tried-{locale}-{scheme}")
    tried.get_by_role("tab", name="SQL").click()
    assert "GROUP BY" in tried.locator("pre").inner_text()

    tried.get_by_role("button", name=discard).click()
    tried.wait_for(state="detached")
    editor.press("ControlOrMeta+Enter")
    tried.get_by_role("button", name=go_on).click()
    tried.wait_for(state="detached")
    page.get_by_text("2/2").wait_for()
    assert page.locator("strong", has_text="later").count() == 0
    assert page.locator("section[data-query=q1]").get_by_role("tab").count() >= 2
    after = running.history(thread)
    assert (len(after["messages"]), after["run"]["edited_by"]) == (1, "default")
