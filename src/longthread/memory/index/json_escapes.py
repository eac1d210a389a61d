"""Texts as JSON writes them in ASCII: `\\u4e2d` is a character that nobody asks for by its number."""

from __future__ import annotations

import re

_BEGINS = re.compile(r"\s*[\[{\"]")
# JSON within a text of JSON has two backslashes. What stands behind another one is no escape of its own.
_ESCAPE = re.compile(
    r"\\{1,2}u(?P<high>d[89ab][0-9a-f]{2})\\{1,2}u(?P<low>d[c-f][0-9a-f]{2})|\\{1,2}u(?P<one>[0-9a-f]{4})|\\.",
    re.IGNORECASE | re.DOTALL,
)


def unescaped(text: str) -> str:
    """A text of JSON with the characters that it names by numbers, but for those of ASCII; any other text as it is."""
    return _ESCAPE.sub(_decode_escape, text) if "\\u" in text and _BEGINS.match(text) else text


def _decode_escape(found: re.Match[str]) -> str:
    if found["high"]:
        return chr(0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(found["low"], 16) - 0xDC00)
    code = int(found["one"], 16) if found["one"] else 0
    return chr(code) if code >= 0x80 and not 0xD800 <= code < 0xE000 else found[0]
