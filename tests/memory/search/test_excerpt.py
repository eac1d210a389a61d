"""The part of a text that is shown of a hit."""

from __future__ import annotations

import pytest

from longthread.memory.search.excerpt import excerpt


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
