"""What Longthread itself says in a run, in the language of the page: its warnings, and the notes inside its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.conversation.test_language import LEFT_OUT, NEAREST, SCRIPT, write_files
from tests.web.looking import ask

pytestmark = pytest.mark.browser

STEPS = {"en": "2 steps", "zh": "2 步"}
RAN = {"en": "Ran query q1", "zh": "执行了查询 q1"}
COPY = {"en": "Copy", "zh": "复制"}
NAME = {"en": "English", "zh": "中文"}


def warned(page: Any, language: str) -> None:
    """Wait for the warning, which is in no other language."""
    page.get_by_text(LEFT_OUT[language], exact=True).first.wait_for()
    for text in {*LEFT_OUT.values(), *NEAREST.values()} - {LEFT_OUT[language], NEAREST[language]}:
        assert page.get_by_text(text).count() == 0


def choose(page: Any, language: str) -> None:
    """Choose the language of the page where one is."""
    page.keyboard.press("Control+k")
    page.wait_for_function("() => document.activeElement?.matches('[role=combobox]')")
    page.keyboard.type(NAME[language])
    page.get_by_role("option", name=NAME[language], selected=True).wait_for()
    page.keyboard.press("Enter")


def answered(page: Any, language: str) -> None:
    """Wait until the answer is whole."""
    page.locator("article:has([data-answer])").get_by_role("button", name=COPY[language], exact=True).first.wait_for()


def noted(page: Any, language: str) -> None:
    """Open the step of the query, and wait for its note."""
    page.get_by_role("button", name=STEPS[language]).click()
    page.get_by_role("button", name=RAN[language]).click()
    page.get_by_text(NEAREST[language], exact=True).wait_for()


@pytest.mark.parametrize(("locale", "language", "other"), [("en", "en", "zh"), ("zh-CN", "zh", "en")])
def test_warnings_and_notes_are_in_the_language_of_the_page(
    serve: Any,
    open_page: Any,
    tmp_path: Path,
    locale: str,
    language: str,
    other: str,
) -> None:
    running = serve(SCRIPT, source=write_files(tmp_path / "files"))
    page = open_page(running, locale=locale)
    running.model.shut.set()
    ask(page, "How many in Bon?")
    warned(page, language)  # as it is told
    running.model.shut.clear()
    answered(page, language)
    noted(page, language)
    page.reload()
    warned(page, language)  # as it is stored
    noted(page, language)
    choose(page, other)
    warned(page, other)
    noted(page, other)


def test_a_run_goes_on_in_the_language_that_is_chosen(serve: Any, open_page: Any, tmp_path: Path) -> None:
    running = serve(SCRIPT, source=write_files(tmp_path / "files"))
    page = open_page(running)
    running.model.shut.set()
    ask(page, "How many in Bon?")
    warned(page, "en")
    choose(page, "zh")
    warned(page, "zh")
    running.model.shut.clear()
    answered(page, "zh")
    warned(page, "zh")
    noted(page, "zh")
