"""Escapes text for display: no terminal control characters, no invisible ones."""

from __future__ import annotations

import re

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters except tabs and line breaks, direction marks, and invisible characters."""
_BREAKS = re.compile(r"[\t\n]")


def visible(text: str) -> str:
    """Escapes such characters as in JSON."""
    return UNSEEN.sub(_escaped, text)


def in_line(text: str) -> str:
    """Also escapes tabs and line breaks, for a text in one line."""
    return _BREAKS.sub(_escaped, visible(text))


def _escaped(found: re.Match[str]) -> str:
    code = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[place : place + 4]}" for place in range(0, len(code), 4))
