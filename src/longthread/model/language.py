"""Which language a text is to be answered in."""

from __future__ import annotations

import re

_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d\uac00-\ud7a3]")
_CHINESE_ALONE = re.compile("[吗嗎呢请这這们們么麼哪怎为谁给还让没沒几说对你您]")
"""Characters of frequent words that neither Japanese nor Korean writes."""


def is_chinese(text: str) -> bool:
    """Whether a text is to be answered in Chinese. Japanese and Korean with Chinese characters is not; Chinese that
    names something in kana or hangul is."""
    if not _HAN.search(text):
        return False
    return not _KANA_OR_HANGUL.search(text) or bool(_CHINESE_ALONE.search(text))
