"""Detects the language for an answer."""

from __future__ import annotations

import re

_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d\uac00-\ud7a3]")
_CHINESE_ALONE = re.compile("[吗嗎呢请这這们們么麼哪怎为谁给还让没沒几说对你您]")
"""Characters of frequent words that Japanese and Korean do not use."""
_WORD = re.compile(r"[A-Za-z]+")
_ENGLISH = re.compile(
    r"\b(?:the|this|that|these|those|my|we|our|you|your|his|she|its|they|them|their|am|are|was|were|been|do|does|did|done"
    r"|have|has|had|will|would|can|could|shall|should|may|might|must|of|about|than|there|here|how|what|which|who|whose"
    r"|why|please|tell|give)\b",
    re.IGNORECASE,
)
"""Frequent words that do not occur in SQL or code."""


def is_chinese(text: str) -> bool:
    """Whether to answer a text in Chinese: not for Japanese, Korean, or English with a Chinese name, but for Chinese
    with SQL, kana or hangul in it."""
    characters = len(_HAN.findall(text))
    if not characters or (_KANA_OR_HANGUL.search(text) and not _CHINESE_ALONE.search(text)):
        return False
    return characters >= len(_WORD.findall(text)) or not _ENGLISH.search(text)
