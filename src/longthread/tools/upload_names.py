"""Names of files that are uploaded: safe ones, equal ones, those of copies."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

from longthread.errors import UploadRefused

SUFFIXES = (".csv", ".tsv", ".parquet", ".xlsx", ".xls", ".json", ".jsonl", ".ndjson", ".sqlite", ".sqlite3", ".db")
"""Of files that can be uploaded."""
_LONGEST = 100
_LONGEST_BYTES = 240
_STRANGE = re.compile(r"[^\w-]+")
_NUMBERED = re.compile(r"(.+)( \(\d{1,4}\))", re.DOTALL)
"""The name of a copy, as file managers call it: `sales (2)`."""


def safe_name(name: str) -> str:
    """Return a file's name that means nothing to a file system or a source's address. Raises UploadRefused: its kind is
    none that can be read."""
    last = unicodedata.normalize("NFC", re.split(r"[/\\]", name)[-1])  # macOS parts letters from their accents
    stem, dot, suffix = last.rpartition(".")
    suffix = f"{dot}{suffix.strip().lower()}"
    if suffix not in SUFFIXES or not dot:
        raise UploadRefused(name=last[:50], reason=f"its kind is none of {', '.join(SUFFIXES)}.")
    copy = _NUMBERED.fullmatch(stem.strip())
    stem, number = copy.groups() if copy else (stem, "")
    room = _LONGEST_BYTES - len(number) - len(suffix)
    return f"{_cut(plain(stem)[: _LONGEST - len(number)], room) or 'data'}{number}{suffix}"


def are_equal(name: str, other: str) -> bool:
    """Whether two safe names are one for a person, whom case tells nothing."""
    one, two = (plain(Path(each).stem).casefold() for each in (name, other))
    return one == two and Path(name).suffix == Path(other).suffix


def copy_name(name: str, files: Iterable[str], sources: Iterable[str]) -> str:
    """Return the name of a file beside those of equal names, as file managers give it: `sales (2).csv`. Neither a file
    has it, nor a source that of its default one."""
    there, called = list(files), {each.casefold() for each in sources}
    stem, suffix = Path(name).stem, Path(name).suffix
    numbered = (safe_name(f"{stem[: _LONGEST - 7]} ({number}){suffix}") for number in count(2))
    return next(
        each
        for each in numbered
        if plain(Path(each).stem).casefold() not in called and not any(are_equal(each, other) for other in there)
    )


def _cut(text: str, most: int) -> str:
    """A text of at most so many bytes: a file system counts those."""
    return text.encode()[:most].decode(errors="ignore")


def joint_name(names: Sequence[str]) -> str:
    """Return the name of the folder of a source's first files: that of a single one, or of all of them."""
    if len(names) == 1:
        return names[0]
    stems = dict.fromkeys(plain(Path(each).stem) or "data" for each in names)
    return _cut("+".join(stems), _LONGEST_BYTES)


def plain(stem: str) -> str:
    """Return a text of letters, digits, - and _."""
    return _STRANGE.sub("_", stem).strip("_")
