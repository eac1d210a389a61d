"""What was found out about a big file that is read in place: once, and again when the file has changed."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from longthread.tools.analysis.files.delimited import DelimitedTable
from longthread.tools.analysis.limits import Limits

_RULES = 1
"""Raised when files are read in another way, so that what was found before is found out again."""


def recalled(path: Path, limits: Limits) -> tuple[DelimitedTable, list[str]] | None:
    """The table and the notes that were found for this file, if it is as it was then."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(_place(path).read_text("utf-8"))
        if found["state"] == _state(path, limits):
            notes = [(column, note) for column, note in found["columns"]]
            return DelimitedTable(str(found["relation"]), notes, path.resolve()), list(found["notes"])
    return None


def keep(path: Path, limits: Limits, written: DelimitedTable, notes: list[str]) -> None:
    """Note what was found for a file. Where that cannot be written, it is found out again the next time."""
    found = {"relation": written.relation, "columns": written.notes, "notes": notes, "state": _state(path, limits)}
    place = _place(path)
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(found, file, ensure_ascii=False)
        Path(name).replace(place)


def _place(path: Path) -> Path:
    folder = Path(platformdirs.user_cache_dir("longthread", appauthor=False)) / "files"
    return folder / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()}.json"


def _state(path: Path, limits: Limits) -> list[Any]:
    stat = path.stat()
    return [_RULES, stat.st_size, stat.st_mtime_ns, stat.st_ino, limits.encoding, limits.value_bytes]
