"""The form of delimited rows: delimiter, quote and escape."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _csv import Reader


_DELIMITERS = (",", ";", "\t", "|")
_DECLARED = re.compile(r'"?sep=(.)"?\r?\n', re.I)
_COMMAS = re.compile(r"\D{0,3}(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d+|\d+(?:\.\d+)?)\D{0,3}")
"""A number with commas, which are then no delimiters."""
_TRIED = 200
"""Rows on which a delimiter is tried."""


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


def sampled(form: RowForm, sample: str, *, whole: bool) -> tuple[list[list[str]], list[int]]:
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
