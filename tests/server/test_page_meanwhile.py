"""Answers of the server that arrive when the page has moved on, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.apps import define_clerk
from tests.server.looking import ask

pytestmark = pytest.mark.browser

MAILS = [
    [{"thought": "", "action": "send_mail", "args": {"to": who}} for who in ("ada", "eve")],
    {"finish": "Both were **told**."},
]
TALK = [{"finish": "The **first**."}, {"finish": "The **second**."}, {"finish": "The **third**."}]


@pytest.fixture
def backend() -> str:
    """The page knows the API alone, and that is tested on every backend."""
    return "sqlite"


class Held:
    """Answers to one kind of request, fetched when they are asked for and given to the page when the test says so."""

    def __init__(self, page: Any, pattern: str) -> None:
        self.page = page
        self.kept: list[Any] = []
        self.holds = True
        page.route(pattern, self.meet)

    def meet(self, route: Any) -> None:
        if self.holds:
            self.kept.append((route, route.fetch()))
        else:
            route.continue_()

    def wait(self) -> None:
        while not self.kept:
            self.page.wait_for_timeout(10)

    def give(self) -> None:
        """Gives the page what was held; what is asked from now on is answered at once."""
        self.holds = False
        for route, answer in self.kept:
            route.fulfill(response=answer)


def test_a_call_approved_while_the_page_is_loaded_again_is_not_asked_for_twice(
    serve: Any, open_page: Any, store_address: str
) -> None:
    define_clerk(store_address)
    running = serve(MAILS)
    thread_id = running.answer("Write to both.", agent="clerk")["thread_id"]
    page = open_page(running, f"/#/c/{thread_id}")
    page.wait_for_selector(".approval >> nth=1")
    held = Held(page, "**/api/chat/history*")
    page.click("#language")
    held.wait()
    page.locator(".approval .go").first.click()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    held.give()
    page.wait_for_selector(".approval strong:has-text('等待批准')")
    assert page.locator(".approval").count() == 1
    assert page.locator(".decided").all_inner_texts() == ["批准了 send_mail。"]
    page.locator(".approval .go").click()
    page.wait_for_selector(".answer strong")


def test_a_decision_whose_answer_comes_after_a_load_is_shown(serve: Any, open_page: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve(MAILS)
    thread_id = running.answer("Write to both.", agent="clerk")["thread_id"]
    page = open_page(running, f"/#/c/{thread_id}")
    page.wait_for_selector(".approval >> nth=1")
    history, decided = Held(page, "**/api/chat/history*"), Held(page, "**/approvals")
    page.click("#language")
    history.wait()
    page.locator(".approval .go").first.click()
    decided.wait()
    history.give()
    page.wait_for_selector(".approval strong:has-text('等待批准')")
    assert page.locator(".approval").count() == 2
    decided.give()
    page.wait_for_function("() => document.querySelectorAll('.approval').length === 1")
    page.locator(".approval .go").click()
    page.wait_for_selector(".answer strong")


def test_the_conversation_opened_last_is_shown(serve: Any, open_page: Any) -> None:
    running = serve(TALK)
    first, second = (running.answer(which)["thread_id"] for which in ("one?", "two?"))
    page = open_page(running)
    held = Held(page, f"**/api/chat/history*{first}*")
    page.click(f"[data-id='{first}'] .open")
    held.wait()
    page.click(f"[data-id='{second}'] .open")
    page.wait_for_selector(".answer strong:has-text('second')")
    held.give()
    page.wait_for_timeout(200)
    assert page.locator(".answer strong").all_inner_texts() == ["second"]
    assert page.locator("#title").inner_text() == "two?"


def test_a_question_answered_late_leaves_what_was_opened_meanwhile(serve: Any, open_page: Any) -> None:
    running = serve(TALK)
    thread_id = running.answer("one?")["thread_id"]
    page = open_page(running)
    held = Held(page, "**/api/chat")
    ask(page, "two?")
    held.wait()
    page.click(f"[data-id='{thread_id}'] .open")
    page.wait_for_selector(".answer strong:has-text('first')")
    held.give()
    page.wait_for_selector("#list .name:has-text('two?')")
    assert page.locator(".answer strong").all_inner_texts() == ["first"]
    assert thread_id in page.url
    ask(page, "three?")
    page.wait_for_selector(".turn:nth-child(2) .answer strong:has-text('third')")


def test_a_question_asked_while_its_conversation_is_loaded_stays(serve: Any, open_page: Any) -> None:
    running = serve(TALK)
    thread_id = running.answer("one?")["thread_id"]
    page = open_page(running, f"/#/c/{thread_id}")
    page.wait_for_selector(".answer strong")
    held = Held(page, "**/api/chat/history*")
    page.click("#language")
    held.wait()
    ask(page, "two?")
    page.wait_for_selector(".turn:nth-child(2) .answer strong")
    held.give()
    page.wait_for_selector(".turn:nth-child(2) .answer strong")
    page.wait_for_function("() => document.querySelectorAll('.turn').length === 2")
    assert page.locator(".answer strong").all_inner_texts() == ["first", "second"]


def test_an_agent_chosen_while_the_list_of_agents_is_under_way_stays_chosen(serve: Any, open_page: Any) -> None:
    running = serve(TALK)
    page = open_page(running)
    page.wait_for_selector("#agents option >> nth=1", state="attached")
    held = Held(page, "**/api/agents*")
    page.click("#new")
    held.wait()
    page.select_option("#agents", label="assistant")
    held.give()
    page.wait_for_load_state("networkidle")
    assert page.locator("#agents option:checked").inner_text() == "assistant"
    ask(page, "Hello?")
    page.wait_for_selector(".reply > .answer strong")
    assert page.locator("#agent").inner_text() == "assistant"
    (thread,) = running.client.get("/api/conversations").json()["conversations"]
    assert running.history(thread["id"])["agent"]["name"] == "assistant"
