"""The page as an installed application: its manifest, its files without a server, and notifications."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import ROOT, looked_at
from tests.web.looking import ask

from longthread.server import page as served_page

pytestmark = pytest.mark.browser

SCRIPT = [{"finish": "There are **41** rockets."}]
CONTROLLED = "() => navigator.serviceWorker.ready.then(({ active }) => active.state === 'activated')"
KEPT = """async () => {
    const found = [];
    for (const name of await caches.keys())
        for (const { url } of await (await caches.open(name)).keys()) found.push(new URL(url).pathname);
    return found;
}"""


def test_what_installs_the_page_is_served(serve: Any, built: None) -> None:
    running = serve(SCRIPT)
    html = running.client.get("/").text
    assert '<link rel="manifest" href="/manifest.json" />' in html
    manifest = running.client.get("/manifest.json")
    given = json.loads(manifest.text)
    assert (given["name"], given["start_url"], given["display"]) == ("Longthread", "/", "standalone")
    for icon in given["icons"]:
        answer = running.client.get(icon["src"])
        assert (answer.status_code, answer.headers["content-type"]) == (200, icon["type"])
    worker = running.client.get("/sw.js")
    assert worker.headers["content-type"].startswith("text/javascript")
    assert (worker.headers["cache-control"], worker.headers["content-security-policy"]) == (
        "no-cache",
        served_page.WORKER_POLICY,
    )
    assert "BUILD-OF-THE-PAGE" not in worker.text  # each build keeps its files apart
    assert "manifest-src 'self'" in running.client.get("/").headers["content-security-policy"]


def test_every_address_of_the_page_opens_without_its_server() -> None:
    """But those of share links: what they show, only the server has."""
    [given] = re.findall(r"ADDRESSES = /(.*)/;", (ROOT / "web" / "public" / "sw.js").read_text("utf-8"))
    opened = [each for each in served_page.ROUTES if re.match(given, each.replace("{rest:path}", "x"))]
    assert opened == [each for each in served_page.ROUTES if not each.startswith(served_page.SHARED)]


@pytest.mark.parametrize(
    ("locale", "heading", "away"),
    [("en", "Ask your data.", "No connection to the server."), ("zh-CN", "向你的数据提问。", "无法连接服务器")],
)
def test_the_page_opens_without_its_server_and_anew_when_that_is_back(
    serve: Any, open_page: Any, locale: str, heading: str, away: str
) -> None:
    running = serve(SCRIPT)
    page = open_page(running, quiet=False, locale=locale, service_workers="allow")
    page.wait_for_function(CONTROLLED)
    page.reload()  # from here on the worker answers
    ask(page, "How many rockets are there?")
    page.locator("main strong", has_text="41").wait_for()
    kept = page.evaluate(KEPT)
    assert {each for each in kept if not each.startswith("/assets/")} == {"/", "/early.js", "/icon.svg"}
    port = int(running.url.rsplit(":", 1)[1])
    running.stop()
    page.goto(running.url)
    page.get_by_role("heading", name=heading).wait_for()
    page.get_by_text(away).wait_for()
    assert page.locator("html[data-kept]").count() == 1
    page.fill("#question", "And now?")
    looked_at(page, f"kept-{locale}")
    serve(SCRIPT, port=port)
    page.locator("html:not([data-kept])").wait_for()
    page.wait_for_selector("#question")
    assert page.input_value("#question") == "And now?"


def test_a_server_that_answers_is_asked_for_the_page_first(
    serve: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running = serve(SCRIPT)
    page = open_page(running, service_workers="allow")
    page.wait_for_function(CONTROLLED)
    page.reload()
    page.wait_for_selector("#question")
    newer = tmp_path / "newer"
    shutil.copytree(served_page.FOLDER, newer)
    html = (newer / "index.html").read_text("utf-8")
    (newer / "index.html").write_text(html.replace("<html", '<html data-version="2"'), "utf-8")
    monkeypatch.setattr(served_page, "FOLDER", newer)
    page.reload()
    page.locator("html[data-version='2']").wait_for()


RECORDED = """
window.told = [];
window.Notification = class extends EventTarget {
    static permission = 'default';
    static async requestPermission() {
        window.asked = (window.asked ?? 0) + 1;
        return (Notification.permission = 'granted');
    }
    constructor(title, options) {
        super();
        told.push([title, options.body, this]);
    }
};
"""
HIDE = "(hidden) => Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true })"


@pytest.mark.parametrize(
    ("width", "locale", "working", "offer", "told", "off"),
    [
        (1280, "en", "Thinking", "Notify me when it is done", "The answer is ready: There are 41 rockets.", "Turn off"),
        (390, "zh-CN", "正在思考", "完成后通知我", "回答已完成：There are 41 rockets.", "关闭"),
    ],
)
def test_whoever_asks_for_it_while_an_answer_takes_long_is_told_when_it_is_there(
    serve: Any, open_page: Any, width: int, locale: str, working: str, offer: str, told: str, off: str
) -> None:
    running = serve(SCRIPT)
    page = open_page(running, width=width, locale=locale)
    page.add_init_script(RECORDED)
    page.clock.install()
    page.reload()
    running.model.shut.set()
    ask(page, "How many rockets are there?")
    page.get_by_text(working).first.wait_for()
    assert page.get_by_role("button", name=offer).count() == 0
    page.clock.fast_forward(11_000)
    page.get_by_role("button", name=offer).wait_for()
    looked_at(page, f"notify-{width}-{locale}")
    assert page.evaluate("window.asked") is None  # until somebody clicks
    page.get_by_role("button", name=offer).click()
    page.get_by_role("button", name=offer).wait_for(state="detached")
    page.evaluate(HIDE, True)
    running.model.shut.clear()
    page.wait_for_function("() => told.length === 1")
    assert page.evaluate("[asked, told[0][0], told[0][1]]") == [1, "How many rockets are there?", told]
    conversation = page.url
    page.evaluate(HIDE, False)
    # Who looks at the page is not told again.
    page.fill("#question", "And now?")
    page.press("#question", "Enter")
    page.locator("[data-answer]").nth(1).wait_for()
    page.locator("article strong").nth(1).wait_for()
    assert page.evaluate("told.length") == 1
    page.evaluate("history.pushState(null, '', '/settings/you'), dispatchEvent(new PopStateEvent('popstate'))")
    page.get_by_role("button", name=off).wait_for()
    page.evaluate("told[0][2].dispatchEvent(new Event('click'))")
    page.wait_for_url(conversation)


def test_a_notification_is_shown_by_the_worker_where_there_is_one(serve: Any, open_page: Any) -> None:
    """On phones nothing else may show one. The browser that tests run in shows none at all."""
    running = serve(SCRIPT)
    page = open_page(running, "/settings/you", service_workers="allow")
    page.wait_for_function(CONTROLLED)
    page.add_init_script(RECORDED)
    page.add_init_script("ServiceWorkerRegistration.prototype.showNotification = async (...given) => told.push(given)")
    page.reload()
    page.get_by_role("button", name="Turn on").click()
    page.get_by_role("button", name="Turn off").wait_for()
    page.get_by_role("link", name="New conversation").click()
    page.evaluate(HIDE, True)
    ask(page, "How many rockets are there?")
    page.wait_for_function("() => told.length")
    [[title, options]] = page.evaluate("told")
    path = page.url.removeprefix(running.url)
    assert (title, options["body"], options["tag"], options["data"]) == (
        "How many rockets are there?",
        "The answer is ready: There are 41 rockets.",
        path,
        {"to": path},
    )
