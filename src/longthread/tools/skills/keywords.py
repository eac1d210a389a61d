"""Matches the keywords of skills."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without blanks between words, or whose words take endings, such as Chinese and Korean."""
_PLURAL = re.compile(r"[a-z]{3}$")


def triggers(keywords: Sequence[str], question: str) -> bool:
    """Whether a question has one of the keywords, in any case and width: a Chinese one anywhere, any other as whole
    words in singular or plural."""
    text = _folded(question)
    words = _UNSPACED.sub(" ", text)
    return any(_is_in(_folded(keyword), text, words) for keyword in keywords if keyword.strip())


def _is_in(keyword: str, text: str, words: str) -> bool:
    return keyword in text if _UNSPACED.search(keyword) else _pattern(keyword).search(words) is not None


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=4096)
def _pattern(keyword: str) -> re.Pattern[str]:
    """Word boundaries, except beside a mark as in `c++`."""
    begin = r"(?<![^\W_])" if keyword[0].isalnum() else ""
    end = r"(?![^\W_])" if keyword[-1].isalnum() else ""
    return re.compile(f"{begin}{re.escape(keyword)}{'(?:e?s)?' if _PLURAL.search(keyword) else ''}{end}")
