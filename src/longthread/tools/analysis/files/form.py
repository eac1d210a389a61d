"""The form of delimited rows: delimiter, quote and escape, and quotes that are opened and not closed in their line."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from longthread.tools.analysis.files.notes import Note

if TYPE_CHECKING:
    from _csv import Reader

_DELIMITERS = (",", ";", "\t", "|")
_DECLARED = re.compile(r'"?sep=(.)"?\r?\n', re.I)
_COMMAS = re.compile(r"\D{0,3}(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d+|\d+(?:\.\d+)?)\D{0,3}")
"""A number with commas, which are then no delimiters."""
_TRIED = 200
"""Rows on which a delimiter is tried."""
_NOTED = 3
_LINE_END = re.compile(r"\r\n|\r|\n")
_FIX = "Close it, or double it where it belongs to the text"


@dataclass(frozen=True)
class RowForm:
    """How rows are written. With an empty `quote` there are no quotes."""

    delimiter: str
    quote: str = '"'
    escape: str = ""
    skipped: int = 0
    """Lines before the first row."""

    def reader(self, lines: Iterable[str]) -> Reader:
        """Reads the rows of lines that have their ends; a blank line is an empty row."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape or None,
            doublequote=not self.escape,
        )


def form_of(sample: str, *, whole: bool, delimiter: str | None = None) -> RowForm:
    """The form of a file from its beginning (`whole`: all of it): the delimiter of a first line `sep=`, the known
    `delimiter`, or the one by which most rows have the same number of values."""
    declared = _DECLARED.match(sample)
    skipped = 1 if declared else 0
    text = sample[declared.end() :] if declared else sample
    delimiters = (declared[1],) if declared else (delimiter,) if delimiter else _DELIMITERS
    quote, escape = _quoting(text)
    tried = [RowForm(mark, quote, escape, skipped) for mark in delimiters]
    best = max(tried, key=lambda form: _evenness(_some(form, text, whole)))
    if best.quote and _is_open(best, text, whole):
        tried = [RowForm(mark, "", "", skipped) for mark in delimiters]
        best = max(tried, key=lambda form: _evenness(_some(form, text, whole)))
    return RowForm("\x1f", best.quote, "", skipped) if _is_one_column(_some(best, text, whole)) else best


def _is_one_column(rows: list[list[str]]) -> bool:
    """Whether the delimiter belongs to the values of a single column: the header has none, and the values are numbers
    with commas, or sentences."""
    first = next((at for at, row in enumerate(rows) if row), None)
    below = [] if first is None else rows[first + 1 :]
    if first is None or len(rows[first]) != 1 or not below or not below[0]:
        return False
    values = [row for row in below if row]
    numbers = all(_COMMAS.fullmatch(",".join(row)) for row in values)
    return numbers or all(cell[:1].isspace() for row in values for cell in row[1:])


def read_sample(form: RowForm, sample: str, *, whole: bool) -> tuple[list[list[str]], list[int]]:
    """The rows of a file's beginning, and the number of each row's last line."""
    text = sample.split("\n", form.skipped)[-1] if form.skipped else sample
    rows: list[list[str]] = []
    ends: list[int] = []
    reader = form.reader(io.StringIO(text, newline=""))
    for row in reader:
        rows.append(row)
        ends.append(reader.line_num + form.skipped)
    if not whole and len(rows) > 2:
        del rows[-1], ends[-1]
    return rows, ends


def _some(form: RowForm, text: str, whole: bool) -> list[list[str]]:
    rows = []
    for row in form.reader(io.StringIO(text, newline="")):
        rows.append(row)
        if len(rows) > _TRIED:
            return rows[:-1]
    return rows if whole or len(rows) < 3 else rows[:-1]


def _evenness(rows: list[list[str]]) -> tuple[float, int]:
    """The share of rows with the usual number of values (above one), and that number."""
    widths = Counter(len(row) for row in rows if any(cell.strip() for cell in row))
    wide = {width: count for width, count in widths.items() if width > 1}
    if not wide:
        return 0.0, 0
    width = max(wide, key=lambda one: (wide[one], one))
    return wide[width] / sum(widths.values()), width


def _quoting(text: str) -> tuple[str, str]:
    """The quote, and the escape: empty for doubled quotes, or a backslash."""
    if '"' not in text and re.search(r"(?m)^'[^'\n]*'[,;\t|]'", text):
        return "'", ""
    backslashes = len(re.findall(r'(?<=[^\\,;\t|\n])\\"(?![,;\t|\r\n])', text))
    return '"', "\\" if backslashes and not re.search(r'[^,;\t|\n"]""[^,;\t|\n]', text) else ""


def _is_open(form: RowForm, text: str, whole: bool) -> bool:
    """Whether a quote is never closed, so that the rest of the text is one value."""
    reader = form.reader(io.StringIO(text, newline=""))
    last, before = 0, 0
    try:
        for _ in reader:
            last, before = reader.line_num, last
    except csv.Error:
        return True
    if whole:
        return last - before > 1 and not text.rstrip().endswith(form.quote)
    return last - before > max(20, last / 2)


def open_quotes(path: Path, form: RowForm, width: int) -> list[Note]:
    """Notes on the first such quotes of a UTF-8 file, with the lines where they are opened. `width` is the number of
    columns: a line within a cell that has as many values is taken for a row."""
    if width < 2:
        return []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            if form.quote:
                return list(itertools.islice(_find_swallowed_rows(file, form, width), _NOTED))
            return _never_closed(file, replace(form, quote='"'))
        except csv.Error:
            return []  # A cell over the limit: the load refuses the file, and says so.


def _find_swallowed_rows(lines: Iterator[str], form: RowForm, width: int) -> Iterator[Note]:
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
    """Return whether a cell's lines look like rows. Its first and last lines are rows with the cells `around` it.
    Prose, which has a space or nothing after each comma, is none."""
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
