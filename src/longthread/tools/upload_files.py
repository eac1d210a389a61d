"""The names of uploaded files, and how they take their places on the disk.

Names are safe, and copies have names of their own. Each file has its own place, also while other servers work in the
same folder.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
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
    """Return a free name for a file among files of equal names, as file managers give it: `sales (2).csv`. No file has
    this name, and no source has its default name."""
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


UNFINISHED = "made"
"""A source's folder until its files are in it."""


def take_place(file: Path, place: Path) -> None:
    """Move a file to a place, as `rename` does, which would replace a file there. Raises FileExistsError."""
    try:
        os.link(file, place)
        is_linked = True
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # this file system has no links
        place.touch(0o600, exist_ok=False)
        is_linked = False
    try:
        if is_linked:
            file.unlink()
        else:
            file.replace(place)
    except OSError:  # another request has just taken the file
        place.unlink()
        raise


def copy_all(files: Mapping[Path, str], folder: Path) -> None:
    """Give files a second place in a new folder, by these names."""
    folder.mkdir(0o700, parents=True)
    for file, name in files.items():
        try:
            os.link(file, folder / name)
        except FileNotFoundError:
            raise
        except OSError:  # this file system has no links
            shutil.copyfile(file, folder / name)


def into_folder(file: Path, folder: Path) -> None:
    """Put a file into a folder next to it, which may have its name."""
    made = file.with_name(UNFINISHED)
    made.mkdir(0o700)
    file.rename(made / file.name)
    made.rename(folder)


def out_of_folder(folder: Path, name: str) -> None:
    """Put a file in the place of its folder."""
    made = folder.rename(folder.with_name(UNFINISHED))
    (made / name).rename(made.with_name(name))
    made.rmdir()
