"""Quotes that are opened and not closed in their line, so that rows which follow are read into one cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from longthread.tools.analysis.files.form import RowForm

_NOTED = 3
_FIX = "Close it, or double it where it belongs to the text"


def open_quotes(path: Path, form: RowForm, width: int) -> list[str]:
    """Notes on the first such quotes of a UTF-8 file, with the lines where they are opened. `width` is the number of
    columns: a line within a cell that has as many values is taken for a row."""
    if width < 2:
        return []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        if form.quote:
            return [note for note, _ in zip(_swallowed(file, form, width), range(_NOTED), strict=False)]
        return _never_closed(file, replace(form, quote='"'))


def _swallowed(lines: Iterator[str], form: RowForm, width: int) -> Iterator[str]:
    reader = form.reader(lines)
    before = 0
    for row in reader:
        first, before = before + 1, reader.line_num
        for cell in row:
            inner = cell.splitlines()[1:-1] if before > first else []
            rows = sum(line.count(form.delimiter) >= width - 1 for line in inner)
            if rows:
                closed = f"a quote is opened and closed only in line {before:,}"
                yield f"Line {first:,}: {closed}, so {len(inner) + 2:,} lines are in one cell. {_FIX}."


def _never_closed(lines: Iterator[str], form: RowForm) -> list[str]:
    reader = form.reader(lines)
    before = 0
    first = 1
    for _ in reader:
        first, before = before + 1, reader.line_num
    if before - first < 1:
        return []
    return [f"Line {first:,}: a quote is opened and never closed, so quotes are read as letters. {_FIX}."]
