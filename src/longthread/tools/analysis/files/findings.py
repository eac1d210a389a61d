"""A cache of what reading a big file in place has found out, until the file changes."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from longthread.errors import InvalidInput
from longthread.tools.analysis.files.delimited import DelimitedTable
from longthread.tools.analysis.files.notes import Note, pack, unpack
from longthread.tools.analysis.formats.column_format import format_of_json
from longthread.tools.analysis.limits import Limits

_RULES = 4
"""Raise it when files are read in another way: older findings are then ignored."""


def load(path: Path, limits: Limits) -> tuple[DelimitedTable, list[Note]] | None:
    """The stored table and notes of a file that has not changed."""
    with suppress(OSError, ValueError, KeyError, TypeError, InvalidInput):
        found = json.loads(_place(path).read_text("utf-8"))
        if found["state"] == _state(path, limits):
            notes = [(column, unpack(note)) for column, note in found["columns"]]
            formats = {name: format_of_json(each) for name, each in found["formats"].items()}
            table = DelimitedTable(str(found["relation"]), notes, path.resolve(), formats=formats)
            return table, [unpack(note) for note in found["notes"]]
    return None


def save(path: Path, limits: Limits, written: DelimitedTable, notes: list[Note]) -> None:
    """Stores the findings about a file, if the cache folder is writable."""
    formats = {name: each.to_json() for name, each in written.formats.items()}
    columns = [(column, pack(note)) for column, note in written.notes]
    found = {"relation": written.relation, "columns": columns, "formats": formats, "state": _state(path, limits)}
    found["notes"] = [pack(note) for note in notes]
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
