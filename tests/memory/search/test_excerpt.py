"""The part of a text that is shown of a hit."""

from __future__ import annotations

import pytest

from longthread.memory.index.entry_text import excerpt
from longthread.memory.index.terms import find_telling_terms


@pytest.mark.parametrize(
    "text", ["\n\nThe harbour.\n", " \t\r\n\n  港口 opens", "x " * 50 + "\n\n" * 60 + "harbour " * 9]
)
def test_it_neither_begins_nor_ends_with_an_empty_line(text: str) -> None:
    shown = excerpt(text, {"harbour"}, 60)
    assert "\n" not in (shown[:1], shown[-1:])
    assert not shown.removeprefix("…").startswith("\n")
    assert not shown.removesuffix("…").endswith("\n")
    assert "harbour" in shown or "港口 opens" in shown
    assert len(shown) <= 62


def test_the_first_lines_indent_stays() -> None:
    assert excerpt("\n  if x:\n    go()\n", {"x"}, 100) == "  if x:\n    go()"
    assert excerpt("\n \n", {"x"}, 100) == ""


FILL = "Here is what we did and who was there: the name of the team, where it was, and when it was in the plan. " * 14


@pytest.mark.parametrize(
    "question",
    [
        "router password",
        "what is the router password",
        "What is the password that was on the router?",
        "what was the name of the router password where it was in the plan",
    ],
)
def test_it_is_about_what_the_question_is_about(question: str) -> None:
    rows = "".join(f"row{n}|{n * 7}|ok\n" for n in range(300))
    text = f"{FILL}\n{rows}\nRouter password: tiger-42-blue.\n{rows}"
    assert "tiger" in excerpt(text, find_telling_terms(question), 300)


def test_of_parts_with_as_many_terms_the_one_with_the_rarest_is_shown() -> None:
    text = f"{'The plan has a name. ' * 60}The vault has a name. {'The plan has a name. ' * 60}"
    assert "vault" in excerpt(text, {"plan", "name", "vault"}, 100)
