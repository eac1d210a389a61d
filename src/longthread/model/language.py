"""Which language a text is to be answered in."""

from __future__ import annotations

import re

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def is_chinese(text: str) -> bool:
    """Whether a text is to be answered in Chinese."""
    return bool(_CHINESE.search(text))
