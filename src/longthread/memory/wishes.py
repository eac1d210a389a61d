"""What a user's words tell of a memory: that it asks for something each time, and that the user has typed it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from longthread.memory.index.terms import COMMON_TERMS, characters, terms

_HAN = re.compile("[\u3400-\u9fff]")
_WISH = r"wants?|prefers?|asks?|asked|must|should|expects?|insists?"
_WISH_HAN = "要求|希望|想要|必须|应该|应当"
_EACH_TIME = r"always|never|from now on|every (?:time|answer|reply)"
_EACH_TIME_HAN = "一直|总是|始终|永远|每次|一律|今后|以后|从现在起|从今以后"
_ALWAYS = re.compile(
    rf"^(?:please,? )?(?:{_EACH_TIME})\b"
    rf"|\b(?:{_WISH})\b.*\b(?:{_EACH_TIME})\b|\b(?:{_EACH_TIME})\b.*\b(?:{_WISH})\b"
    rf"|^请?(?:{_EACH_TIME_HAN}|务必|切勿|绝不|不要再)"
    rf"|(?:{_WISH_HAN}|请).*(?:{_EACH_TIME_HAN})|(?:{_EACH_TIME_HAN}).*(?:{_WISH_HAN})",
    re.IGNORECASE,
)
_STOCK = frozenset(
    terms("always ask call expect insist like mean must name need never now prefer request remember should")
)
_STOCK_HAN = re.compile(f"{_WISH_HAN}|{_EACH_TIME_HAN}|用户|用戶|喜欢|需要|偏好|记住|称为|叫做")
"""Words in which a model tells of a user, and which say nothing of what it tells."""


def says_always(content: str) -> bool:
    """Return whether a memory asks for something each time: "Always answer in French", "用户要求一直用法语回答"."""
    return _ALWAYS.search(content) is not None


def is_typed(content: str, messages: Iterable[str]) -> bool:
    """Return whether every word of a memory that says something stands in the user's messages. What a model has read
    may be in it only in words that the user has typed too."""
    wanted = _words(_STOCK_HAN.sub(" ", content)) - COMMON_TERMS - _STOCK
    said = {word for text in messages for word in _words(text)}
    return bool(wanted) and wanted <= said


def _words(text: str) -> set[str]:
    """The terms of a text; of Chinese its characters, since a sentence that is told again has other pairs of them."""
    return {term for term in terms(text) if not _HAN.search(term)} | set(characters(text))
