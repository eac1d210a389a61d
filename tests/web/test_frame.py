"""The frame of the page: the first minute, languages, themes, keys, the palette, narrow screens, settings."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import looked_at
from tests.web.looking import answered, ask

from longthread.server.page import FOLDER

pytestmark = pytest.mark.browser

COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM rockets"}}
SCRIPT = [COUNT, {"finish": "There are **41** rockets [q1]."}]


def is_focused(page: Any, selector: str) -> None:
    page.wait_for_function("(selector) => document.activeElement?.matches(selector)", arg=selector)


@pytest.mark.parametrize(
    ("locale", "line", "question"),
    [
        ("en", "Ask your data.", "How many launches were there per year?"),
        ("zh-CN", "向你的数据提问。", "每年发射了多少次？"),
    ],
)
def test_the_first_question_is_one_click(serve: Any, open_page: Any, locale: str, line: str, question: str) -> None:
    page = open_page(serve(SCRIPT), locale=locale)
    page.get_by_role("heading", name=line).wait_for()
    assert page.evaluate("document.documentElement.lang").startswith(locale[:2])
    page.get_by_role("button", name=question).click()
    page.wait_for_url("**/c/*")
    page.locator("main strong", has_text="41").wait_for()
    page.get_by_role("heading", name=question, level=1).wait_for()
    assert page.title() == f"{question} · Longthread"
    page.locator("nav a[aria-current=page]", has_text=question).wait_for()


def test_language_and_theme_are_chosen_and_kept(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/settings/appearance", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_text("中文").click()
    page.get_by_text("深色").click()
    page.wait_for_function("(light) => getComputedStyle(document.documentElement).backgroundColor !== light", arg=light)
    page.reload()
    page.get_by_role("heading", name="设置").wait_for()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(21, 23, 26)"
    page.get_by_text("跟随系统").click()
    page.wait_for_function("(light) => getComputedStyle(document.documentElement).backgroundColor === light", arg=light)

    denied = "{ get() { throw new DOMException('denied') } }"
    for storage in ("localStorage", "sessionStorage"):
        page.add_init_script(f"Object.defineProperty(window, '{storage}', {denied})")
    page.add_init_script("navigator.locks.request = () => Promise.reject(new DOMException('denied'))")
    page.goto(f"{running.url}/settings/appearance")
    page.get_by_text("Dark", exact=True).click()
    page.wait_for_function("(light) => getComputedStyle(document.documentElement).backgroundColor !== light", arg=light)
    page.get_by_role("link", name="New conversation").click()
    ask(page, "How many rockets are there?")
    answered(page)


def test_a_page_whose_files_are_missing_is_asked_for_again_and_then_says_so(serve: Any, context: Any) -> None:
    running = serve(SCRIPT)
    tab, asked = context.new_page(), []
    tab.on("request", lambda request: asked.append(request.url) if request.is_navigation_request() else None)
    tab.route("**/assets/en-*.js", lambda route: route.abort())
    tab.goto(running.url)
    tab.get_by_text("The page could not be loaded.").wait_for()
    assert len(asked) == 2
    tab.unroute("**/assets/en-*.js")
    tab.reload()
    tab.wait_for_selector("#question")


def test_the_palette_goes_anywhere_without_a_mouse(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    running.answer("How many rockets?")
    page = open_page(running)
    is_focused(page, "#question")
    page.keyboard.press("Control+k")
    is_focused(page, "[role=combobox]")
    page.get_by_role("option", name="How many rockets?").wait_for()
    page.keyboard.type("usage")
    page.get_by_role("option", name="Settings: Usage", selected=True).wait_for()
    page.keyboard.press("Escape")
    is_focused(page, "#question")
    page.keyboard.press("Control+k")
    page.keyboard.type("rockets")
    page.get_by_role("option", name="How many rockets?", selected=True).wait_for()
    page.keyboard.press("Enter")
    page.locator("main strong", has_text="41").wait_for()
    page.keyboard.press("Control+Shift+o")
    page.get_by_role("heading", name="Ask your data.").wait_for()
    is_focused(page, "#question")
    page.keyboard.type("?")
    assert page.input_value("#question") == "?"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()


def test_a_narrow_screen_has_a_drawer_and_never_goes_sideways(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    running.answer("How many rockets?")
    page = open_page(running, width=390)
    opener = page.get_by_role("button", name="Open the list of conversations")
    assert page.get_by_role("link", name="How many rockets?").count() == 0
    opener.tap()
    page.get_by_role("link", name="How many rockets?").tap()
    page.locator("main strong", has_text="41").wait_for()
    page.get_by_role("dialog").wait_for(state="detached")
    opener.tap()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    is_focused(page, "[aria-label='Open the list of conversations']")
    for path in ("/", "/settings/usage", "/settings/agents", page.url.removeprefix(running.url)):
        page.goto(running.url + path)
        page.wait_for_selector("main")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_a_server_that_is_away_is_told_and_the_page_goes_on(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many rockets?")["thread_id"]
    page = open_page(running, f"/c/{thread}", quiet=False)
    page.locator("main strong", has_text="41").wait_for()
    running.stop()
    page.get_by_text("No connection to the server.").wait_for()
    page.get_by_role("link", name="New conversation").click()
    ask(page, "And now?")
    page.get_by_text("The server does not answer. Is it running?").wait_for()
    assert page.input_value("#question") == "And now?"


def test_addresses_that_lead_nowhere_say_so(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, "/settings/nothing")
    page.get_by_text("Page not found.").wait_for()
    page.get_by_role("button", name="Go to the home page").click()
    page.get_by_role("heading", name="Ask your data.").wait_for()


def test_an_address_of_earlier_versions_leads_to_its_conversation(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many rockets?")["thread_id"]
    page = open_page(running, f"/#/c/{thread}")
    page.locator("main strong").wait_for()
    assert page.url == f"{running.url}/c/{thread}"


@pytest.mark.parametrize("is_new", [True, False])
def test_the_first_load_is_little_and_asked_early(serve: Any, open_page: Any, is_new: bool) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many rockets?")["thread_id"]
    page = open_page(running, "/" if is_new else f"/c/{thread}")
    if not is_new:
        page.locator("section[data-query] b", has_text="41").wait_for()
    # What the first paint needs, and what draws a conversation: a new one loads that while its question is typed.
    loaded = page.evaluate("""async () => {
        const ofThread = document.querySelector('script[data-thread]').dataset.thread.split(' ');
        const all = () => performance.getEntriesByType('resource').map((each) => ({
            name: new URL(each.name).pathname, kind: each.initiatorType, start: each.startTime }));
        const painted = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
        const came = (file) => all().some(({ name }) => name === file);
        while (!painted() || !ofThread.every(came)) await new Promise((go) => setTimeout(go, 20));
        return all().filter(({ name, start }) => start <= painted() || ofThread.includes(name));
    }""")
    files = [each["name"] for each in loaded if each["name"].endswith((".js", ".css"))]
    sizes = {name: (FOLDER / f"{name[1:]}.gz").stat().st_size for name in files}
    assert {name.rpartition(".")[2] for name in files} == {"js", "css"} and len(sizes) > 5
    assert sum(sizes.values()) <= 230_000, sizes
    # Each came once, and `early.js` asked for the messages before the page did.
    assert len(files) == len(sizes)
    history = [each["kind"] for each in loaded if each["name"] == "/api/chat/history"]
    assert history == ([] if is_new else ["link"])


def test_a_tooltip_that_was_wanted_before_its_code_came_is_shown(serve: Any, open_page: Any) -> None:
    running = serve(SCRIPT)
    page = open_page(running, f"/c/{running.answer('How many rockets?')['thread_id']}")
    held: list[Any] = []
    address = page.url
    page.goto("about:blank")  # so that the first page asks for no code any more
    page.route("**/assets/OpenTooltip-*.js", lambda route: held.append(route))
    page.goto(address)
    button = page.get_by_role("button", name="Share", exact=True)
    button.hover()
    page.wait_for_timeout(1000)
    shown = page.locator("body > :not(#root)").get_by_text("Share", exact=True)
    assert len(held) == 1 and shown.count() == 0
    held[0].continue_()
    shown.wait_for()
    page.locator("#question").hover()
    shown.wait_for(state="detached")
    # Now that its code is there it is shown again, and Escape closes it.
    button.hover()
    shown.wait_for()
    page.keyboard.press("Escape")
    shown.wait_for(state="detached")


def test_usage_is_by_conversation_and_model(serve: Any, open_page: Any) -> None:
    running = serve(None, model="demo", prices={"demo": {"input": 1000, "output": 1000}}, currency="EUR")
    running.answer("Which rockets are there?")
    page = open_page(running, "/settings/usage")
    row = page.locator("tbody tr").first
    row.locator("td", has_text="demo").wait_for()
    assert row.locator("th").inner_text() == "Which rockets are there?"
    *tokens, cost = row.locator("td").all_inner_texts()[1:]
    assert all(cell.replace(",", "").isdigit() for cell in tokens)
    assert cost.startswith("€") and float(cost[1:]) > 0
    looked_at(page, "usage-cost")
