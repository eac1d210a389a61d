"""Text that is shown to people: nothing in it commands a terminal, or looks like what it is not."""

from __future__ import annotations

import re

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Characters that command a terminal, turn the direction of what stands beside them, or do not show. Tabs and line
breaks are none."""
_BREAKS = re.compile(r"[\t\n]")


def visible(text: str) -> str:
    """A text with such characters written as in JSON: so it can be relied on that it is what it looks like."""
    return UNSEEN.sub(_escaped, text)


def in_line(text: str) -> str:
    """The same for a name or another text of one line: tabs and line breaks are written so, too."""
    return _BREAKS.sub(_escaped, visible(text))


def _escaped(found: re.Match[str]) -> str:
    code = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[place : place + 4]}" for place in range(0, len(code), 4))
