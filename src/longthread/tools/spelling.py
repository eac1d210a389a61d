"""Names that a model can call: letters, digits, `_` and `-`."""

from __future__ import annotations

import re

_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")


def spelled(name: str) -> str:
    """Converts Chinese in a name to pinyin: `研究员` is `yan_jiu_yuan`."""
    return _CHINESE.sub(_in_pinyin, name)


def _in_pinyin(found: re.Match[str]) -> str:
    from pypinyin import lazy_pinyin  # slow to load, and rarely needed

    before, behind = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    pinyin = "_".join(lazy_pinyin(found[0]))
    return f"{'_' if before.isalnum() else ''}{pinyin}{'_' if behind.isalnum() else ''}"
