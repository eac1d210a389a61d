"""The names of files that are downloaded."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

_NO_NAME = re.compile(r'[/\\:*?"<>|]')
"""What a file's name may not have on some system."""
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that do not show, or turn those beside them: `gpj.exe` must not look like `exe.jpg`."""
_JOINERS = {"\u200c", "\u200d"}
"""Of these, those that belong to words and to emoji."""
_LONGEST = 60
"""Characters of the name; in UTF-8 it must have room in 255 bytes, with its extension."""
_LONGEST_LABEL = 20


def content_disposition(name: str | None, extension: str, *, unnamed: str, label: str = "") -> str:
    """The value of `Content-Disposition` for a file with a name, as far as every system takes it, and `label` behind
    it. Older clients read only the first name, which is `unnamed` unless the other is plain ASCII."""
    label = _file_name(label)[:_LONGEST_LABEL].rstrip(". ")
    most = _LONGEST - len(label) - 1 if label else _LONGEST
    stem = _file_name(name or "")[:most].rstrip(". ")
    stem = " ".join(part for part in (stem or unnamed, label) if part)
    plain = stem if stem.isascii() and "%" not in stem else unnamed
    return f"attachment; filename=\"{plain}.{extension}\"; filename*=UTF-8''{quote(f'{stem}.{extension}', safe='')}"


def _file_name(name: str) -> str:
    seen = (each if each in _JOINERS or unicodedata.category(each) not in _UNSEEN else " " for each in name)
    return " ".join(_NO_NAME.sub(" ", "".join(seen)).split()).strip(". ")
