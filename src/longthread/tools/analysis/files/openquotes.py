"""Quotes that are opened and not closed in their line, so that rows which follow are read into one cell."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from longthread.tools.analysis.files.form import RowForm
from longthread.tools.analysis.files.notes import Note

_NOTED = 3
_LINE_END = re.compile(r"\r\n|\r|\n")
_FIX = "Close it, or double it where it belongs to the text"


def open_quotes(path: Path, form: RowForm, width: int) -> list[Note]:
    """Notes on the first such quotes of a UTF-8 file, with the lines where they are opened. `width` is the number of
    columns: a line within a cell that has as many values is taken for a row."""
    if width < 2:
        return []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            if form.quote:
                return list(itertools.islice(_swallowed(file, form, width), _NOTED))
            return _never_closed(file, replace(form, quote='"'))
        except csv.Error:
            return []  # A cell over the limit: the load refuses the file, and says so.


def _swallowed(lines: Iterator[str], form: RowForm, width: int) -> Iterator[Note]:
    reader = form.reader(lines)
    before = 0
    for row in reader:
        first, before = before + 1, reader.line_num
        for at, cell in enumerate(row if before > first else ()):
            lines_in_cell = _LINE_END.split(cell)
            if _holds_rows(lines_in_cell, form.delimiter, (at, len(row) - 1 - at), width):
                closed = f"a quote is opened and closed only in line {before:,}"
                told = f"Line {first:,}: {closed}, so {len(lines_in_cell):,} lines are in one cell. {_FIX}."
                yield Note(told, "quote_swallows", line=first, end=before, n=len(lines_in_cell))


def _holds_rows(lines: list[str], delimiter: str, around: tuple[int, int], width: int) -> bool:
    """Whether a cell's lines look like rows. Its first and last are rows with the cells `around` it; prose, which has
    a space or nothing behind each comma, is none."""
    counts = [line.count(delimiter) for line in lines]
    inner = [count for line, count in zip(lines[1:-1], counts[1:-1], strict=True) if line.strip()]
    if len(lines) < 2 or any(count >= width - 1 for count in inner):
        return len(lines) > 1
    tight = re.search(re.escape(delimiter) + r"\S", f"{lines[0]}\n{lines[-1]}") is not None
    whole = counts[0] + around[0] >= width - 1 and counts[-1] + around[1] >= width - 1
    return whole and tight and not inner


def _never_closed(lines: Iterator[str], form: RowForm) -> list[Note]:
    reader = form.reader(lines)
    before = 0
    first = 1
    for _ in reader:
        first, before = before + 1, reader.line_num
    if before - first < 1:
        return []
    told = f"Line {first:,}: a quote is opened and never closed, so quotes are read as letters. {_FIX}."
    return [Note(told, "quote_open", line=first)]
