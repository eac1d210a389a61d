"""What the page shows lives: one connection for all tabs, a server that is killed, and conversations of any length."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from tests.web.conftest import ROOT
from tests.web.looking import answered, answers, ask, ask_held, opened

from longthread.langgraph import LongthreadSaver
from longthread.testing import ScriptedChatModel
from longthread_testing.emulator.lean import LeanProvider
from longthread_testing.emulator.lean_turns import words
from longthread_testing.emulator.listener import Listener

pytestmark = pytest.mark.browser

PIECES = 30
"""Of an answer."""
PACE = 150
"""Milliseconds from piece to piece: an answer lasts until the server is killed, and beyond."""


class Killable:
    """A server that is killed, and started again where it was."""

    def __init__(self, warmed: Path, folder: Path, provider: str, pace: int) -> None:
        source = folder / "source.sqlite"
        with closing(sqlite3.connect(source)) as connection, connection:
            connection.execute("CREATE TABLE t AS SELECT 'one' AS name, 1.0 AS share UNION ALL SELECT 'two', 2.0")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LLM_BASE_URL": f"{provider}/v1"}
        self._env |= {"LONGTHREAD_MODEL": f"openai:lean-{PIECES}x{pace}"}
        database = str(folder / "conversations.db")
        serve = ["serve", "--port", str(port), "--source", str(source), "--database", database]
        self._command = [str(warmed / "longthread"), *serve]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        assert any("Longthread is at" in line for line in self._process.stdout)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        # The command hands the kill on to the server, which has the port until it is gone.
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)):
                    return
            time.sleep(0.01)


@pytest.fixture
def killable(warmed: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Killable]:
    listener = Listener(LeanProvider())
    server = Killable(warmed, tmp_path, f"http://127.0.0.1:{listener.port}", getattr(request, "param", PACE))
    yield server
    server.kill()
    listener.stop()


def test_a_server_is_killed_in_the_middle_and_both_tabs_go_on_by_themselves(killable: Killable, context: Any) -> None:
    tab = opened(context, killable)
    ask(tab, "Which names have the largest shares?")
    tab.locator("[data-answer]").wait_for()
    second = opened(context, killable, tab.url.rsplit("/", 1)[1])
    second.locator("[data-answer]").wait_for()
    killable.kill()
    killable.start()
    for each in (tab, second):
        answered(each)
        assert "".join(words(PIECES)).strip() in " ".join(each.locator("[data-answer]").inner_text().split())
    assert tab.locator("article").count() == 1


def distance(tab: Any) -> int:
    """Pixels between what is seen and the end of the conversation."""
    column = tab.get_by_role("region", name="Conversation")
    return int(column.evaluate("node => Math.round(node.scrollHeight - node.scrollTop - node.clientHeight)"))


def at_the_end(killable: Killable, context: Any) -> Any:
    """A low tab with a finished answer, at its end."""
    tab = opened(context, killable)
    tab.set_viewport_size({"width": 1280, "height": 420})
    ask(tab, "Which names have the largest shares?")
    answered(tab)
    tab.wait_for_selector("article [role=status]", state="detached")
    newest = tab.get_by_role("button", name="Go to the newest message")
    newest.click()  # the view stayed with the question
    newest.wait_for(state="detached")
    assert distance(tab) <= 2
    return tab


def test_the_end_is_followed_while_the_reader_is_there_and_not_else(killable: Killable, context: Any) -> None:
    tab = at_the_end(killable, context)
    ask(tab, "And again?")
    tab.locator("[data-answer]").nth(1).wait_for()
    column = tab.get_by_role("region", name="Conversation")
    column.hover()
    tab.mouse.wheel(0, -150)
    tab.get_by_role("button", name="Go to the newest message").get_by_text("New").wait_for()
    place = column.evaluate("node => node.scrollTop")
    answered(tab, 2)
    assert column.evaluate("node => node.scrollTop") == place
    tab.get_by_role("button", name="Go to the newest message").click()
    tab.get_by_role("button", name="Go to the newest message").wait_for(state="detached")
    assert distance(tab) <= 2


_GROWS = """async (node) => {
    await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));  // a frame is over, the next one far
    node.firstElementChild.lastElementChild.style.paddingBottom = '400px';
    node.dispatchEvent(new Event('scroll'));
    for (let n = 0; n < 10; n++) await new Promise(requestAnimationFrame);
}"""


@pytest.mark.parametrize("killable", [5], indirect=True)
def test_what_grows_at_the_end_does_not_push_the_reader_off_it(killable: Killable, context: Any) -> None:
    """The browser tells of a scroll to the end when something has grown there meanwhile: nobody has scrolled up."""
    tab = at_the_end(killable, context)
    tab.get_by_role("region", name="Conversation").evaluate(_GROWS)
    assert distance(tab) <= 2
    tab.get_by_role("button", name="Go to the newest message").wait_for(state="detached")


@pytest.mark.parametrize("killable", [5], indirect=True)
def test_a_fold_that_is_opened_at_the_end_stays_where_it_is(killable: Killable, context: Any) -> None:
    tab = opened(context, killable)
    tab.set_viewport_size({"width": 1280, "height": 420})
    for n, question in enumerate(("One?", "Two?"), 1):
        ask(tab, question)
        answered(tab, n)
    tab.wait_for_selector("article [role=status]", state="detached")
    column = tab.get_by_role("region", name="Conversation")
    fold = tab.get_by_role("button", name="1 step").last
    fold.scroll_into_view_if_needed()
    column.evaluate("node => { node.scrollTop = node.scrollHeight; }")
    fold.scroll_into_view_if_needed()
    before = fold.bounding_box()["y"]
    fold.click()
    tab.get_by_role("button", name="Ran query").last.wait_for()
    assert abs(fold.bounding_box()["y"] - before) <= 2


def streams(running: Any) -> int:
    """How many event streams the server has open."""
    lines = httpx.get(f"{running.url}/metrics", trust_env=False).text.splitlines()
    (said,) = [line for line in lines if line.startswith("longthread_streams ")]
    return int(float(said.split()[1]))


def test_eight_tabs_are_live_over_one_connection_and_another_takes_over(serve: Any, context: Any) -> None:
    running = serve([{"finish": "The **first**."}, {"finish": "The **second**."}])
    tabs = [opened(context, running)]
    ask_held(tabs[0], running, "One?")
    thread_id = tabs[0].url.rsplit("/", 1)[1]
    tabs += [opened(context, running, thread_id) for _ in range(7)]
    for tab in tabs:
        tab.get_by_text("Thinking about the question").first.wait_for()
    while streams(running) != 1:
        tabs[0].wait_for_timeout(50)  # the server notices late that a stream was left
    tabs.pop(0).close()
    running.model.shut.clear()
    for tab in tabs:
        answered(tab)
        assert answers(tab) == ["first"]
    ask(tabs[3], "Two?")
    for tab in tabs:
        answered(tab, 2)
        assert answers(tab) == ["first", "second"]


MESSAGES = 5_000
MOST_NODES = 2_500


def talk(address: str, messages: int = MESSAGES) -> None:
    """A conversation of many messages of several heights and paragraphs, in the thread `long`."""
    more = "And more. " * 3 + "\n\n"
    said = [("user" if n % 2 == 0 else "assistant", f"Message {n}. " + more * (n % 13)) for n in range(messages - 2)]
    with LongthreadSaver.from_conn_string(address) as saver:
        agent = create_agent(ScriptedChatModel([{"finish": "The **end**."}]), [], checkpointer=saver)
        agent.invoke({"messages": [*said, ("user", "And?")]}, {"configurable": {"thread_id": "long"}})


def test_a_long_conversation_is_read_to_its_start_and_never_drawn_whole(
    serve: Any, context: Any, store_address: str
) -> None:
    running = serve(["never asked"])
    talk(store_address)
    tab = opened(context, running, "long")
    answered(tab)
    column = tab.get_by_role("region", name="Conversation")
    start = column.get_by_text("Message 0.", exact=False)
    most = 0
    for _ in range(400):
        if start.count():
            break
        column.evaluate("node => { node.scrollTop = Math.max(0, node.scrollTop - 20000); }")
        most = max(most, tab.evaluate("document.querySelectorAll('*').length"))
        tab.wait_for_timeout(5)
    start.first.wait_for()
    assert most <= MOST_NODES
    # What was put off while it was scrolled is drawn.
    tab.wait_for_selector("[data-undrawn]", state="detached")


def test_a_message_that_the_address_names_is_shown_and_the_keys_go_from_question_to_question(
    serve: Any, context: Any, store_address: str
) -> None:
    running = serve(["never asked"])
    talk(store_address, 300)
    (named,) = [each for each in running.history("long", limit=200)["messages"] if "Message 120." in each["content"]]
    tab = context.new_page()
    tab.goto(f"{running.url}/c/long?at={named['id']}")
    tab.wait_for_selector("[data-turn]")
    top = """name => { const box = document.querySelector('[aria-label=Conversation]').getBoundingClientRect();
        const turn = document.querySelector(`[data-turn="${name}"]`);
        return turn !== null && Math.abs(turn.getBoundingClientRect().top - box.top) < 60; }"""
    while not tab.evaluate(top, named["id"]):
        tab.wait_for_timeout(10)
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "question"
    tab.keyboard.press("Alt+ArrowDown")
    following = running.history("long", limit=200)["messages"]
    after = following[following.index(named) + 2]["id"]
    while not tab.evaluate(top, after):
        tab.wait_for_timeout(10)
    tab.keyboard.press("Alt+ArrowUp")
    while not tab.evaluate(top, named["id"]):
        tab.wait_for_timeout(10)

    # Paper has what is not in sight, too.
    tab.evaluate("window.print = () => { window.printed = document.querySelectorAll('article').length; }")
    tab.locator("main > header").get_by_role("button", name="More").click()
    tab.get_by_role("menuitem", name="Print").click()
    tab.wait_for_function("() => window.printed >= 90")
    tab.wait_for_function("() => document.querySelectorAll('article').length < 30")


def test_a_reader_stays_where_they_are_when_earlier_turns_come(serve: Any, context: Any, store_address: str) -> None:
    running = serve(["never asked"])
    talk(store_address, 400)
    held: list[Any] = []
    tab = opened(context, running, "long")
    answered(tab)
    tab.route("**/api/chat/history*before=*", lambda route: held.append(route))
    column = tab.get_by_role("region", name="Conversation")
    column.evaluate("node => { node.scrollTop = 1000; }")
    while not held:
        tab.wait_for_timeout(10)
    # What is painted: between two frames the rows may stand where they will not be shown.
    seen = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
        const top = document.querySelector('[aria-label=Conversation]').getBoundingClientRect().top;
        const turns = [...document.querySelectorAll('[data-turn]')];
        const turn = turns.find((each) => each.getBoundingClientRect().bottom > top + 1);
        done([turn.dataset.turn, Math.round(turn.getBoundingClientRect().top - top)]);
    })))"""
    drawn = "[data-undrawn]"
    tab.wait_for_selector(drawn, state="detached")
    before = tab.evaluate(seen)
    height = column.evaluate("node => node.scrollHeight")
    held[0].continue_()
    while column.evaluate("node => node.scrollHeight") == height:
        tab.wait_for_timeout(10)
    tab.wait_for_selector(drawn, state="detached")
    after = tab.evaluate(seen)
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) <= 2


@pytest.mark.slow
def test_the_benchmark_opens_scrolls_and_types(built: None, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "page.py", "--tiny", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    *_, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert min(last["open_cold_ms"], last["open_again_ms"], last["key_worst_ms"]) > 0
    assert 0 < last["nodes"] <= MOST_NODES
